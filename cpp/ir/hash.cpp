// Hash and equality of programs: what the cache of compiled plans asks.
#include <algorithm>
#include <cstring>

#include "base/hasher.h"
#include "ir/graph.h"
#include "ir/op_def.h"

namespace samegrad {
namespace {

// Arrays that each call supplies are undefined here, and equal each other.
bool same_bytes(const Array& a, const Array& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.bytes() == b.bytes() &&
         (a.raw() == b.raw() || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

bool same_type(const Array& a, const Array& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape();
}

bool same_constants(const Graph& a, const Graph& b, std::vector<ConstantId>& different) {
  if (a.constants.size() != b.constants.size()) return false;
  for (ConstantId c : a.constants.ids()) {
    const Array &x = a.constants[c], &y = b.constants[c];
    if (!same_type(x, y)) return false;
    if (same_bytes(x, y)) continue;
    if (x.shape().rank() > 0 || !x.defined() || !y.defined()) return false;
    different.push_back(c);
  }
  return true;
}

bool same_value(const ValueInfo& a, const ValueInfo& b) {
  return a.type == b.type && a.source == b.source && a.index == b.index && a.result == b.result &&
         a.placement == b.placement;
}

bool same_state(const StateWrite& a, const StateWrite& b) {
  return a.variable == b.variable && a.value == b.value;
}

bool same_node(const Node& a, const Node& b) {
  return a.op == b.op && a.inputs == b.inputs && a.outputs == b.outputs && a.attrs == b.attrs &&
         same_regions(a.regions, b.regions);
}

template <class List, class Same>
bool all_same(const List& a, const List& b, Same same) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same);
}

}  // namespace

bool same_regions(std::span<const GraphPtr> a, std::span<const GraphPtr> b) {
  return std::ranges::equal(a, b, [](const GraphPtr& x, const GraphPtr& y) {
    std::vector<ConstantId> different;
    return x == y || (same_program(*x, *y, different) && different.empty());
  });
}

std::uint64_t hash_of(const Graph& graph) {
  Hasher hash;
  hash.number(graph.replicas);
  for (const ValueInfo& value : graph.values) {
    hash.number(value.source);
    hash.number(value.index);
    hash.number(value.type.dtype);
    hash.bytes(value.type.shape.begin(),
               sizeof(std::int64_t) * std::size_t(value.type.shape.rank()));
  }
  for (const Node& node : graph.nodes) {
    hash.bytes(node.op->name.data(), node.op->name.size());  // equal in all processes
    for (Value input : node.inputs) hash.number(input);
    hash.number(node.attrs.hash());
    for (const GraphPtr& region : node.regions) hash.number(hash_of(*region));
  }
  for (Value output : graph.outputs) hash.number(output);
  hash.number(graph.variables.size());
  for (const StateWrite& write : graph.writes) hash.number(write.value);
  return hash.state();
}

bool same_program(const Graph& a, const Graph& b, std::vector<ConstantId>& different) {
  return a.replicas == b.replicas && a.outputs == b.outputs && a.symbols == b.symbols &&
         all_same(a.calls, b.calls,
                  [](const CallRange& x, const CallRange& y) {
                    return x.begin == y.begin && x.end == y.end;
                  }) &&
         all_same(a.values, b.values, same_value) && all_same(a.nodes, b.nodes, same_node) &&
         all_same(a.variables, b.variables,
                  [](const VariableSlot& x, const VariableSlot& y) {
                    return x.components == y.components;
                  }) &&
         all_same(a.writes, b.writes, same_state) && all_same(a.rereads, b.rereads, same_state) &&
         same_constants(a, b, different);
}

}  // namespace samegrad
