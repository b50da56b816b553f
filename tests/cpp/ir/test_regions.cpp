// Programs with graphs inside their nodes.
#include "ir/regions.h"

#include <vector>

#include "check.h"
#include "fake_ops.h"
#include "ir/symbols.h"

namespace samegrad::testing {
namespace {

const OpDef& leaf() {
  static const OpDef op = fake_op("leaf", 1);
  return op;
}

const OpDef& effect() {
  static const OpDef op = fake_op("effect", 1, kSideEffect);
  return op;
}

const OpDef& branch() {
  static const OpDef op = [] {
    OpDef row = fake_op("branch", 1);
    row.regions = {"first", "second"};
    return row;
  }();
  return op;
}

// One argument, one node.
Graph single(const OpDef& op, std::vector<GraphPtr> regions = {}) {
  Graph graph;
  graph.add_symbol({});
  Builder b(graph);
  const Value x = graph.add_argument(batched_type(3), Placement::kSharded);
  graph.outputs = b.apply(op, Values{x}, {}, std::move(regions));
  return graph;
}

GraphPtr shared(Graph graph) {
  return std::make_shared<const Graph>(std::move(graph));
}

// branch(leaf, branch(leaf, `last`))
Graph nested(const OpDef& last) {
  const GraphPtr inner = shared(single(branch(), {shared(single(leaf())), shared(single(last))}));
  return single(branch(), {shared(single(leaf())), inner});
}

TEST("a walk goes through all regions, each node before those inside it") {
  std::string seen;
  const Graph graph = nested(effect());
  walk_nodes(graph, [&](const Graph& in, const Node& node) {
    seen += node.op->name + (&in == &graph ? "! " : " ");
  });
  CHECK_EQ(seen, "branch! leaf branch leaf effect ");
}

TEST("a trait is found however deep it is") {
  CHECK(contains(nested(effect()), kSideEffect) && !contains(nested(leaf()), kSideEffect));
  CHECK(holds(nested(effect()).nodes[NodeId(0)], kSideEffect));
}

TEST("changed regions are the node's own") {
  const Graph before = nested(leaf());
  Graph after = before;
  const Graph* kept = before.nodes[NodeId(0)].regions[1].get();
  CHECK(after.nodes[NodeId(0)].regions[1].get() == kept);
  change_regions(after.nodes[NodeId(0)], [](Graph& region) { region.replicas = 4; });
  CHECK(before.nodes[NodeId(0)].regions[1].get() == kept && kept->replicas == 1);
  CHECK(after.nodes[NodeId(0)].regions[0]->replicas == 4 &&
        after.nodes[NodeId(0)].regions[1]->replicas == 4);
}

TEST("regions print by the names of the row, before the attributes") {
  const std::string text = to_string(nested(leaf()));
  CHECK(text.find("branch(%0, first=graph at ") != std::string::npos, text);
  CHECK(text.find(", second=graph at ") != std::string::npos, text);
}

TEST("symbols are carried over in regions and attributes") {
  Graph graph = nested(leaf());
  Symbols to;
  to.push_back({});
  to.push_back({});
  SymbolMap map(graph.symbols, to);
  map.bind(0, 1);
  Node node = graph.nodes[NodeId(0)];
  node.attrs = FakeAttrs{.size = kSymbols};
  const Node mapped = map(node);
  CHECK_EQ(mapped.attrs.as<FakeAttrs>().size, kSymbols + 1);
  CHECK_EQ(node.attrs.as<FakeAttrs>().size, kSymbols);
  walk_nodes(*mapped.regions[1], [](const Graph& in, const Node&) {
    CHECK_EQ(in.values[Value(0)].type.batch.symbol, 1);
  });
}

}  // namespace
}  // namespace samegrad::testing
