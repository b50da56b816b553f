// Rows of products, convolutions and pooling: messages, definitions, trees.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/table.h"
#include "ops/attributes.h"
#include "ops/op_run.h"
#include "reduction_spec.h"

namespace samegrad::testing {
namespace {

Operand fixed(const Shape& shape, DType dtype = DType::kFloat64) {
  return {filled(dtype, shape)};
}
Operand filled_batch(const Shape& shape, int axis = 0, std::int64_t rows = 1,
                     DType dtype = DType::kFloat64) {
  return {filled(dtype, shape), axis, rows};
}
Attrs turns(bool a, bool b) {
  return MatmulAttrs{a, b};
}

Array transposed(const Array& x) {
  Array y(x.dtype(), Shape({x.shape()[1], x.shape()[0]}));
  for (std::int64_t i = 0; i < x.shape()[0]; ++i) {
    for (std::int64_t j = 0; j < x.shape()[1]; ++j) {
      y.data<double>()[j * x.shape()[0] + i] = x.data<double>()[i * x.shape()[1] + j];
    }
  }
  return y;
}

TEST("matmul says which inner dimensions do not match") {
  CHECK_EQ(error_of("matmul", {fixed({2, 3}), fixed({4, 5})}),
           std::string("[matmul] inner dimensions must match: got (2, 3) and (4, 5)."));
  CHECK_EQ(error_of("matmul", {filled_batch({2, 3}), fixed({3, 5})}, turns(true, false)),
           std::string("[matmul] inner dimensions must match: got (2, 3) and (3, 5)."));
  CHECK(!error_of("matmul", {fixed({3}), fixed({3, 5})}).empty());
  CHECK(!error_of("matmul", {fixed({2, 2, 3}), fixed({3, 3, 5})}).empty());
}

TEST("matmul agrees with its definition for all transposes") {
  const Array a = filled(DType::kFloat64, {7, 5}), b = filled(DType::kFloat64, {5, 33});
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const OpRun run("matmul", {{ta ? transposed(a) : a}, {tb ? transposed(b) : b}},
                      turns(ta, tb));
      const Array y = run.run()[0];
      for (std::int64_t i = 0; i < 7; ++i) {
        for (std::int64_t j = 0; j < 33; ++j) {
          double sum = 0;
          for (std::int64_t k = 0; k < 5; ++k) {
            sum = std::fma(a.data<double>()[i * 5 + k], b.data<double>()[k * 33 + j], sum);
          }
          CHECK(std::abs(y.data<double>()[i * 33 + j] - sum) < 1e-14);
        }
      }
    }
  }
}

TEST("matmul knows where the examples go") {
  const OpRun rows("matmul", {filled_batch({6, 3}, 0, 2), fixed({3, 4})});
  CHECK(rows.inferred().locality == Locality::kPerExample);
  CHECK_EQ(rows.type().batch.rows_per_example, 2);
  const OpRun tree("matmul", {filled_batch({6, 3}), filled_batch({6, 4})}, turns(true, false));
  CHECK(tree.inferred().locality == Locality::kBatchReduction);
  CHECK(tree.type().shape == Shape({3, 4}) && !tree.type().batched());
  const OpRun columns("matmul", {fixed({3, 4}), filled_batch({6, 4})}, turns(false, true));
  CHECK(columns.inferred().locality == Locality::kInnerExample);
  CHECK_EQ(columns.type().batch.axis, 1);
  const OpRun pairs("matmul", {filled_batch({6, 3}), filled_batch({6, 3})}, turns(false, true));
  CHECK(!pairs.symbol_fixed() && pairs.inferred().locality == Locality::kFullBatch);
  CHECK(pairs.type().shape == Shape({kBatchDim, kSymbols}));
  const OpRun heads("matmul", {filled_batch({5, 2, 4, 3}), fixed({2, 3, 4})});
  CHECK(heads.inferred().locality == Locality::kPerExample && !heads.symbol_fixed());
}

// x + y for the elements of two results.
void add_to(const Array& x, const Array& y) {
  for (std::int64_t i = 0; i < x.size(); ++i) x.data<double>()[i] += y.data<double>()[i];
}

