// all_reduce(f(sums)) becomes f(all_reduce(sums)) for a linear f whose coefficients are equal on
// all replicas. The right side is, to the bit, what one device computes of its sums. On the left, f
// rounds each replica's part, and the sum of two trees is not a tree. The parts of a replicated
// value (a regularizer's) sum to the value itself, which is therefore added once, behind the
// all-reduce. A replicated value that is not divided into parts is added once per replica.
#include "passes/hoist_all_reduce.h"

#include <algorithm>
#include <map>

#include "ir/placement.h"
#include "ops/control.h"
#include "passes/passes.h"
#include "passes/pattern.h"
#include "passes/rewrite.h"

namespace samegrad {
namespace {

using Flags = std::vector<bool>;  // per operand or result

bool is_sum_over_replicas(const Node& node) {
  const auto* all_reduce = node.attrs.get_if<AllReduceAttrs>();
  return all_reduce && all_reduce->op == ReduceOp::kSum;
}

// True if a node gives each replica its share of a replicated value.
bool is_share_of_replicated(const Graph& graph, const Node& node, int replicas) {
  using namespace pattern;  // NOLINT(google-build-using-namespace)
  if (node.inputs.empty() || graph.varying(node.inputs[0])) return false;
  if (node.op->has(kReplicaShare)) return true;
  const bool floating = is_floating(graph.type(node.outputs[0]).dtype);
  const auto divided =
      either(op<"div">(any(), constant(replicas)), op<"mul">(any(), constant(1.0 / replicas)));
  return floating && matches(graph, node.outputs[0], divided);
}

// The operand of a value that is multiplied by the number of replicas, or none.
Value times_replicas(const Graph& graph, Value value) {
  using namespace pattern;  // NOLINT(google-build-using-namespace)
  Value operand;
  const auto typed = [&](const Graph&, Value other) {
    return graph.type(other) == graph.type(value) && is_floating(graph.type(other).dtype);
  };
  const auto times = commuted<"mul">(constant(graph.replicas), where(any(operand), typed));
  return matches(graph, value, times) ? operand : kNoValue;
}

// The result of a node without its pair of factors, the number of replicas and a share; or none.
Value whole_of_share(const Graph& graph, const Node& node) {
  if (node.op->has(kReplicaShare)) return times_replicas(graph, node.inputs[0]);
  const auto* all_reduce = node.attrs.get_if<AllReduceAttrs>();
  if (all_reduce && all_reduce->op == ReduceOp::kMean && !graph.varying(node.inputs[0]) &&
      graph.type(node.inputs[0]) == graph.type(node.outputs[0])) {
    return node.inputs[0];
  }
  const Value times = node.outputs.empty() ? kNoValue : times_replicas(graph, node.outputs[0]);
  const Node* share = times == kNoValue ? nullptr : graph.producer(times);
  return share && share->op->has(kReplicaShare) ? share->inputs[0] : kNoValue;
}

void replicate_argument(Graph& graph, std::size_t index) {
  graph.arguments[index].placement = Placement::kReplicated;
  const Value value = argument_values(graph)[index];
  graph.values[value].placement = Placement::kReplicated;
}

// The results of a control node that are to be sums over the replicas, and the operands that are.
struct Request {
  Flags results, operands;
  bool beside = false;  // the node stays as it is, and another one gives the sums
  bool operator==(const Request&) const = default;
};

// The arguments of a body whose operands are sums.
Values given_arguments(const Graph& body, const ControlSignature& layout, const Request& request) {
  const Values arguments = argument_values(body);
  Values given;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::size_t operand = layout.operand_of(i);
    const bool sum = operand != ControlSignature::kNone && request.operands[operand];
    if (sum && arguments[i] != kNoValue) given.push_back(arguments[i]);
  }
  return given;
}

// The results of a body that are to be sums.
Flags wanted_results(const Node& node, std::size_t region, const ControlSignature& layout,
                     const Request& request) {
  Flags wanted(node.regions[region]->outputs.size(), false);
  if (is_condition(node, region)) return wanted;
  // Behind what iterations carry come the entries of histories.
  const bool iterations = node.attrs.get_if<RoundsAttrs>() != nullptr;
  const std::size_t count = iterations ? layout.carried : wanted.size();
  std::copy_n(request.results.begin(), count, wanted.begin());
  return wanted;
}

class AllReduceHoister {
 public:
  AllReduceHoister(const Graph& graph, int replicas)
      : graph_(graph),
        replicas_(replicas),
        rewrite_(graph),
        plain_(graph.values.size(), false),
        summed_(graph.values.size(), false),
        typed_(graph.values.size(), false),
        given_(graph.values.size(), false),
        sum_(graph.values.size(), kNoValue) {}

