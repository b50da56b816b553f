// The row that a chain of elementwise rows becomes: its steps as data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/op_def.h"

namespace samegrad {

// Registers hold one block of elements each: first the operands, then the results, then temporary
// ones.
struct FusedStep {
  BlockFn block;
  DType dtype;   // of the (last) operand, which chooses the function
  DType result;  // of what it makes
  std::vector<int> in;
  int out;
};

struct FusedProgram {
  int temporaries = 0;
  std::vector<FusedStep> steps;
  std::vector<DType> results;
};

struct FusedAttrs;
// The attributes of a fused node; `names` of the rows it was made of are for people.
Attrs fused_attrs(const FusedProgram& program, const std::string& names);

// What they were made of.
FusedProgram fused_program(const FusedAttrs& attrs);

}  // namespace samegrad