TEST("a contraction over examples on any axis is the same tree") {
  const Array a = filled(DType::kFloat64, {37, 150}), b = filled(DType::kFloat64, {37, 131});
  const Array tree = OpRun("matmul", {{a, 0}, {b, 0}}, turns(true, false)).run()[0];
  const Array turned =
      OpRun("matmul", {{transposed(a), 1}, {transposed(b), 1}}, turns(false, true)).run()[0];
  CHECK(same_bits(tree, turned));
  // By the definition: leaves of four, halves added.
  const Array expected = testing::by_specification(
      0, 37, 4, 1,
      [&](std::int64_t first, std::int64_t count) {
        const std::int64_t end = first + count;
        return OpRun("matmul", {{a.rows(first, end)}, {b.rows(first, end)}}, turns(true, false))
            .run()[0];
      },
      [](const Array& left, const Array& right) {
        add_to(left, right);
        return left;
      });
  CHECK(same_bits(expected, tree));
}

TEST("a contraction over no examples gives zeros") {
  const Attrs window = WindowAttrs{{1, 2}, {1, 0, 0, 1}};
  const OpRun runs[] = {
      OpRun("matmul", {filled_batch({12, 5}, 0, 3), filled_batch({12, 7}, 0, 3)},
            turns(true, false)),
      OpRun("conv2d_filter_grad",
            {filled_batch({4, 4, 5, 2}), filled_batch({4, 4, 2, 3}), fixed({2, 3, 2, 3})}, window),
      OpRun("segment_sum",
            {filled_batch({8, 2}, 0, 2), {filled(DType::kInt64, {8}), 0, 2}, fixed({3, 2})})};
  for (const OpRun& run : runs) {
    CHECK(run.inferred().locality == Locality::kBatchReduction, run.op().name);
    const Array none = run.run({0, 0})[0];
    for (std::int64_t i = 0; i < none.size(); ++i) CHECK_EQ(element(none, i), 0.0);
  }
}

TEST("a leaf too long for one chain adds products of single examples") {
  const std::int64_t rows = kContractionBlock / kLeafExamples + 1;
  const Array a = filled(DType::kFloat64, {3 * rows, 5}),
              b = filled(DType::kFloat64, {3 * rows, 7});
  const Array x = filled(DType::kFloat64, {3 * rows, 3, 3, 2});
  const Array dy = filled(DType::kFloat64, {3 * rows, 2, 2, 4});
  const Operand like = fixed({2, 2, 2, 4}, DType::kFloat64);
  const auto product = [&](std::int64_t begin, std::int64_t end, std::int64_t per_example) {
    const Operand left{a.rows(begin * rows, end * rows), per_example ? 0 : -1, rows};
    const Operand right{b.rows(begin * rows, end * rows), per_example ? 0 : -1, rows};
    return OpRun("matmul", {left, right}, turns(true, false)).run()[0];
  };
  const auto filter = [&](std::int64_t begin, std::int64_t end, std::int64_t per_example) {
    const Operand images{x.rows(begin, end), 0, per_example};
    const Operand results{dy.rows(begin, end), 0, per_example};
    return OpRun("conv2d_filter_grad", {images, results, like}).run()[0];
  };
  const Array sum = product(0, 1, 0);
  for (std::int64_t i = 1; i < 3; ++i) add_to(sum, product(i, i + 1, 0));
  CHECK(same_bits(sum, product(0, 3, rows)));
  const Array of_images = filter(0, 1, 1);
  for (std::int64_t i = 1; i < 3 * rows; ++i) add_to(of_images, filter(i, i + 1, 1));
  CHECK(same_bits(of_images, filter(0, 3 * rows, rows)));
}

TEST("a prepared operand gives the same bits") {
  register_all_ops();
  int checked = 0;
  for (const OpDef* op : OpRegistry::instance().all()) {
    if (op->prepacking.operand < 0) continue;
    for (const Sample& sample : op->samples) {
      if (std::size_t(op->prepacking.operand) < sample.batched.size() &&
          sample.batched[std::size_t(op->prepacking.operand)]) {
        continue;
      }
      std::vector<Array> arrays;
      std::vector<View> in;
      for (const auto& shape : sample.shapes)
        arrays.push_back(filled(DType::kFloat32, Shape(shape)));
      std::vector<Operand> operands;
      for (const Array& array : arrays) {
        in.push_back({array.raw(), array.shape(), array.dtype()});
        operands.push_back({array});
      }
      const OpRun run(op->name, operands, sample.attrs);
      const Array expected = run.run()[0];
      const Attrs attrs = complete_attrs(*op, sample.attrs);
      const Array prepacked(DType::kUInt8, {std::int64_t(op->prepacking.bytes(in, attrs))});
      op->prepacking.run(in, attrs, 0, op->prepacking.columns(in, attrs), prepacked.raw());
      const Array y(expected.dtype(), expected.shape());
      const std::vector<View> out{{y.raw(), y.shape(), y.dtype()}};
      Scratch scratch;
      op->kernel({.attrs = attrs,
                  .in = in,
                  .out = out,
                  .replica_context = run.replica_context,
                  .prepacked = prepacked.raw(),
                  .scratch = scratch});
      CHECK(same_bits(y, expected), op->name);
      ++checked;
    }
  }
  CHECK(checked > 10, checked);
}

