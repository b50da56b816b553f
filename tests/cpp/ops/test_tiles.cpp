// For every row of the op table: any split of the examples into tiles gives the same bits.
#include <array>

#include "kernels/table.h"
#include "ops/op_run.h"
#include "reduction_spec.h"

namespace samegrad::testing {
namespace {

constexpr std::int64_t kExamples = 13;

// The sample with kExamples examples and `rows` rows of each, for the float under test.
OpRun run_of(const OpDef& op, const Sample& sample, DType real, std::int64_t rows) {
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < sample.shapes.size(); ++i) {
    Shape shape(sample.shapes[i]);
    const bool batched = i < sample.batched.size() && sample.batched[i];
    if (batched) shape[0] = kExamples * rows;
    DType dtype = i < sample.dtypes.size() ? sample.dtypes[i] : real;
    if (dtype == DType::kFloat32) dtype = real;
    operands.push_back(
        {filled(dtype, shape, sample.low, sample.high, std::max(sample.integer_high, 1.0)),
         batched ? 0 : -1, rows});
  }
  return OpRun(op.name, std::move(operands), sample.attrs);
}

bool has_examples(const Sample& sample) {
  for (const std::uint8_t batched : sample.batched) {
    if (batched) return true;
  }
  return false;
}

void check_example_tiles(const OpRun& run) {
  const std::vector<Array> whole = run.run();
  for (const std::int64_t size : {1, 2, 5}) {
    for (std::int64_t first = 0; first < kExamples; first += size) {
      const std::int64_t count = std::min(size, kExamples - first);
      const std::vector<Array> part = run.run({first, count});
      for (std::size_t i = 0; i < part.size(); ++i) {
        const std::int64_t rows = run.type(int(i)).batch.rows_per_example;
        CHECK(same_bits(part[i], whole[i].rows(first * rows, (first + count) * rows)),
              run.op().name, " tile of ", count, " at ", first);
      }
    }
  }
  run.run({0, 0});
}

// By the definition: leaves handed over at once, joined from left to right.
Array by_definition(const OpRun& run, std::int64_t leaf) {
  const TreeKernel& tree = run.op().tree;
  const Attrs attrs = run.attrs();
  return testing::by_specification(
      0, kExamples, leaf, 1,
      [&](std::int64_t first, std::int64_t count) {
        return run.run({first, count}, {.subtrees = false})[0];
      },
      [&](const Array& left, const Array& right) {
        const Rect block{0, 0, 1, left.size()};
        tree.combine({attrs,
                      left.dtype(),
                      block,
                      {{left.raw()}, left.size()},
                      {{right.raw()}, right.size()}});
        return left;
      });
}

void check_tree(const OpRun& run) {
  const std::string& name = run.op().name;
  const Array whole = run.run()[0];
  for (const std::int64_t leaf : {4, 8}) {
    CHECK(same_bits(by_definition(run, leaf), whole), name, " subtrees of ", leaf);
  }
  for (const std::int64_t piece : {1, 2, 3, 5, 8}) {
    for (const bool subtrees : {false, true}) {
      for (const bool small_blocks : {false, true}) {
        const Array other = run.fold({piece, subtrees, small_blocks})[0];
        CHECK(same_bits(other, whole), name, " pieces of ", piece, " subtrees ", subtrees,
              " small blocks ", small_blocks);
      }
    }
  }
  CHECK(same_bits(run.fold({.subtrees = false, .small_blocks = true})[0], whole), name);
  const Array none = run.run({0, 0})[0], neutral = run.run({0, 0}, {.small_blocks = true})[0];
  CHECK(same_bits(none, neutral), name, " of nothing");
}

// A sample may rely on its own count (where examples meet a fixed size); such a row needs all
// examples at once, so there is nothing to split.
bool splits(const OpDef& op, const Sample& sample) {
  try {
    run_of(op, sample, DType::kFloat32, 1);
  } catch (const Error&) {
    return false;
  }
  return has_examples(sample);
}

int check_row(const OpDef& op) {
  int checked = 0;
  for (const Sample& sample : op.samples) {
    if (!splits(op, sample)) continue;
    for (const DType real : {DType::kFloat32, DType::kFloat64}) {
      for (const std::int64_t rows : {1, 2}) {
        const OpRun run = run_of(op, sample, real, rows);
        if (run.inferred().locality == Locality::kPerExample) check_example_tiles(run);
        if (run.inferred().locality == Locality::kBatchReduction) check_tree(run);
        ++checked;
      }
    }
  }
  return checked;
}

TEST("any tiles of examples give the same bits, for every row of the table") {
  register_all_ops();
  int checked = 0;
  for (const OpDef* op : OpRegistry::instance().all()) {
    if (!op->kernel) continue;
    try {
      checked += check_row(*op);
    } catch (const Error& error) {
      check::fail(__FILE__, __LINE__, op->name, ": ", error.what());
    }
  }
  CHECK(checked > 300, checked);
}

bool takes(const OpDef& op, const Sample& sample, DType dtype) {
  try {
    return run_of(op, sample, dtype, 1).inferred().locality == Locality::kBatchReduction;
  } catch (const Error&) {
    return false;
  }
}

TEST("a tree row gives the same bits in any pieces and blocks, of every dtype, for long leaves") {
  register_all_ops();
  std::int64_t checked = 0, integers = 0;
  for (const OpDef* op : OpRegistry::instance().all()) {
    if (!op->tree) continue;
    for (const Sample& sample : op->samples) {
      if (!has_examples(sample)) continue;
      for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64,
                                DType::kUInt8, DType::kBool}) {
        if (!takes(*op, sample, dtype)) continue;
        for (const std::int64_t rows : {1, 3, 150, 1100}) {
          check_tree(run_of(*op, sample, dtype, rows));
        }
        ++checked;
        integers += !is_floating(dtype);
      }
    }
  }
  CHECK(checked > 60 && integers > 20, checked, " ", integers);
}

