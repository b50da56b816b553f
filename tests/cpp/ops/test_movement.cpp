// Rows that move elements, and rows that index.
#include "ops/op_run.h"

namespace samegrad::testing {
namespace {

using Ints = std::vector<std::int64_t>;

Array numbers(const Shape& shape) {
  Array array(DType::kInt32, shape);
  for (std::int64_t i = 0; i < shape.size(); ++i) array.data<std::int32_t>()[i] = int(i);
  return array;
}
Operand plain(const Shape& shape) {
  return {numbers(shape)};
}
Operand batched(const Shape& shape, int axis = 0, std::int64_t rows = 1) {
  return {numbers(shape), axis, rows};
}
std::string result(const OpRun& run) {
  return values_of<std::int32_t>(run.run()[0]);
}
OpRun reshape(Operand x, Ints shape) {
  return OpRun("reshape", {std::move(x)}, ReshapeAttrs{.shape = std::move(shape)});
}

TEST("reshape keeps examples together and counts the rows of each") {
  const OpRun flat = reshape(batched({5, 2, 3}), {-2, -1});
  CHECK(flat.type().shape == Shape({kBatchDim, 6}) && flat.type().batch.rows_per_example == 1);
  CHECK(flat.inferred().locality == Locality::kPerExample);
  const OpRun rows = reshape(batched({5, 2, 3}), {-1, 3});
  CHECK_EQ(rows.type().batch.rows_per_example, 2);
  const OpRun back = reshape(batched({10, 3}, 0, 2), {-1, 2, 3});
  CHECK_EQ(back.type().batch.rows_per_example, 1);
  const OpRun leading = reshape(batched({5, 6}), {1, -1, 6});
  CHECK_EQ(leading.type().batch.axis, 1);
  CHECK(leading.inferred().locality == Locality::kInnerExample && !leading.symbol_fixed());
  const OpRun inner = reshape(batched({2, 5, 4}, 1), {2, -1, 2, 2});
  CHECK_EQ(inner.type().batch.axis, 1);
}

TEST("reshape with the traced count specialises the trace") {
  const OpRun fixed = reshape(batched({5, 6}), {5, 3, 2});
  CHECK(fixed.symbol_fixed());
  CHECK(fixed.type().shape == Shape({kBatchDim, 3, 2}));
  const OpRun rows = reshape(batched({5, 6}), {15, 2});
  CHECK_EQ(rows.type().batch.rows_per_example, 3);
  const OpRun gone = reshape(batched({5, 6}), {6, 5});
  CHECK(!gone.type().batched() && gone.symbol_fixed());
}

TEST("reshape refuses what does not fit") {
  CHECK(error_of("reshape", {batched({5, 6})}, ReshapeAttrs{.shape = {-1, 4}})
            .find("cannot be cut into rows of 4") != std::string::npos);
  CHECK(error_of("reshape", {plain({5, 6})}, ReshapeAttrs{.shape = {4, 7}})
            .find("number of elements") != std::string::npos);
  CHECK(
      error_of("reshape", {plain({5, 6})}, ReshapeAttrs{.shape = {-1, -1}}).find("only one size") !=
      std::string::npos);
}

TEST("transpose, reverse, tile, repeat and broadcasting agree with NumPy's") {
  CHECK_EQ(result(OpRun("transpose", {plain({2, 3})}, TransposeAttrs{.perm = {1, 0}})),
           std::string("0 3 1 4 2 5"));
  CHECK_EQ(result(OpRun("transpose", {plain({2, 2, 3})}, TransposeAttrs{.perm = {2, 0, 1}})),
           std::string("0 3 6 9 1 4 7 10 2 5 8 11"));
  CHECK_EQ(result(OpRun("reverse", {plain({2, 3})}, ReverseAttrs{.axes = {1}})),
           std::string("2 1 0 5 4 3"));
  CHECK_EQ(result(OpRun("tile", {plain({1, 2})}, TileAttrs{.multiples = {2, 2}})),
           std::string("0 1 0 1 0 1 0 1"));
  CHECK_EQ(result(OpRun("repeat", {plain({2, 2})}, RepeatAttrs{.repeats = 2, .axis = 1})),
           std::string("0 0 1 1 2 2 3 3"));
  CHECK_EQ(result(OpRun("broadcast_to", {plain({2, 1})}, BroadcastAttrs{.shape = {2, -1, 2}})),
           std::string("0 0 1 1 0 0 1 1"));
}

TEST("a large transposition moves every element") {
  const Array x = numbers({3, 67, 41});
  const Array y = OpRun("transpose", {{x}}, TransposeAttrs{.perm = {2, 0, 1}}).run()[0];
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 67; ++j) {
      for (int k = 0; k < 41; ++k) {
        CHECK_EQ(y.data<std::int32_t>()[(k * 3 + i) * 67 + j], (i * 67 + j) * 41 + k);
      }
    }
  }
}

