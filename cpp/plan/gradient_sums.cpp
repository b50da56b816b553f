#include "plan/gradient_sums.h"

#include <algorithm>
#include <set>

#include "ir/op_def.h"

namespace samegrad {
namespace {

bool is_sum(const Graph& graph, const Node& node) {
  if (node.op->has(kCollective)) return !node.op->exchange;
  return node.locality == Locality::kTree && !graph.varying(node.outputs[0]);
}

// The sums that a new value of a variable is made of, element by element.
class Search {
 public:
  explicit Search(const Graph& graph) : graph_(graph) {}

  std::vector<Value> sums_of(Value update) {
    std::vector<Value> sums, open = {update};
    std::set<Value> seen;
    const std::int64_t elements = size_of_type(update);
    while (!open.empty()) {
      const Value value = open.back();
      open.pop_back();
      if (size_of_type(value) != elements || !seen.insert(value).second) continue;
      const Node* node = graph_.producer(value);
      if (!node) continue;
      if (is_sum(graph_, *node)) {
        sums.push_back(value);
      } else if (node->op->has(kElementwise) || node->op->has(kAliases)) {
        open.insert(open.end(), node->inputs.begin(), node->inputs.end());
      }
    }
    std::ranges::sort(sums);
    return sums;
  }

 private:
  // -1: it depends on the number of examples.
  std::int64_t size_of_type(Value value) const {
    const ValueType& type = graph_.type(value);
    return type.batched() || type.shape.symbolic() ? -1 : type.shape.size(0, type.shape.rank());
  }

  const Graph& graph_;
};

}  // namespace

std::vector<GradientSum> gradient_sums(const Graph& graph) {
  std::vector<StateWrite> writes = graph.writes;
  std::ranges::stable_sort(writes, {}, &StateWrite::variable);
  Search search(graph);
  std::vector<GradientSum> found;
  for (const StateWrite& write : writes) {
    for (const Value sum : search.sums_of(write.value)) {
      if (std::ranges::find(found, sum, &GradientSum::sum) != found.end()) continue;
      found.push_back({write.variable, sum});
    }
  }
  return found;
}

}  // namespace samegrad