TEST("an operand that is packed in parts has the bytes of the whole") {
  register_all_ops();
  struct Case {
    const char* op;
    Shape first, weights;
    Attrs attrs;
  };
  const std::vector<Case> cases = {{"matmul", {2, 40}, {40, 300}, MatmulAttrs{false, false}},
                                   {"matmul", {2, 40}, {257, 40}, MatmulAttrs{false, true}},
                                   {"conv2d", {1, 5, 5, 3}, {3, 2, 3, 130}, WindowAttrs{}}};
  for (const Case& of : cases) {
    const OpDef& op = OpRegistry::instance().get(of.op);
    const Array x = filled(DType::kFloat32, of.first), w = filled(DType::kFloat32, of.weights);
    const std::vector<View> in{{x.raw(), x.shape(), x.dtype()}, {w.raw(), w.shape(), w.dtype()}};
    const Attrs attrs = complete_attrs(op, of.attrs);
    const auto bytes = std::int64_t(op.prepacking.bytes(in, attrs));
    const std::int64_t columns = op.prepacking.columns(in, attrs);
    const Array whole(DType::kUInt8, {bytes}), parts(DType::kUInt8, {bytes});
    std::memset(whole.raw(), 0, std::size_t(bytes));
    std::memset(parts.raw(), 0, std::size_t(bytes));
    op.prepacking.run(in, attrs, 0, columns, whole.raw());
    for (std::int64_t at = 0; at < columns; at += kProductColumnGrain) {
      const std::int64_t end = std::min(columns, at + kProductColumnGrain);
      op.prepacking.run(in, attrs, at, end, parts.raw());
    }
    CHECK(columns > kProductColumnGrain, of.op);
    CHECK(same_bits(whole, parts), of.op);
  }
}

TEST("convolution agrees with its definition") {
  const Array x = filled(DType::kFloat64, {2, 5, 4, 3}), f = filled(DType::kFloat64, {3, 2, 3, 5});
  const OpRun run("conv2d", {{x}, {f}}, WindowAttrs{.strides = {2, 1}, .padding = {1, 1, 0, 1}});
  const Array y = run.run()[0];
  CHECK(y.shape() == Shape({2, 3, 4, 5}));
  std::int64_t at = 0;
  for (int n = 0; n < 2; ++n) {
    for (int r = 0; r < 3; ++r) {
      for (int c = 0; c < 4; ++c) {
        for (int o = 0; o < 5; ++o, ++at) {
          double sum = 0;
          for (int i = 0; i < 18; ++i) {
            const int row = 2 * r - 1 + i / 6, column = c + i / 3 % 2;
            if (row < 0 || row >= 5 || column >= 4) continue;
            sum += x.data<double>()[((n * 5 + row) * 4 + column) * 3 + i % 3] *
                   f.data<double>()[i * 5 + o];
          }
          CHECK(std::abs(y.data<double>()[at] - sum) < 1e-13);
        }
      }
    }
  }
}

TEST("windows that do not fit, and other wrong shapes, are refused with the remedy") {
  const auto message = [](std::vector<Operand> operands, Attrs attrs = {}) {
    return error_of("conv2d", std::move(operands), std::move(attrs));
  };
  CHECK(message({filled_batch({2, 3, 3, 1}), fixed({5, 5, 1, 2})}).find("the window must fit") !=
        std::string::npos);
  CHECK(message({filled_batch({2, 3, 3, 1}), fixed({2, 2, 3, 2})}).find("channels must be") !=
        std::string::npos);
  CHECK(message({filled_batch({2, 3, 3}), fixed({2, 2, 3, 2})}).find("reshape") !=
        std::string::npos);
  CHECK(message({filled_batch({2, 3, 3, 1}), fixed({2, 2, 1, 2})}, WindowAttrs{.strides = {0, 1}})
            .find("strides must be") != std::string::npos);
  const std::string big =
      error_of("max_pool2d", {filled_batch({1, 40, 40, 1})}, PoolAttrs{{}, {20, 20}});
  CHECK(big.find("at most 256") != std::string::npos, big);
}

}  // namespace
}  // namespace samegrad::testing
