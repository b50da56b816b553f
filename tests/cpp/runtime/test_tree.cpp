// The engine's side of tree reductions.
#include "runtime/tree.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "check.h"
#include "fake_rows.h"
#include "reduction_spec.h"
#include "runtime/threads.h"

namespace samegrad::testing {
namespace {

const Attrs kNoAttrs;

std::vector<double> numbers(std::int64_t n, std::uint64_t state) {
  std::vector<double> x;
  for (std::int64_t i = 0; i < n; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    x.push_back(double(state >> 11) * 0x1p-53 * 1e3 - 300);
  }
  return x;
}

TreeReduction reduction_of(const TreeKernel& kernel, std::int64_t columns) {
  const View result{nullptr, Shape({columns}), DType::kFloat64};
  return {kernel, kNoAttrs, {}, result};
}

// Memory that starts with what must never be read.
struct Memory {
  explicit Memory(std::int64_t bytes) : bytes(std::size_t(bytes) + 64, std::byte{0xff}) {}
  std::byte* data() { return bytes.data(); }
  std::vector<std::byte> bytes;
};

struct Folded {
  std::vector<double> elements;  // all buffers
  bool operator==(const Folded& other) const {
    return elements.size() == other.elements.size() &&
           std::memcmp(elements.data(), other.elements.data(), elements.size() * 8) == 0;
  }
};

Folded folded(const TreeReduction& reduction, const Accumulator& state) {
  Folded result;
  for (int b = 0; b < reduction.state.buffers; ++b) {
    result.elements.insert(result.elements.end(), state.as<double>(b),
                           state.as<double>(b) + reduction.state.columns);
  }
  return result;
}

// Blocks of `width` columns, each fed the examples in pieces.
Folded in_pieces(const TreeReduction& reduction, const void* operands, std::int64_t examples,
                 std::int64_t piece, std::int64_t width) {
  Memory memory(reduction.whole.bytes);
  const Accumulator state = reduction.whole.at(memory.data());
  Scratch scratch;
  for (std::int64_t column = 0; column < reduction.state.columns; column += width) {
    const Rect block{0, column, 1, std::min(width, reduction.state.columns - column)};
    const TileSet extent(reduction.state, block);
    Memory partials(TreeAccumulator::partial_bytes(reduction, extent, examples));
    TreeAccumulator accumulator(reduction, extent, 0, examples, reduction.whole.part(state, block),
                                partials.data());
    for (std::int64_t i = 0; i < examples; i += piece) {
      accumulator.feed(operands, 0, i, std::min(i + piece, examples), scratch);
    }
  }
  return folded(reduction, state);
}

// The definition: a leaf at once, then the tree over the leaves.
Folded by_definition(const TreeReduction& reduction, const Table& table, std::int64_t examples) {
  const TileSet& whole = reduction.whole;
  Scratch scratch;
  const auto sum = by_specification(
      0, examples, reduction.tree.leaf, 1,
      [&](std::int64_t first, std::int64_t count) {
        auto memory = std::make_shared<Memory>(whole.bytes);
        const Accumulator state = whole.at(memory->data());
        reduction.kernel->leaf({&table, first, first + count, whole.block, state, true, scratch});
        return memory;
      },
      [&](const std::shared_ptr<Memory>& left, const std::shared_ptr<Memory>& right) {
        reduction.combine(whole.block, whole.at(left->data()), whole.at(right->data()));
        return left;
      });
  return folded(reduction, whole.at(sum->data()));
}

TEST("a state of several buffers has the same bits in any pieces and blocks") {
  const std::int64_t columns = 13;
  for (const TreeKernel* kernel : {&kMoments, &kSum}) {
    const TreeReduction reduction = reduction_of(*kernel, columns);
    for (const std::int64_t n : {1, 2, 3, 4, 5, 6, 7, 12, 100, 1023}) {
      const std::vector<double> x = numbers(n * columns, 7);
      const Table table{x.data(), columns};
      const Folded expected = by_definition(reduction, table, n);
      for (const std::int64_t piece : {std::int64_t(1), std::int64_t(2), std::int64_t(3),
                                       std::int64_t(5), std::int64_t(64), n}) {
        for (const std::int64_t width : {std::int64_t(8), columns}) {
          CHECK(in_pieces(reduction, &table, n, piece, width) == expected, n, " ", piece, " ",
                width);
        }
      }
    }
  }
}

TEST("joined moments are those of all examples") {
  const std::int64_t n = 777;
  const std::vector<double> x = numbers(n, 3);
  const Table table{x.data(), 1};
  const TreeReduction reduction = reduction_of(kMoments, 1);
  const Folded got = in_pieces(reduction, &table, n, 10, 1);
  double mean = 0, deviations = 0;
  for (const double value : x) mean += value / double(n);
  for (const double value : x) deviations += (value - mean) * (value - mean);
  std::int64_t count = 0;
  std::memcpy(&count, got.elements.data(), 8);
  CHECK_EQ(count, n);
  CHECK(std::abs(got.elements[1] - mean) < 1e-9);
  CHECK(std::abs(got.elements[2] / deviations - 1) < 1e-12);
}

TEST("no examples leave the neutral state, without a leaf") {
  for (const TreeKernel* kernel : {&kMoments, &kSum}) {
    const TreeReduction reduction = reduction_of(*kernel, 5);
    const Folded none = in_pieces(reduction, nullptr, 0, 1, 5);
    for (const double element : none.elements) CHECK_EQ(element, 0.0);
    Memory memory(reduction.whole.bytes);
    const Accumulator state = reduction.whole.at(memory.data());
    Scratch scratch;
    reduce_whole({reduction, {}, 0, 0, state}, serial_loops(), scratch);
    CHECK(folded(reduction, state) == none);
  }
}

// The threads' loops, which remember how many tasks they ran.
class CountingLoops : public ParallelFor {
 public:
  int threads() const override { return 3; }
  void run(std::int64_t count, const std::function<void(std::int64_t)>& body) const override {
    tasks = std::max(tasks, count);
    parallel_loops().run(count, body);
  }
  mutable std::int64_t tasks = 0;
};

TEST("blocks and subtrees in parallel give the bits of one thread") {
  set_thread_count(3);
  for (const std::int64_t columns : {1, 13, 3000, 9001}) {
    for (const TreeKernel* kernel : {&kMoments, &kSum}) {
      const TreeReduction reduction = reduction_of(*kernel, columns);
      const std::int64_t blocks = reduction.whole.cuts();
      for (const std::int64_t n : {1, 5, 61}) {
        const std::vector<double> x = numbers(n * columns, 5);
        const Table table{x.data(), columns};
        const Folded expected = by_definition(reduction, table, n);
        for (const bool splits : {false, true}) {
          Memory memory(reduction.whole.bytes);
          const Accumulator state = reduction.whole.at(memory.data());
          Scratch scratch;
          const CountingLoops loops;
          const OpenExamples all{&table, n};
          reduce_whole({reduction, {&all, 1}, 0, n, state, splits, std::int64_t(1) << 40}, loops,
                       scratch);
          CHECK(folded(reduction, state) == expected, columns, " ", n, " ", splits);
          const bool many = blocks > 1 || (splits && n > reduction.tree.leaf);
          CHECK_EQ(loops.tasks > 1, many);
        }
      }
    }
  }
  set_thread_count(0);
}

TEST("blocks of a state that says their size and width have both, if it is so large") {
  constexpr std::int64_t kBytes = 256 << 10;
  const auto largest = [](std::int64_t rows, std::int64_t columns) {
    const AccumulatorShape shape{.rows = rows,
                                 .columns = columns,
                                 .row_grain = 24,
                                 .column_grain = 128,
                                 .block_bytes = kBytes,
                                 .block_columns = 1024,
                                 .item = {4}};
    return TileSet(shape, {0, 0, rows, columns}).cut(0);
  };
  const Rect square = largest(4096, 4096), low = largest(30, 4096), high = largest(4096, 64);
  CHECK(square.rows == 48 && square.columns == 1024, square.rows, " ", square.columns);
  CHECK(low.rows == 30 && low.columns == 1024, low.rows, " ", low.columns);
  CHECK(high.rows > 1000 && high.columns == 64, high.rows, " ", high.columns);
  const Rect halves = largest(4096, 1100);
  CHECK(halves.columns == 640, "not 1024 and 76: ", halves.columns);
  for (const Rect& block : {square, low, high, halves}) CHECK(block.size() * 4 <= kBytes);
}

TEST("a big state is cut at its grains alone, and each element is in one block") {
  for (const std::int64_t rows : {1, 23, 24, 25, 1600}) {
    for (const std::int64_t columns : {1, 64, 131, 4096}) {
      for (const std::int64_t grain : {0, 7}) {
        const AccumulatorShape shape{
            .rows = rows, .columns = columns, .row_grain = 24, .column_grain = grain, .item = {8}};
        const TileSet extent(shape, {0, 0, rows, columns});
        std::int64_t elements = 0;
        for (std::int64_t i = 0; i < extent.cuts(); ++i) {
          const Rect block = extent.cut(i);
          CHECK(block.row % 24 == 0 && (grain ? block.column % grain == 0 : block.column == 0));
          elements += block.size();
        }
        CHECK_EQ(elements, rows * columns);
      }
    }
  }
}

}  // namespace
}  // namespace samegrad::testing
