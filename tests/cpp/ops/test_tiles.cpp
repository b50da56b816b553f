// For every row of the op table: any split of the examples into tiles gives the same bits.
#include "kernels/table.h"
#include "ops/op_run.h"
#include "tensor/tree.h"

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
      const std::vector<Array> part = run.run({first, count, false});
      for (std::size_t i = 0; i < part.size(); ++i) {
        const std::int64_t rows = run.type(int(i)).batch.rows_per_example;
        CHECK(same_bits(part[i], whole[i].rows(first * rows, (first + count) * rows)),
              run.op().name, " tile of ", count, " at ", first);
      }
    }
  }
  run.run({0, 0, false});
}

// The tree over tiles of `leaf` examples or fewer, joined with the row's function.
void check_tree_tiles(const OpRun& run, std::int64_t leaf) {
  const std::vector<Array> whole = run.run();
  std::vector<Array> level(8);
  const BinaryKernel join = kernels().binary(run.op().combine, whole[0].dtype());
  walk_tree(
      0, kExamples, leaf, 0,
      [&](std::int64_t begin, std::int64_t end, int at) {
        level[std::size_t(at)] = run.run({begin, end - begin, false})[0];
      },
      [&](int at) {
        const Array& sum = level[std::size_t(at)];
        join(sum.raw(), level[std::size_t(at) + 1].raw(), sum.raw(), sum.size(), 1, 1);
      });
  CHECK(same_bits(level[0], whole[0]), run.op().name, " subtrees of ", leaf);
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
        if (run.inferred().locality == Locality::kExample) check_example_tiles(run);
        if (run.inferred().locality == Locality::kTree) {
          check_tree_tiles(run, 4);
          check_tree_tiles(run, 8);
        }
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

}  // namespace
}  // namespace samegrad::testing
