#include "autodiff/gradient.h"

#include <algorithm>

#include "autodiff/control_gradient.h"
#include "autodiff/gradient_rule.h"
#include "base/error.h"
#include "ops/attributes.h"

namespace samegrad {
namespace {

class BackwardPass {
 public:
  BackwardPass(Builder& b, const std::function<bool(NodeId)>& recorded)
      : b_(b), recorded_(recorded), nodes_(b.graph().nodes.ids()) {
    reached_.assign(b.graph().values.size(), false);
    ct_.assign(b.graph().values.size(), kNoValue);
    for (const CallRange& call : b.graph().calls) {
      if (call.end <= call.begin) continue;
      if (recorded(call.begin) || recorded(call.end - 1)) calls_.push_back(call);
    }
    // The backward pass meets the last call first, and of two that end together the outer one.
    std::ranges::sort(calls_, [](const CallRange& x, const CallRange& y) {
      return x.end != y.end ? x.end > y.end : x.begin < y.begin;
    });
  }

  ~BackwardPass() {
    for (; !open_.empty(); open_.pop_back()) b_.end_call();  // after an error
  }
  BackwardPass(const BackwardPass&) = delete;
  BackwardPass& operator=(const BackwardPass&) = delete;

  void mark_sources(std::span<const Value> sources) {
    sources_.assign(sources.begin(), sources.end());
    for (Value source : sources) reached_[source] = true;
    for (NodeId i : nodes_) {
      const Node& node = b_.graph().nodes[i];
      if (!recorded_(i) || node.op->has(kNoGradient) || !takes_reached(node)) continue;
      if (node.op->has(kGradientRule)) reach_results(node);
      for (Value output : node.outputs) {
        if (has_gradient(b_.graph(), output)) reached_[output] = true;
      }
    }
  }

  void add(Value value, Value ct) {
    Value& sum = sum_of(value);
    sum = sum == kNoValue ? ct : add_cotangents(b_, sum, ct);
  }

  bool reached(Value value) const { return reached_[value]; }
  Value ct(Value value) const { return ct_[value]; }

  void run() {
    std::size_t next = 0;
    for (NodeId i : nodes_.reversed()) {
      for (; next < calls_.size() && calls_[next].end == i + 1; ++next) {
        b_.begin_call(calls_[next].run);
        open_.push_back({calls_[next], {}});
      }
      const Node& node = b_.graph().nodes[i];
      if (recorded_(i) && !node.op->has(kNoGradient) && takes_reached(node)) {
        visit(Node(node));  // a copy: building vjps grows the vector of nodes
      }
      while (!open_.empty() && open_.back().range.begin == i) leave_call();
    }
  }

 private:
  // A call that the walk is inside of: the cotangents of values that it uses, summed.
  struct OpenCall {
    CallRange range;
    std::vector<std::pair<Value, Value>> sums;
  };

  NodeId maker_of(Value value) const {
    const ValueInfo& info = b_.graph().values[value];
    return info.source == Source::kNode ? info.node() : kNoNode;
  }

  Value& sum_of(Value value) {
    if (open_.empty() || maker_of(value) >= open_.back().range.begin) {
      return ct_[value];
    }
    auto& sums = open_.back().sums;
    const auto known = std::ranges::find(sums, value, &std::pair<Value, Value>::first);
    if (known != sums.end()) return known->second;
    return sums.emplace_back(value, kNoValue).second;
  }

  void leave_call() {
    const OpenCall call = std::move(open_.back());
    open_.pop_back();
    Values leaving;
    for (const auto& [value, sum] : call.sums) leaving.push_back(sum);
    for (Value source : sources_) {
      const NodeId maker = maker_of(source);
      const bool inside = maker >= call.range.begin && maker < call.range.end;
      if (inside && ct(source) != kNoValue) leaving.push_back(ct(source));
    }
    b_.end_call(leaving);
    for (const auto& [value, sum] : call.sums) add(value, sum);
  }

  bool takes_reached(const Node& node) const {
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.op->reads(k) && reached_[node.inputs[k]]) return true;
    }
    return false;
  }

  // Results of a gradient rule are operands of all nodes behind it.
  void reach_results(const Node& rule) {
    bool reaches = false;
    for (std::int64_t place : ruled_operands(rule)) {
      reaches = reaches || reached_[rule.inputs[std::size_t(place)]];
    }
    for (std::size_t i = 0; reaches && i < ruled_results(rule); ++i) {
      if (has_gradient(b_.graph(), rule.inputs[i])) reached_[rule.inputs[i]] = true;
    }
  }