OpRun slice(Operand x, Ints begin, Ints end, Ints strides) {
  return OpRun(
      "slice", {std::move(x)},
      SliceAttrs{.begin = std::move(begin), .end = std::move(end), .strides = std::move(strides)});
}

TEST("slices are Python's") {
  CHECK_EQ(result(slice(plain({6}), {1}, {-1}, {2})), std::string("1 3"));
  CHECK_EQ(result(slice(plain({6}), {INT64_MAX}, {INT64_MIN}, {-2})), std::string("5 3 1"));
  CHECK_EQ(result(slice(plain({6}), {-2}, {0}, {-3})), std::string("4 1"));
  CHECK_EQ(result(slice(plain({6}), {4}, {2}, {1})), std::string(""));
  CHECK_EQ(result(slice(plain({6}), {-100}, {100}, {5})), std::string("0 5"));
  const OpRun kept = slice(batched({5, 4}), {INT64_MIN, 1}, {INT64_MAX, 3}, {1, 1});
  CHECK(kept.inferred().locality == Locality::kPerExample && !kept.symbol_fixed());
  const OpRun part = slice(batched({5, 4}), {1, 0}, {-1, 2}, {1, 1});
  CHECK_EQ(part.type().batch.symbol, 1);
  CHECK(error_of("slice", {plain({6})}, SliceAttrs{.begin = {0}, .end = {1}, .strides = {0}})
            .find("strides must not be 0") != std::string::npos);
}

TEST("concat joins along any axis, also along the examples") {
  CHECK_EQ(result(OpRun("concat", {plain({2, 2}), plain({2, 1})}, ConcatAttrs{.axis = -1})),
           std::string("0 1 0 2 3 1"));
  const OpRun joined("concat", {batched({5, 2}), batched({5, 2})}, ConcatAttrs{.axis = 0});
  CHECK_EQ(joined.type().batch.symbol, 1);
  CHECK(error_of("concat", {plain({2, 2}), plain({3, 3})}, ConcatAttrs{.axis = 0})
            .find("shapes must agree on all axes but 0") != std::string::npos);
}

TEST("pad puts the number around the value") {
  CHECK_EQ(result(OpRun("pad", {plain({2, 2})}, PadAttrs{.paddings = {1, 0, 0, 1}, .value = 7.0})),
           std::string("7 7 7 0 1 7 2 3 7"));
}

TEST("an index out of range is named with its position and the range") {
  const auto message = [](const OpRun& run, const Tile& tile) {
    try {
      run.run(tile);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kInvalidArgument);
      return std::string(error.what());
    }
    return std::string();
  };
  const Operand bad{array_of<std::int64_t>({4, 2}, {0, 1, 2, 0, 1, 3, 0, 0}), 0, 1};
  const OpRun gather("gather", {plain({3, 2}), bad});
  CHECK_EQ(
      message(gather, {1, 3}),
      std::string(
          "[gather] indices must lie in [0, 3): got 3 at position (2, 1) of the batch; check the "
          "data, or clip the indices first."));
  const OpRun negative("take_along_axis", {plain({1, 3}), {array_of<std::int32_t>({1, 1}, {-1})}},
                       IndexAttrs{.axis = 1});
  CHECK(message(negative, {}).find("got -1 at position (0, 0)") != std::string::npos);
}

TEST("gather, one_hot and take_along_axis choose by index") {
  const Operand indices{array_of<std::int64_t>({2}, {2, 0})};
  CHECK_EQ(result(OpRun("gather", {plain({3, 2}), indices})), std::string("4 5 0 1"));
  CHECK_EQ(result(OpRun("gather", {plain({2, 3}), indices}, IndexAttrs{.axis = 1})),
           std::string("2 0 5 3"));
  CHECK_EQ(result(OpRun("one_hot", {indices}, OneHotAttrs{.depth = 3, .dtype = DType::kInt32})),
           std::string("0 0 1 1 0 0"));
  const Operand along{array_of<std::int32_t>({2, 1}, {2, 1})};
  CHECK_EQ(result(OpRun("take_along_axis", {plain({2, 3}), along}, IndexAttrs{.axis = -1})),
           std::string("2 4"));
}

TEST("the sum at indices is the tree of the dense sums") {
  const Array values = filled(DType::kFloat32, {29, 3});
  const Array indices = filled(DType::kInt64, {29}, 0, 0, 5);
  const Operand like{filled(DType::kFloat32, {6, 3})};
  const Array sum = OpRun("segment_sum", {{values, 0}, {indices, 0}, like}).run()[0];
  const Array dense = OpRun("one_hot", {{indices, 0}}, OneHotAttrs{.depth = 6}).run()[0];
  const Array product =
      OpRun("matmul", {{dense, 0}, {values, 0}}, MatmulAttrs{.transpose_a = true}).run()[0];
  // A one multiplies exactly and a zero adds nothing.
  CHECK(same_bits(sum, product));
}

}  // namespace
}  // namespace samegrad::testing
