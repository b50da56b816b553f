// What the files of the movement family share.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/op_def.h"

namespace samegrad {

// movement_ops() joins these.
std::vector<OpDef> reshape_ops();
std::vector<OpDef> permute_ops();
std::vector<OpDef> slice_ops();
std::vector<OpDef> concat_ops();
std::vector<OpDef> broadcast_ops();
std::vector<OpDef> tile_ops();
std::vector<OpDef> fill_ops();

// The result has the bytes of operand 0.
void copy_bytes(const KernelArgs& args);

// Every element becomes the number.
void fill_value(const View& y, Number value);

// The vjp of rows that only rename axes: the cotangent in the shape of operand 0.
Values reshape_back(const VjpArgs& args);

}  // namespace samegrad