// Whether the contraction of operands of this dtype is folded a subtree at a time.
bool takes_subtrees(DType dtype, std::int64_t rows) {
  const View operand{nullptr, {kExamples * rows, 5}, dtype, 0, rows};
  const std::array<View, 2> in{operand, operand};
  const Attrs turned = MatmulAttrs{.transpose_a = true};
  const TreeKernel& tree = OpRegistry::instance().get("matmul").tree;
  return tree.state(in, turned, {nullptr, {5, 5}, dtype}).subtrees;
}

TEST("a weight gradient has the bits of its leaves, a subtree at a time") {
  register_all_ops();
  CHECK(takes_subtrees(DType::kFloat32, 1) && takes_subtrees(DType::kFloat64, 3));
  CHECK(!takes_subtrees(DType::kInt32, 1) && !takes_subtrees(DType::kFloat32, 1100));
  const Attrs turned = MatmulAttrs{.transpose_a = true};
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const std::int64_t rows : {1, 3}) {
      for (const std::int64_t examples : {1, 4, 5, 16, 37, 128, 300, 1100}) {
        const OpRun run("matmul",
                        {{filled(dtype, {examples * rows, 27}), 0, rows},
                         {filled(dtype, {examples * rows, 35}), 0, rows}},
                        turned);
        const Array leaves = run.fold({.subtrees = false})[0];
        for (const std::int64_t piece : {0, 7, 64}) {
          CHECK(same_bits(run.fold({.piece = piece})[0], leaves), rows, " ", examples, " ", piece);
        }
      }
    }
  }
}

TEST("big results are the same in any blocks") {
  const auto examples = [](const Shape& shape, int axis = 0) {
    return Operand{filled(DType::kFloat32, shape), axis, 1};
  };
  const Attrs turned = MatmulAttrs{.transpose_a = true};
  const Attrs first = ReduceAttrs{.axes = {0}, .keepdims = false};
  const Operand words{filled(DType::kInt64, {kExamples, 5}, 0, 0, 700), 0, 1};
  const Operand table{filled(DType::kFloat32, {700, 33})};
  const OpRun runs[] = {
      OpRun("matmul", {examples({kExamples, 150}), examples({kExamples, 431})}, turned),
      OpRun("matmul", {examples({3, kExamples, 50}, 1), examples({kExamples, 131})}, turned),
      OpRun("reduce_sum", {examples({kExamples, 5001})}, first),
      OpRun("reduce_max", {examples({kExamples, 3, 1111})}, first),
      OpRun("segment_sum", {examples({kExamples, 5, 33}), words, table})};
  for (const OpRun& run : runs) {
    CHECK(run.inferred().locality == Locality::kBatchReduction, run.op().name);
    const Array whole = run.run()[0];
    for (const std::int64_t piece : {0, 1, 4, 7}) {
      CHECK(same_bits(run.fold({.piece = piece, .subtrees = false})[0], whole), run.op().name);
      CHECK(same_bits(run.fold({.piece = piece, .small_blocks = true})[0], whole), run.op().name);
    }
  }
}

}  // namespace
}  // namespace samegrad::testing
