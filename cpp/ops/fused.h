// The op that a chain of elementwise ops becomes: its steps as data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/op_def.h"
#include "ops/attributes.h"

namespace samegrad {

// Registers hold one block of elements each: first the operands, then the results, then temporary
// ones.
struct FusedStep {
  BlockFn block;
  DType dtype;          // of the node's (last) operand, which chooses the function
  DType result;         // of what it makes
  std::vector<int> in;  // of kOneHot: the indices, then the numbers at them and elsewhere
  int out;
};

// The broadcast kind of a value in a fused loop over rows. kFull has an element for each element of
// the rows. kRow has one for each row, whose axes are kept as 1, and kDroppedRow drops these axes.
// kColumn has one for each column, and kNumber a single one. kExampleRow, for results only, has the
// rows of each example reduced to one (with 1 for the axes between).
enum class FusedRole : std::uint8_t { kFull, kRow, kDroppedRow, kColumn, kNumber, kExampleRow };

constexpr bool is_per_row(FusedRole role) {
  return role == FusedRole::kRow || role == FusedRole::kDroppedRow;
}

struct FusedProgram {
  int temporaries = 0;
  std::vector<FusedStep> steps;
  std::vector<DType> results;
  // For a loop over rows: the roles of operands and results, the axes of a row and its elements.
  // row_temporaries counts the additional temporary registers with an element for each row.
  std::vector<FusedRole> roles = {};
  int axes = 0;
  std::int64_t columns = 0;
  int row_temporaries = 0;
};

struct FusedAttrs : NamedAttrs {
  using Base = NamedAttrs;
  Ints code = {};
  Ints dtypes = {};

  static constexpr auto fields() {
    return std::tuple(required("code", &FusedAttrs::code, "The steps."),
                      required("dtypes", &FusedAttrs::dtypes, "Dtypes of the results."),
                      required("names", &FusedAttrs::names, "The operations it was made of."));
  }
};

struct FusedRowsAttrs : FusedAttrs {
  using Base = FusedAttrs;
  Ints roles = {};           // FusedRole of each operand, then of each result
  std::int64_t axes = 0;     // how many last axes make a row
  std::int64_t columns = 0;  // elements of a row

  static constexpr auto fields() {
    return std::tuple(
        required("code", &FusedRowsAttrs::code, "The steps."),
        required("dtypes", &FusedRowsAttrs::dtypes, "Dtypes of the results."),
        required("names", &FusedRowsAttrs::names, "The operations it was made of."),
        required("roles", &FusedRowsAttrs::roles, "What operands, then results are to a row."),
        required("axes", &FusedRowsAttrs::axes, "How many last axes make a row."),
        required("columns", &FusedRowsAttrs::columns, "Elements of a row."));
  }
};

// The cost of the steps for each element, in operations.
double flops_of_steps(const FusedAttrs& attrs);
// True if a call for so many elements is worth several threads.
bool is_worth_threads(const KernelArgs& args, std::int64_t elements);

// The attributes of a fused node; `names` of the rows it was made of are for people.
Attrs fused_attrs(const FusedProgram& program, const std::string& names);
// The same of one that goes through rows.
Attrs fused_rows_attrs(const FusedProgram& program, const std::string& names);

// ---- the steps as numbers, which both kinds of node have ----

struct Word {
  enum : std::size_t { kKind, kFn, kDType, kResult, kIn0, kIn1, kIn2, kOut, kCount };
};

// The attribute `code`: the numbers of temporary registers (of whole blocks, of rows), then the
// steps.
struct FusedCode {
  static constexpr std::int64_t kHeader = 2;
  explicit FusedCode(const std::vector<std::int64_t>& code)
      : words(code.data()), steps((std::int64_t(code.size()) - kHeader) / Word::kCount) {}
  std::int64_t temporaries() const { return words[0]; }
  std::int64_t row_temporaries() const { return words[1]; }
  const std::int64_t* step(std::int64_t i) const { return words + kHeader + i * Word::kCount; }

  const std::int64_t* words;
  std::int64_t steps;
};

// True if the result may overwrite the operand: a single step writes the result, and no later step
// reads the operand.
bool fused_may_overwrite(const Node& node, std::size_t operand, std::size_t result);

// The operands that one of the results is made of, in order: all, unless the node is a fused one.
std::vector<std::size_t> operands_of_result(const Node& node, std::size_t result);

OpDef fused_rows_row();

// Decodes the program of a fused node.
FusedProgram fused_program(const FusedAttrs& attrs);

}  // namespace samegrad