  // Marks which values are needed as sums and which as parts. Results are sums over the replicas
  // where `results` says so; the arguments in `given` are sums already.
  void trace(const Flags& results, const Values& given) {
    for (Value value : given) given_[value] = true;
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      (results[i] ? summed_ : plain_)[graph_.outputs[i]] = true;
    }
    for (const StateWrite& write : graph_.writes) plain_[write.value] = true;
    for (NodeId n : graph_.nodes.ids().reversed()) trace_back(n);
  }
  bool moved() const { return moved_; }
  bool is_plain(Value value) const { return plain_[value]; }
  bool is_summed(Value value) const { return summed_[value]; }

  Graph run(const Flags& results) {
    for (Value v : graph_.values.ids()) {
      if (given_[v]) replicate_argument(rewrite_.to(), graph_.values[v].argument());
    }
    for (Value v : graph_.values.ids()) {
      if (graph_.values[v].source == Source::kNode || !summed_[v]) continue;
      sum_[v] = given_[v] ? rewrite_(v) : sum_of_leaf(v, -1);
    }
    for (NodeId n : graph_.nodes.ids()) emit(n);
    Graph made = rewrite_.finish();
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i]) made.outputs[i] = sum_[graph_.outputs[i]];
    }
    return made;
  }

 private:
  // ---- what is needed ----

  bool is_wanted(const Node& node, const PerValue<bool>& values) const {
    return std::ranges::any_of(node.outputs, [&](Value v) { return values[v]; });
  }

  void trace_back(NodeId index) {
    const Node& node = graph_.nodes[index];
    if (holds(node, kSideEffect)) plain_[node.outputs[0]] = true;
    // The type of a value is that of its sum as well.
    for (Value output : node.outputs) {
      if (typed_[output] && !summed_[output]) plain_[output] = true;
    }
    if (is_wanted(node, summed_)) trace_sum(index);
    if (!is_wanted(node, plain_)) return;
    if (moves(node)) {
      summed_[node.inputs[0]] = moved_ = true;
    } else if (!requests_.count(index) || requests_[index].beside) {
      for (std::size_t k = 0; k < node.inputs.size(); ++k) need(node, k, false);
    }
  }

  void need(const Node& node, std::size_t k, bool sum) {
    const bool typed = !node.op->reads(k) && !node.op->has(kRandomOp);
    (typed ? typed_ : sum ? summed_ : plain_)[node.inputs[k]] = true;
  }

  void trace_sum(NodeId index) {
    const Node& node = graph_.nodes[index];
    if (node.op->has(kControl) && request(index)) return;
    if (is_share(node)) {
      plain_[node.inputs[0]] = true;
      return;
    }
    if (!takes_parts(graph_, node)) {  // a sum itself
      for (Value output : node.outputs) plain_[output] = true;
      return;
    }
    for (std::size_t k = 0; k < node.inputs.size(); ++k) need(node, k, takes_sum_of(node, k));
  }

  bool is_share(const Node& node) const { return is_share_of_replicated(graph_, node, replicas_); }
  // True if the all-reduce becomes a function of other sums.
  bool moves(const Node& node) const {
    if (!is_sum_over_replicas(node)) return false;
    const Node* input = graph_.producer(node.inputs[0]);
    return is_function_of_sums(graph_, node.inputs[0]) || (input && is_share(*input));
  }

  bool takes_sum_of(const Node& node, std::size_t k) const {
    if (!node.op->reads(k)) return false;
    if (graph_.placement(node.inputs[k]) == Placement::kPartial) return true;
    return node.op->linearity == Linearity::kSum && node.op->scales(k);
  }

  // True if branches or iterations can give sums over the replicas in place of parts.
  bool request(NodeId index) {
    const Node& node = graph_.nodes[index];
    const ControlSignature layout(node);
    Request asked{{}, Flags(node.inputs.size(), false)};
    for (Value output : node.outputs) {
      asked.results.push_back(summed_[output] && graph_.varying(output));
    }
    // Operands that bodies need as they are stay so, and iterations ask for more results in turn.
    Flags kept(node.inputs.size(), false);
    while (true) {
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        if (!asked.results[i]) continue;
        if (plain_[node.outputs[i]] || is_remembered(node, i)) {
          if (holds(node, kSideEffect)) return false;
          asked.beside = true;
        }
        if (i >= layout.carried) continue;
        if (kept[layout.operand + i]) return false;
        asked.operands[layout.operand + i] = true;
      }
      Request next = asked;
      for (std::size_t k = 0; k < kept.size(); ++k) next.operands[k] = next.operands[k] && !kept[k];
      extend(node, layout, next, kept);
      if (next == asked) break;
      asked = std::move(next);
    }
    for (std::size_t k = 0; k < node.inputs.size(); ++k) need(node, k, asked.operands[k]);
    requests_[index] = std::move(asked);
    return true;
  }

  // Adds to the request what the bodies need to meet it.
  void extend(const Node& node, const ControlSignature& layout, Request& request,
              Flags& kept) const {
    const Request met = request;
    for (std::size_t r = 0; r < node.regions.size(); ++r) {
      const Graph& region = *node.regions[r];
      AllReduceHoister inside(region, replicas_);
      inside.trace(wanted_results(node, r, layout, met), given_arguments(region, layout, met));
      const Values arguments = argument_values(region);
      for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::size_t operand = layout.operand_of(i);
        if (operand == ControlSignature::kNone || arguments[i] == kNoValue) continue;
        if (inside.is_plain(arguments[i])) {
          kept[operand] = true;
          request.operands[operand] = false;
        } else if (inside.is_summed(arguments[i]) && !kept[operand]) {
          request.operands[operand] = true;
          if (layout.is_carried(i)) request.results[i - layout.argument] = true;
        }
      }
    }
  }

  // True if the derivative of a loop reads the variable's value before each iteration.
  bool is_remembered(const Node& node, std::size_t variable) const {
    const ControlSignature layout(node);
    if (layout.carried == 0) return false;
    for (const Node& reader : graph_.nodes) {
      for (std::size_t h = 0; h < reader.inputs.size(); ++h) {
        if (reader.inputs[h] != node.outputs[layout.carried]) continue;
        const ControlSignature signature(reader);
        if (h >= signature.operand) return true;  // not as a history
        // Only nodes that the derivative's iteration needs count as readers.
        const Graph iteration = eliminate_dead(body(reader.regions));
        if (is_read(iteration, argument_values(iteration)[signature.entries[h] + variable]))
          return true;
      }
    }
    return false;
  }

  // ---- the new graph ----

  void emit(NodeId index) {
    const Node& node = graph_.nodes[index];
    if (const auto found = requests_.find(index); found != requests_.end()) {
      if (found->second.beside) rewrite_.copy(with_history(node));
      return emit_control(node, found->second);
    }
    if (is_wanted(node, plain_)) {
      if (moves(node)) {
        rewrite_.replace(node.outputs[0], sum_[node.inputs[0]]);
      } else {
        rewrite_.copy(with_history(node));
      }
    }
    if (!is_wanted(node, summed_)) return;
    if (takes_parts(graph_, node)) {
      emit_function(node);
    } else {
      for (Value output : node.outputs) {
        if (!summed_[output]) continue;
        sum_[output] = sum_of_leaf(output, node.location);
      }
    }
    for (Value output : node.outputs) {
      if (rewrite_(output) == kNoValue) rewrite_.replace(output, sum_[output]);
    }
  }

  void emit_function(const Node& node) {
    Values inputs;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Value input = node.inputs[k];
      inputs.push_back(takes_sum_of(node, k) ? sum_[input] : rewrite_(input));
    }
    // The sum of the parts' shares is that of the parts, divided.
    const Values made =
        node.op->has(kReplicaShare)
            ? Values{rewrite_.builder()("div", {inputs[0], replicas_as(node.inputs[0])})}
            : rewrite_.builder().apply(*node.op, inputs, node.attrs, node.regions);
    rewrite_.to().nodes.back().location = node.location;
    for (std::size_t i = 0; i < made.size(); ++i) sum_[node.outputs[i]] = made[i];
  }

  // Their number in the dtype of the value.
  Value replicas_as(Value value) {
    return rewrite_.builder().number(graph_.type(value).dtype, replicas_);
  }

  Value sum_of_leaf(Value value, std::int32_t location) {
    const Node* node = graph_.producer(value);
    if (node && is_share(*node)) return rewrite_(node->inputs[0]);
    Builder& b = rewrite_.builder();
    Value sum;
    if (graph_.varying(value)) {
      sum = b("all_reduce", {rewrite_(value)});
    } else {
      sum = b("mul", {rewrite_(value), replicas_as(value)});
    }
    rewrite_.to().nodes.back().location = location;
    return sum;
  }

  void emit_control(const Node& node, const Request& request) {
    const ControlSignature layout(node);
    Node fresh = with_history(node);
    for (std::size_t r = 0; r < fresh.regions.size(); ++r) {
      const GraphPtr region = fresh.regions[r];
      const Flags wanted = wanted_results(fresh, r, layout, request);
      AllReduceHoister inside(*region, replicas_);
      inside.trace(wanted, given_arguments(*region, layout, request));
      fresh.regions[r] = std::make_shared<const Graph>(inside.run(wanted));
    }
    Values inputs;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Value input = node.inputs[k];
      inputs.push_back(request.operands[k] ? sum_[input] : rewrite_(input));
    }
    const Values made = rewrite_.builder().apply(*node.op, inputs, fresh.attrs, fresh.regions);
    rewrite_.to().nodes.back().location = node.location;
    for (std::size_t i = 0; i < made.size(); ++i) {
      const Value output = node.outputs[i];
      if (!request.beside) rewrite_.replace(output, made[i]);
      if (!summed_[output]) continue;
      sum_[output] = request.results[i] ? made[i] : sum_of_leaf(output, node.location);
    }
  }

  // A node that reads the history of a loop whose variables are sums now.
  Node with_history(const Node& node) const {
    const ControlSignature signature(node);
    if (!node.attrs.get_if<ReplayAttrs>()) return node;
    Graph iteration = body(node.regions);
    for (std::size_t h = 0; h < signature.operand; ++h) {
      const Node* loop = graph_.producer(node.inputs[h]);
      SG_ASSERT(loop, "no node of the graph makes history %", node.inputs[h]);
      const auto found = requests_.find(graph_.nodes.id_of(*loop));
      const std::size_t carried = ControlSignature(*loop).carried;
      if (found == requests_.end() || found->second.beside) continue;
      if (node.inputs[h] != loop->outputs[carried]) continue;
      for (std::size_t i = 0; i < carried; ++i) {
        if (found->second.results[i]) replicate_argument(iteration, signature.entries[h] + i);
      }
    }
    Node fresh = node;
    fresh.regions = {std::make_shared<const Graph>(std::move(iteration))};
    return fresh;
  }

  const Graph& graph_;
  int replicas_;
  Rewriter rewrite_;
  PerValue<bool> plain_;                // needed as they are
  PerValue<bool> summed_;               // whose sum over the replicas is needed
  PerValue<bool> typed_;                // whose type is
  PerValue<bool> given_;                // arguments that are sums already
  PerValue<Value> sum_;                 // in the new graph
  std::map<NodeId, Request> requests_;  // of control nodes
  bool moved_ = false;
};

}  // namespace

namespace {

// Cancels pairs of factors: n * x divided into shares of n replicas is x, and so are n times a
// share of x and the mean of n equal values. The product and the quotient would each round.
Graph cancel_shares(Graph graph) {
  const auto cancels = [&](const Node& node) { return whole_of_share(graph, node) != kNoValue; };
  if (graph.replicas == 1 || std::ranges::none_of(graph.nodes, cancels)) return graph;
  Rewriter rewrite(graph);
  for (const Node& node : graph.nodes) {
    if (cancels(node)) {
      rewrite.replace(node.outputs[0], rewrite(whole_of_share(graph, node)));
    } else {
      rewrite.copy(node);
    }
  }
  return rewrite.finish();
}

}  // namespace

Graph hoist_all_reduce(Graph graph) {
  graph = cancel_shares(std::move(graph));
  const Flags none(graph.outputs.size(), false);
  AllReduceHoister commute(graph, graph.replicas);
  commute.trace(none, {});
  if (!commute.moved()) return graph;
  return commute.run(none);
}

}  // namespace samegrad
