// A trace with symbols for lengths becomes the program of a trace with numbers.
#include "passes/specialize_lengths.h"

#include "check.h"
#include "ir/builder.h"
#include "ir/located_error.h"
#include "ops/attributes.h"
#include "ops/registry.h"

namespace samegrad::testing {
namespace {

constexpr std::int64_t kTraced = 5;

// A function of sentences, traced with an open length or with a number.
class Sentences {
 public:
  explicit Sentences(std::optional<std::int64_t> number) : b(graph) {
    register_all_ops();
    Symbol examples;
    examples.traced_count = 4;
    graph.add_symbol(examples);
    length = number.value_or(kTraced);
    if (!number) {
      Symbol open;
      open.kind = Symbol::Kind::kLength;
      open.traced_count = kTraced;
      length = kSymbols + graph.add_symbol(open);
    }
    x = graph.add_argument({DType::kFloat32, {kBatchDim, length, 3}, {0, 1, 0}});
  }

  // The product of all words with a matrix, and every pair of words of a sentence.
  Graph words_and_pairs() {
    const Value weights = graph.add_argument({DType::kFloat32, {3, 3}, {}});
    const Value rows = b("reshape", {x}, ReshapeAttrs{.shape = {-1, 3}});
    const Value made = b("matmul", {rows, weights});
    const Value back = b("reshape", {made}, ReshapeAttrs{.shape = {-2, length, 3}});
    const Value pairs = b("matmul", {back, x}, MatmulAttrs{.transpose_b = true});
    const Value first = b("slice", {pairs},
                          SliceAttrs{.begin = {INT64_MIN, INT64_MIN, 0},
                                     .end = {INT64_MAX, INT64_MAX, -1},
                                     .strides = {1, 1, 1}});
    const Value zeros = b("zeros", {}, ZerosAttrs{.shape = {length, 1}});
    graph.outputs = {first, b("add", {back, zeros}), made};
    return std::move(graph);
  }

  Graph graph;
  Builder b;
  std::int64_t length = 0;
  Value x = kNoValue;
};

TEST("a trace with lengths becomes that of numbers") {
  const Graph open = Sentences(std::nullopt).words_and_pairs();
  CHECK(has_lengths(open));
  for (const std::int64_t n : {2, 5, 700}) {
    Graph made = specialize_lengths(open, {0, n});
    verify(made);
    CHECK(!has_lengths(made), n);
    const Graph traced = Sentences(n).words_and_pairs();
    CHECK(to_string(made) == to_string(traced), n, to_string(made), to_string(traced));
  }
}

TEST("examples stay together where rows of an example are a length") {
  const Graph open = Sentences(std::nullopt).words_and_pairs();
  const ValueType& words = open.type(open.outputs[2]);
  CHECK(words.batched() && words.batch.axis == 0);
  CHECK(is_symbolic(words.batch.rows_per_example));
  const Graph made = specialize_lengths(open, {0, 7});
  CHECK(made.type(made.outputs[2]).batch.rows_per_example == 7);
}

TEST("equal lengths are one and others are refused by a guard") {
  Sentences s(std::nullopt);
  Symbol open;
  open.kind = Symbol::Kind::kLength;
  open.traced_count = kTraced;
  const std::int64_t other = kSymbols + s.graph.add_symbol(open);
  const Value y = s.graph.add_argument({DType::kFloat32, {kBatchDim, other, 3}, {0, 1, 0}});
  const Value sum = s.b("add", {s.x, y});
  CHECK(s.graph.symbols.guards.size() == 1);
  (void)s.b("mul", {sum, y});
  CHECK(s.graph.symbols.guards.size() == 1);
  CHECK(holds_for(s.graph.symbols, {4, 9, 9}));
  CHECK(!holds_for(s.graph.symbols, {4, 9, 8}));
}

TEST("a length that is asked for is the only one") {
  Sentences s(std::nullopt);
  const Size size = size_of(s.graph.symbols, s.length);
  CHECK(bound_size(s.graph.symbols, size) == kTraced);
  CHECK(holds_for(s.graph.symbols, {4, kTraced}));
  CHECK(!holds_for(s.graph.symbols, {4, kTraced + 1}));
}

TEST("a condition on a length holds for others with the same answer") {
  Sentences s(std::nullopt);
  const Size size = size_of(s.graph.symbols, s.length);
  CHECK(decide(s.graph.symbols, size - 3, [](std::int64_t n) { return n > 0; }));
  CHECK(holds_for(s.graph.symbols, {4, 4}));
  CHECK(!holds_for(s.graph.symbols, {4, 3}));
}

TEST("a node that a length does not allow names its line") {
  Sentences s(std::nullopt);
  const Value half = s.b("reshape", {s.x}, ReshapeAttrs{.shape = {-2, 5, -1}});
  s.graph.locations = {"train.py:7"};
  s.graph.nodes.back().location = 0;
  s.graph.outputs = {half};
  try {
    (void)specialize_lengths(s.graph, {0, 7});
    CHECK(false);
  } catch (const LocatedError& error) {
    CHECK_EQ(error.line(), "train.py:7");
  }
}

}  // namespace
}  // namespace samegrad::testing
