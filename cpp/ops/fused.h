// The op that a chain of elementwise ops becomes: its steps as data.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ir/op_def.h"
#include "ops/attributes.h"

namespace samegrad {

// Registers hold one block of elements each: first the operands, then the results, then temporary
// ones.
struct FusedStep {
  BlockFn block;
  DType dtype;            // of the node's (last) operand, which chooses the function
  DType result;           // of what it makes
  std::array<int, 3> in;  // -1: none; of kOneHot: the indices, the numbers at them and elsewhere
  int out;
  bool operator==(const FusedStep&) const = default;
};

// The broadcast kind of a value in a fused loop over rows. kFull has an element for each element of
// the rows. kReduced has one for each row, whose axes are kept as 1, and kReducedDropped drops
// these axes. kInner has one for each column, and kScalar a single one. kPerExample, for results
// only, has the rows of each example reduced to one (with 1 for the axes between).
enum class BroadcastKind : std::uint8_t {
  kFull,
  kReduced,
  kReducedDropped,
  kInner,
  kScalar,
  kPerExample
};

constexpr bool is_per_row(BroadcastKind role) {
  return role == BroadcastKind::kReduced || role == BroadcastKind::kReducedDropped;
}

struct FusedProgram {
  int temporaries = 0;
  std::vector<FusedStep> steps;
  std::vector<DType> results;
  // For a loop over rows: the roles of operands and results, the axes of a row and its elements.
  // row_temporaries counts the additional temporary registers with an element for each row.
  std::vector<BroadcastKind> roles = {};
  int axes = 0;
  std::int64_t columns = 0;
  int row_temporaries = 0;

  bool operator==(const FusedProgram&) const = default;
  void add_to(Hasher& hash) const;
};

struct FusedAttrs : NamedAttrs {
  using Base = NamedAttrs;
  FusedProgram program = {};

  static constexpr auto fields() {
    return std::tuple(required("names", &FusedAttrs::names, "The operations it was made of."));
  }
  static constexpr auto internal() { return std::tuple(&FusedAttrs::program); }
};

// The cost of the steps for each element, in operations.
double flops_of_steps(const FusedProgram& program);

// The program of a call, whose attributes a pass made.
const FusedProgram& program_of(const InferArgs& args);

// True if the result may overwrite the operand: a single step writes the result, and no later step
// reads the operand.
bool fused_may_overwrite(const Node& node, std::size_t operand, std::size_t result);

// The operands that one of the results is made of, in order: all, unless the node is a fused one.
std::vector<std::size_t> operands_of_result(const Node& node, std::size_t result);

OpDef fused_rows_op();

}  // namespace samegrad