  void visit_rule(const Node& rule) {
    Values cts;
    bool flows = false;
    for (std::size_t i = 0; i < ruled_results(rule); ++i) {
      cts.push_back(ct(rule.inputs[i]));
      flows |= cts.back() != kNoValue;
    }
    if (!flows) return;
    const Builder::Deriving deriving(b_, rule.location);
    const Values made = apply_rule(b_, rule, std::move(cts));
    for (std::size_t i = 0; i < made.size(); ++i) {
      const Value operand = rule.inputs[std::size_t(ruled_operands(rule)[i])];
      if (made[i] == kNoValue || !reached(operand)) continue;
      add(operand, sum_to_type(b_, made[i], b_.type(operand), operand));
    }
  }

  void visit(const Node& node) {
    if (node.op->has(kGradientRule)) return visit_rule(node);
    Values cts;
    bool flows = false;
    for (Value output : node.outputs) {
      cts.push_back(ct_[output]);
      flows |= cts.back() != kNoValue;
    }
    if (!flows) return;
    const Builder::Deriving deriving(b_, node.location);
    const VjpArgs args{b_, node.attrs, node.inputs, node.outputs, cts};
    const Values result = node.op->has(kControl) ? derive_control(node, args) : derive(node, args);
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Value input = node.inputs[k];
      if (k >= result.size() || result[k] == kNoValue || !reached(input)) continue;
      Value ct = result[k];
      if (node.op->has(kElementwise)) ct = sum_to_type(b_, ct, b_.type(input), input);
      add(input, ct);
    }
  }

  // Branches and iterations add to the sums as the same operations would where the program has them
  // one after the other.
  Values derive_control(const Node& node, const VjpArgs& args) {
    std::vector<bool> wanted;
    Values sums;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Value input = node.inputs[k];
      wanted.push_back(reached(input) && has_gradient(b_.graph(), input));
      const auto here = node.inputs.begin() + std::ptrdiff_t(k);
      const bool first = std::find(node.inputs.begin(), here, input) == here;
      sums.push_back(wanted[k] && first ? sum_of(input) : kNoValue);
    }
    Values result = control_gradient(node, args, wanted, sums);
    for (std::size_t k = 0; k < result.size(); ++k) {
      if (result[k] == kNoValue || sums[k] == kNoValue) continue;
      sum_of(node.inputs[k]) = result[k];
      result[k] = kNoValue;
    }
    return result;
  }

  Values derive(const Node& node, const VjpArgs& args) {
    if (node.op->vjp) return node.op->vjp(args);
    if (!node.op->decompose) {
      fail(ErrorKind::kNotImplemented, node.op->name,
           "has no derivative; stop the gradient with samegrad.stop_gradient if none should flow.");
    }
    // The derivative of a fused op is that of its decomposition.
    const NodeId before = b_.graph().nodes.next_id();
    const Values plain = node.op->decompose(args);
    return gradient(b_, plain, args.ct, node.inputs, [before](NodeId i) { return i >= before; });
  }

  Builder& b_;
  const std::function<bool(NodeId)>& recorded_;
  IdRange<NodeId> nodes_;
  PerValue<bool> reached_;
  PerValue<Value> ct_;
  Values sources_;
  std::vector<CallRange> calls_;
  std::vector<OpenCall> open_;
};

}  // namespace

Value sum_to_type(Builder& b, Value ct, const ValueType& operand_type, Value operand) {
  const ValueType type = b.type(ct);
  const int lead = type.shape.rank() - operand_type.shape.rank();
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis < type.shape.rank(); ++axis) {
    const bool missing = axis < lead;
    const auto& symbols = b.graph().symbols;
    if (missing || (is_one(symbols, operand_type, axis - lead) && !is_one(symbols, type, axis))) {
      axes.push_back(axis);
    }
  }
  const Value sum =
      axes.empty() ? ct : b("reduce_sum", {ct}, ReduceAttrs{.axes = axes, .keepdims = true});
  const ValueType& made = b.type(sum);
  const bool same = made.shape == operand_type.shape && made.batch == operand_type.batch;
  return same ? sum : b("reshape_like", {sum, operand});
}

Values gradient(Builder& b, std::span<const Value> targets, std::span<const Value> seeds,
                std::span<const Value> sources, const std::function<bool(NodeId)>& recorded,
                std::span<const Value> sums) {
  BackwardPass walk(b, recorded);
  walk.mark_sources(sources);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] != kNoValue) walk.add(sources[i], sums[i]);
  }
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!walk.reached(targets[i])) continue;
    const bool given = i < seeds.size() && seeds[i] != kNoValue;
    // A seed of kNoValue among given ones (of an unused output) adds nothing.
    if (!given && !seeds.empty()) continue;
    walk.add(targets[i], given ? seeds[i] : b("full_like", {targets[i]}, FullAttrs{.value = 1.0}));
  }
  walk.run();
  Values result;
  for (Value source : sources) result.push_back(walk.ct(source));
  return result;
}

}  // namespace samegrad
