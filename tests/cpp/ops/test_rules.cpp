// Shapes, example axes and messages of the shared rules.
#include "ops/op_run.h"

namespace samegrad::testing {
namespace {

Operand floats(const Shape& shape, int axis = -1, std::int64_t rows = 1) {
  return {filled(DType::kFloat32, shape), axis, rows};
}

std::string type_of(const std::string& op, std::vector<Operand> operands, Attrs attrs = {}) {
  const OpRun run(op, std::move(operands), std::move(attrs));
  const char* locality[] = {"example", "inner example", "tree", "count", "whole"};
  return text(to_string(run.type()), ", ", locality[int(run.inferred().locality)],
              run.symbol_fixed() ? ", fixed" : "");
}

TEST("the example axis survives broadcasting") {
  CHECK_EQ(type_of("add", {floats({5, 3}, 0), floats({3})}),
           "float32 (?, 3) examples on axis 0, example");
  CHECK_EQ(type_of("add", {floats({1, 3}), floats({5, 3}, 0)}),
           "float32 (?, 3) examples on axis 0, example");
  CHECK_EQ(type_of("add", {floats({2, 1, 3}), floats({5, 3}, 0)}),
           "float32 (2, ?, 3) examples on axis 1, inner example");
  CHECK_EQ(type_of("mul", {floats({10, 3}, 0, 2), floats({10, 1}, 0, 2)}),
           "float32 (?, 3) examples on axis 0 x2, example");
  CHECK_EQ(type_of("greater", {floats({2, 3}), floats({})}), "bool (2, 3), whole");
}

TEST("a fixed size that meets examples fixes their count") {
  CHECK_EQ(type_of("add", {floats({5, 3}, 0), floats({5, 3})}),
           "float32 (?, 3) examples on axis 0, whole, fixed");
  CHECK_EQ(type_of("add", {floats({1, 3}, 0), floats({4, 3})}), "float32 (4, 3), whole, fixed");
}

TEST("all pairs of examples keep one example axis") {
  CHECK_EQ(type_of("sub", {floats({5, 1}, 0), floats({1, 5}, 1)}),
           "float32 (?, ?) examples on axis 0, whole");
}

TEST("shapes that do not broadcast are named with their sizes") {
  CHECK_EQ(error_of("add", {floats({2, 3}), floats({4})}),
           "[add] shapes (2, 3) and (4,) do not broadcast: sizes 3 and 4 meet on one axis, counted "
           "from the last; they must be equal or 1 (see reshape).");
  CHECK_EQ(error_of("add", {floats({5, 3}, 0), floats({4, 3})}).substr(0, 54),
           "[add] shapes (5, 3) and (4, 3) do not broadcast: sizes");
}

TEST("dtypes are checked and the remedy is named") {
  const Operand ints{filled(DType::kInt32, {2}), -1, 1};
  CHECK_EQ(error_of("add", {floats({2}), ints}),
           "[add] operands must have one dtype: got float32 and int32; convert one with "
           "samegrad.cast.");
  CHECK_EQ(
      error_of("exp", {ints}),
      "[exp] the operand must be float32, float64, float16 or bfloat16: got int32; convert it with "
      "samegrad.cast.");
  CHECK_EQ(error_of("select", {ints, ints, ints}).substr(0, 43),
           "[select] 'condition' must be bool: got int3");
}

TEST("sizes that follow from the examples are on any axis") {
  const Attrs right = MatmulAttrs{.transpose_b = true};
  CHECK_EQ(type_of("matmul", {floats({5, 3}, 0), floats({5, 3}, 0)}, right),
           "float32 (?, ?) examples on axis 0, whole");
  CHECK_EQ(type_of("tile", {floats({5, 3}, 0)}, TileAttrs{.multiples = {2, 1}}),
           "float32 (?, 3), whole");
  CHECK_EQ(type_of("pad", {floats({5}, 0)}, PadAttrs{.paddings = {1, 2}}), "float32 (?,), whole");
  CHECK_EQ(type_of("concat", {floats({5, 3}, 0), floats({2, 3})}, ConcatAttrs{.axis = 0}),
           "float32 (?, 3), whole");
  const auto shape = [](Ints sizes) { return ReshapeAttrs{std::move(sizes)}; };
  CHECK_EQ(type_of("reshape", {floats({5, 3}, 0)}, shape({3, kSymbols})), "float32 (3, ?), whole");
  CHECK_EQ(type_of("reshape", {floats({5, 3}, 0)}, shape({3, -1})), "float32 (3, ?), whole");
  CHECK_EQ(type_of("reshape", {floats({5, 0, 3}, 0)}, shape({-1, 3})), "float32 (0, 3), whole");
  CHECK_EQ(type_of("full_sizes", {floats({5, 3}, 0)}, FullSizesAttrs{{}, {kSymbols, kSymbols}}),
           "float32 (?, ?) examples on axis 0, example");
  CHECK_EQ(type_of("as_examples", {floats({5, 3})}), "float32 (?, 3) examples#1 on axis 0, whole");
  CHECK_EQ(type_of("as_rows", {floats({5, 3}, 0)}), "float32 (?, 3), whole");
}

TEST("reductions say what becomes of the examples") {
  const auto axes = [](Ints values, bool keepdims) {
    return ReduceAttrs{std::move(values), keepdims};
  };
  CHECK_EQ(type_of("reduce_sum", {floats({5, 3}, 0)}, axes({0}, false)), "float32 (3,), tree");
  CHECK_EQ(type_of("reduce_sum", {floats({5, 3}, 0)}, axes({1}, true)),
           "float32 (?, 1) examples on axis 0, example");
  CHECK_EQ(type_of("reduce_sum", {floats({2, 5, 3}, 1)}, axes({0}, false)),
           "float32 (?, 3) examples on axis 0, inner example");
  CHECK_EQ(type_of("reduce_sum", {floats({2, 5, 3}, 1)}, axes({1}, true)),
           "float32 (2, 1, 3), tree");
  CHECK_EQ(error_of("reduce_sum", {floats({2, 3})}, axes({2}, false)),
           "[reduce_sum] axis must lie in [-2, 2) for a tensor of rank 2: got 2.");
  CHECK_EQ(error_of("reduce_sum", {floats({2, 3})}, axes({1, -1}, false)),
           "[reduce_sum] axis -1 is named twice in (1, -1); name each axis once.");
}

TEST("what cannot be reduced over replicas is refused") {
  CHECK_EQ(type_of("all_reduce", {floats({5, 3}, 0)}), "float32 (5, 3), whole, fixed");
  CHECK_EQ(error_of("all_reduce", {{Array(DType::kInt32, {3})}}, AllReduceAttrs{ReduceOp::kMean}),
           "[all_reduce] the operand must be float32, float64, float16 or bfloat16: got int32; "
           "convert it with "
           "samegrad.cast.");
  CHECK_EQ(error_of("replica_share", {{Array(DType::kInt32, {3})}}),
           "[replica_share] the operand must be float32, float64, float16 or bfloat16: got int32; "
           "convert it with samegrad.cast.");
}

}  // namespace
}  // namespace samegrad::testing
