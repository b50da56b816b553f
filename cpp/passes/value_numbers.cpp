#include "passes/value_numbers.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "ir/op_def.h"
#include "ops/attributes.h"

namespace samegrad {
namespace {

constexpr std::size_t kCopiedConstant = 1024;  // bytes; larger ones are given from outside

// The graph as one of all replicas, if its rules hold there, those of its regions as well.
GraphPtr as_everywhere(const GraphPtr& graph) {
  auto wide = std::make_shared<Graph>(*graph);
  wide->symbols.replicas.clear();
  for (Node& node : wide->nodes) {
    for (GraphPtr& region : node.regions) {
      GraphPtr inside = as_everywhere(region);
      if (inside == region) return graph;
      region = std::move(inside);
    }
  }
  try {
    verify(*wide);
  } catch (const Error&) {
    return graph;
  }
  return wide;
}

// The sizes in a global number of elements that are assumed to be equal on every replica.
std::vector<std::int64_t> plain_sizes(const Graph& graph, const Node& node) {
  std::vector<std::int64_t> sizes;
  if (!node.op->has(kReplicaInvariant) || node.inputs.empty()) return sizes;
  const ValueType& type = graph.type(node.inputs[0]);
  for (std::int64_t axis : node.attrs.as<CountAttrs>().axes) {
    const Size size = size_of(graph.symbols, type, int(axis));
    if (const auto number = size.number()) sizes.push_back(*number);
  }
  return sizes;
}

}  // namespace

bool ValueNumbers::is_ordered_effect(std::size_t g, const Node& node) const {
  return holds(node, kCollective | kSideEffect) ||
         (counts_differ_ && !plain_sizes(*graphs_[g], node).empty());
}

// A trace without any, as that of a replica without examples may be, says nothing.
bool ValueNumbers::counts_differ() const {
  std::set<std::set<std::vector<std::int64_t>>> found;
  for (const Graph* graph : graphs_) {
    std::set<std::vector<std::int64_t>> sizes;
    for (const Node& node : graph->nodes) {
      std::vector<std::int64_t> plain = plain_sizes(*graph, node);
      if (!plain.empty()) sizes.insert(std::move(plain));
    }
    if (!sizes.empty()) found.insert(std::move(sizes));
  }
  return found.size() > 1;
}

ValueNumbers::ValueNumbers(std::vector<const Graph*> graphs, Symbols& symbols)
    : graphs_(std::move(graphs)), symbols_(symbols) {
  const std::size_t count = graphs_.size();
  at_.resize(count);
  mapped_.resize(count);
  anchors_.resize(count);
  for (const Graph* graph : graphs_) {
    maps_.emplace_back(graph->symbols, symbols_);
    numbers_.emplace_back(graph->values.size(), -1);
  }
  for (std::size_t g = 0; g < count; ++g) map_symbols(g);
  counts_differ_ = counts_differ();
  for (std::size_t g = 0; g < count; ++g) number_graph(g);
}

Value ValueNumbers::at(std::size_t g, int number) const {
  const auto found = at_[g].find(number);
  return found == at_[g].end() ? kNoValue : found->second;
}

const ValueInfo& ValueNumbers::info(int number) const {
  const NumberedValue& known = all_[std::size_t(number)];
  return graphs_[std::size_t(known.graph)]->values[known.value];
}

bool ValueNumbers::common(int number) const {
  const NumberedValue& known = all_[std::size_t(number)];
  return known.given || known.seen == graphs_.size();
}

bool ValueNumbers::is_constant(int number) const {
  return info(number).source == Source::kConstant && !all_[std::size_t(number)].given;
}

// Counts of arguments are the first symbols of each graph.
void ValueNumbers::map_symbols(std::size_t g) {
  const Symbols& own = graphs_[g]->symbols;
  for (std::size_t s = 0; s < own.size(); ++s) {
    if (own[s].kind == Symbol::Kind::kInput) maps_[g].bind(int(s), int(s));
  }
  for (std::size_t s = 0; s < own.size(); ++s) (void)maps_[g](int(s));
}

void ValueNumbers::number_graph(std::size_t g) {
  const Graph& graph = *graphs_[g];
  mapped_[g].reserve(graph.nodes.size());
  for (Value v : graph.values.ids()) {
    if (graph.values[v].source != Source::kNode) see(g, v, number_of_source(g, v));
  }
  for (NodeId n : graph.nodes.ids()) number_node(g, n);
}

int ValueNumbers::add(std::size_t g, Value value, int after) {
  all_.push_back({int(g), value, maps_[g](graphs_[g]->type(value)), after});
  return int(all_.size() - 1);
}

void ValueNumbers::see(std::size_t g, Value value, int number) {
  numbers_[g][value] = number;
  at_[g].try_emplace(number, value);
  NumberedValue& known = all_[std::size_t(number)];
  if (known.last != int(g)) ++known.seen;
  known.last = int(g);
}

int ValueNumbers::number_of_source(std::size_t g, Value value) {
  const ValueInfo& info = graphs_[g]->values[value];
  std::string key = text(int(info.source), ":");
  bool given = true;
  if (info.source == Source::kConstant) {
    const Array& array = graphs_[g]->constants[info.constant()];
    key += to_string(info.type) + ":";
    given = array.bytes() > kCopiedConstant;
    if (given) {
      key += text(reinterpret_cast<std::uintptr_t>(array.raw()));
    } else {
      key.append(reinterpret_cast<const char*>(array.raw()), array.bytes());
    }
  } else {
    key += text(info.index);
  }
  const auto [at, fresh] = sources_.try_emplace(std::move(key), -1);
  if (fresh) {
    at->second = add(g, value, 0);
    all_.back().given = given;
  }
  return at->second;
}

// True if the node's rule infers the same types for all replicas together.
bool ValueNumbers::infers_alike(std::size_t g, const Node& node) const {
  std::vector<ValueType> in;
  for (Value input : node.inputs) in.push_back(type(of(g, input)));
  Symbols symbols = symbols_;
  try {
    const Inferred inferred = node.op->infer({*node.op, in, node.attrs, symbols, node.regions});
    if (!symbols.replicas.empty() || inferred.locality != node.locality) return false;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      SymbolMap map = maps_[g];
      if (!(inferred.types[i] == map(graphs_[g]->type(node.outputs[i])))) return false;
    }
  } catch (const Error&) {
    return false;
  }
  return true;
}

