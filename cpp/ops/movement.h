// Helpers of the movement ops (reshape, transpose, slice, concat, …).
#pragma once

#include <cstdint>
#include <vector>

#include "ops/partition.h"
#include "ops/strided.h"

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

// The copy that an op is, from operand 0 to the result, and where it starts in the two.
struct Move {
  StridedCopy copy;
  std::int64_t to = 0, from = 0;  // elements

  void run(const View& y, const View& x, std::int64_t begin, std::int64_t end) const;
};

template <Move (*kMove)(const CostArgs& args)>
std::int64_t parts_of_move(const CostArgs& args) {
  return kMove(args).copy.parts();
}
template <Move (*kMove)(const CostArgs& args)>
void run_move(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  kMove(cost_args(args)).run(args.out[0], args.in[0], begin, end);
}
template <Move (*kMove)(const CostArgs& args)>
void set_move(OpDef& op) {
  set_parts<parts_of_move<kMove>, run_move<kMove>>(op);
  op.scratch_bytes = no_scratch;
}

// Every element becomes the number.
void fill_value(const View& y, Scalar value);

// The vjp of ops that only rename axes: the cotangent in the shape of operand 0.
Values reshape_back(const VjpArgs& args);

}  // namespace samegrad
