#include "plan/element_writes.h"

#include <algorithm>
#include <string_view>

#include "ir/op_def.h"
#include "ops/control.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace samegrad {
namespace {

Graph without_dead(const Graph& graph) {
  return eliminate_dead(propagate_copies(graph));
}

// True if a reader needs the variable's value before each iteration.
bool is_remembered(const Graph& graph, const Node& loop, std::size_t variable) {
  const Value history = loop.outputs[carried_values(loop)];
  if (std::ranges::find(graph.outputs, history) != graph.outputs.end()) return true;
  for (const Node& reader : graph.nodes) {
    for (std::size_t k = 0; k < reader.inputs.size(); ++k) {
      if (reader.inputs[k] != history) continue;
      const ControlSignature signature(reader);
      if (k >= signature.operand) return true;  // not as a history
      const Graph iteration = without_dead(body(reader.regions));
      const Values arguments = argument_values(iteration);
      if (is_read(iteration, arguments[signature.entries[k] + variable])) return true;
    }
  }
  return false;
}

class Chain {
 public:
  Chain(const Graph& body, const PerValue<int>& uses) : body_(body), uses_(uses) {}

  struct Write {
    bool adds;
    Value index, row;
  };

  // From the variable after an iteration back to what it was before it; nothing where it does more
  // than getting rows, or a value in between is read.
  std::vector<Write> writes(Value before, Value after) const {
    std::vector<Write> found;
    while (after != before) {
      const Node* node = body_.producer(after);
      if (!node || uses_[after] != 1) return {};
      if (is_op<"write_row">(node)) {
        found.push_back({false, node->inputs[1], node->inputs[2]});
        after = node->inputs[0];
        continue;
      }
      const std::size_t placed = placed_row(*node);
      if (placed > 1) return {};
      const Node& row = *body_.producer(node->inputs[placed]);
      found.push_back({true, row.inputs[1], row.inputs[0]});
      after = node->inputs[1 - placed];
    }
    std::ranges::reverse(found);
    return found;
  }

 private:
  // The operand of an addition that is a row placed in zeros; 2: neither.
  std::size_t placed_row(const Node& node) const {
    if (!is_op<"add">(node) || body_.type(node.inputs[0]) != body_.type(node.inputs[1])) return 2;
    for (std::size_t k : {1, 0}) {
      if (is_op<"place_row">(body_.producer(node.inputs[k]))) return k;
    }
    return 2;
  }

  const Graph& body_;
  const PerValue<int>& uses_;
};

}  // namespace

std::vector<ElementWrite> take_element_writes(const Graph& graph, const Node& loop, Graph& body) {
  if (!loop.attrs.get_if<RoundsAttrs>()) return {};
  Graph clean = without_dead(body);
  const PerValue<int> uses = count_uses(clean);
  const Values arguments = argument_values(clean);
  const ControlSignature signature(loop);
  std::vector<ElementWrite> taken;
  Values results;
  for (std::size_t i = 0; i < signature.carried; ++i) {
    const Value before = arguments[signature.argument + i];
    const std::vector<Chain::Write> writes = Chain(clean, uses).writes(before, clean.outputs[i]);
    if (writes.empty() || is_remembered(graph, loop, i)) continue;
    for (const Chain::Write& write : writes) {
      taken.push_back({i, write.adds});
      results.insert(results.end(), {write.index, write.row});
    }
    clean.outputs[i] = writes[0].index;
  }
  if (taken.empty()) return {};
  clean.outputs.insert(clean.outputs.end(), results.begin(), results.end());
  body = eliminate_dead(std::move(clean));
  return taken;
}

}  // namespace samegrad