const ValueNumbers::NumberedNode* ValueNumbers::find(std::uint64_t hash,
                                                     const NumberedNode& wanted) const {
  const auto [first, last] = nodes_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    const NumberedNode& known = at->second;
    const bool same = known.node->op == wanted.node->op && known.inputs == wanted.inputs &&
                      (known.owner < 0 || known.owner == wanted.owner) &&
                      known.node->attrs == wanted.node->attrs &&
                      same_regions(known.node->regions, wanted.node->regions);
    if (same) return &known;
  }
  return nullptr;
}

void ValueNumbers::number_node(std::size_t g, NodeId index) {
  mapped_[g].push_back(maps_[g](graphs_[g]->nodes[index]));
  Node& node = mapped_[g].back();
  for (GraphPtr& region : node.regions) region = as_everywhere(region);
  if (is_ordered_effect(g, node)) {
    anchors_[g].push_back(index);
    const auto place = int(anchors_[g].size());
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const auto [at, fresh] = sources_.try_emplace(text("anchor ", place, ".", i), -1);
      if (fresh) at->second = add(g, node.outputs[i], place);
      see(g, node.outputs[i], at->second);
    }
    return;
  }
  NumberedNode wanted{&node, {}, int(g), {}};
  std::uint64_t hash = node.attrs.hash() ^ std::hash<const OpDef*>()(node.op);
  int after = 0;
  for (Value input : node.inputs) {
    wanted.inputs.push_back(of(g, input));
    hash = hash * 1099511628211u + std::uint64_t(wanted.inputs.back());
    after = std::max(after, this->after(wanted.inputs.back()));
  }
  const NumberedNode* known = find(hash, wanted);
  if (!known) {
    for (Value output : node.outputs) wanted.outputs.push_back(add(g, output, after));
    if (infers_alike(g, node)) wanted.owner = -1;
    known = &nodes_.emplace(hash, wanted)->second;
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    see(g, node.outputs[i], known->outputs[i]);
  }
}

}  // namespace samegrad
