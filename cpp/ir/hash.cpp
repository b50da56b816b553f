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

bool same_constant(const Array& a, const Array& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.raw() == b.raw() || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

bool same_value(const ValueInfo& a, const ValueInfo& b) {
  return a.type == b.type && a.source == b.source && a.index == b.index && a.result == b.result &&
         a.placement == b.placement;
}

bool same_state(const StateWrite& a, const StateWrite& b) {
  return a.cell == b.cell && a.value == b.value;
}

using GraphPtr = std::shared_ptr<const Graph>;

// Bodies of control flow are compared by what they compute.
bool same_attr(const std::pair<std::string, AttrValue>& a,
               const std::pair<std::string, AttrValue>& b) {
  const auto* x = std::get_if<GraphPtr>(&a.second);
  const auto* y = std::get_if<GraphPtr>(&b.second);
  return x && y ? same_program(**x, **y) : a == b;
}

bool same_node(const Node& a, const Node& b) {
  const auto &x = a.attrs.items(), &y = b.attrs.items();
  return a.op == b.op && a.inputs == b.inputs && a.outputs == b.outputs &&
         std::equal(x.begin(), x.end(), y.begin(), y.end(), same_attr);
}

template <class T, class Same>
bool all_same(const std::vector<T>& a, const std::vector<T>& b, Same same) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same);
}

}  // namespace

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
    for (const auto& [name, value] : node.attrs.items()) {
      if (const auto* body = std::get_if<GraphPtr>(&value)) {
        hash.number(hash_of(**body));
        continue;
      }
      const std::string printed = to_string(value);
      hash.bytes(printed.data(), printed.size());
    }
  }
  for (Value output : graph.outputs) hash.number(output);
  for (const StateRead& read : graph.variables) hash.number(read.cell.get());
  for (const StateWrite& write : graph.writes) hash.number(write.value);
  return hash.state();
}

bool same_program(const Graph& a, const Graph& b) {
  return a.replicas == b.replicas && a.outputs == b.outputs && a.symbols == b.symbols &&
         all_same(a.calls, b.calls,
                  [](const CallRange& x, const CallRange& y) {
                    return x.begin == y.begin && x.end == y.end;
                  }) &&
         all_same(a.values, b.values, same_value) && all_same(a.nodes, b.nodes, same_node) &&
         all_same(a.constants, b.constants, same_constant) &&
         all_same(a.variables, b.variables,
                  [](const StateRead& x, const StateRead& y) { return x.cell == y.cell; }) &&
         all_same(a.writes, b.writes, same_state) && all_same(a.rereads, b.rereads, same_state);
}

}  // namespace samegrad
