// Hash and equality of programs: what the cache of compiled plans asks.
#include <algorithm>
#include <cstring>

#include "ir/graph.h"
#include "ir/op_def.h"

namespace samegrad {
namespace {

class Hasher {
 public:
  void bytes(const void* data, std::size_t n) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < n; ++i) state_ = (state_ ^ p[i]) * 1099511628211ull;
  }
  template <class T>
  void number(T value) {
    bytes(&value, sizeof value);
  }
  std::uint64_t state() const { return state_; }

 private:
  std::uint64_t state_ = 14695981039346656037ull;
};

// An array that each call brings is none.
bool same_bytes(const Array& a, const Array& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.bytes() == b.bytes() &&
         (a.raw() == b.raw() || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

bool same_type(const Array& a, const Array& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape();
}

bool same_constants(const Graph& a, const Graph& b, std::vector<std::size_t>& different) {
  if (a.constants.size() != b.constants.size()) return false;
  for (std::size_t i = 0; i < a.constants.size(); ++i) {
    const Array &x = a.constants[i], &y = b.constants[i];
    if (!same_type(x, y)) return false;
    if (same_bytes(x, y)) continue;
    if (x.shape().rank() > 0 || !x.defined() || !y.defined()) return false;
    different.push_back(i);
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

using GraphPtr = std::shared_ptr<const Graph>;

// Bodies of control flow are compared by what they compute.
bool same_attr(const std::pair<std::string, AttrValue>& a,
               const std::pair<std::string, AttrValue>& b) {
  const auto* x = std::get_if<GraphPtr>(&a.second);
  const auto* y = std::get_if<GraphPtr>(&b.second);
  if (!x || !y) return a == b;
  std::vector<std::size_t> different;
  return a.first == b.first && same_program(**x, **y, different) && different.empty();
}

bool same_node(const Node& a, const Node& b) {
  return a.op == b.op && a.inputs == b.inputs && a.outputs == b.outputs &&
         same_attrs(a.attrs, b.attrs);
}

template <class T, class Same>
bool all_same(const std::vector<T>& a, const std::vector<T>& b, Same same) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same);
}

struct AttrHasher {
  Hasher& hash;
  void operator()(bool value) const { hash.number(value); }
  void operator()(std::int64_t value) const { hash.number(value); }
  void operator()(const Number& value) const { hash.number(value.bits()); }
  void operator()(DType value) const { hash.number(value); }
  void operator()(const std::string& value) const { hash.bytes(value.data(), value.size()); }
  void operator()(const CanBeWithoutValue& /*value*/) const {}
  void operator()(const GraphPtr& body) const { hash.number(hash_of(*body)); }
  void operator()(const std::vector<std::int64_t>& values) const {
    hash.number(values.size());
    hash.bytes(values.data(), values.size() * sizeof(std::int64_t));
  }
};

}  // namespace

bool same_attrs(const Attrs& a, const Attrs& b) {
  const auto &x = a.items(), &y = b.items();
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), same_attr);
}

std::uint64_t hash_of(const Attrs& attrs) {
  Hasher hash;
  for (const auto& [name, value] : attrs.items()) {
    hash.bytes(name.data(), name.size());
    hash.number(value.index());
    std::visit(AttrHasher{hash}, value);
  }
  return hash.state();
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
    hash.number(node.op);
    for (Value input : node.inputs) hash.number(input);
    hash.number(hash_of(node.attrs));
  }
  for (Value output : graph.outputs) hash.number(output);
  hash.number(graph.variables.size());
  for (const StateWrite& write : graph.writes) hash.number(write.value);
  return hash.state();
}

bool same_program(const Graph& a, const Graph& b, std::vector<std::size_t>& different) {
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
