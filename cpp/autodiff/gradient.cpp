#include "autodiff/gradient.h"

#include "autodiff/control_gradient.h"
#include "base/error.h"

namespace samegrad {
namespace {

class Walk {
 public:
  Walk(Builder& b, const std::function<bool(std::int32_t)>& recorded)
      : b_(b), recorded_(recorded), nodes_(std::int32_t(b.graph().nodes.size())) {
    reached_.resize(b.graph().values.size(), false);
    ct_.resize(b.graph().values.size(), kNoValue);
  }

  void mark_sources(std::span<const Value> sources) {
    for (Value source : sources) reached_[std::size_t(source)] = true;
    for (std::int32_t i = 0; i < nodes_; ++i) {
      const Node& node = b_.graph().nodes[std::size_t(i)];
      if (!recorded_(i) || node.op->has(kNoGradient) || !takes_reached(node)) continue;
      for (Value output : node.outputs) {
        if (is_floating(b_.type(output).dtype)) reached_[std::size_t(output)] = true;
      }
    }
  }

  void add(Value value, Value ct) {
    Value& sum = ct_[std::size_t(value)];
    sum = sum == kNoValue ? ct : b_("add", {sum, ct});
  }

  bool reached(Value value) const { return reached_[std::size_t(value)]; }
  Value ct(Value value) const { return ct_[std::size_t(value)]; }

  void run() {
    for (std::int32_t i = nodes_ - 1; i >= 0; --i) {
      // By value: building vjps grows the vector of nodes.
      const Node node = b_.graph().nodes[std::size_t(i)];
      if (recorded_(i) && !node.op->has(kNoGradient) && takes_reached(node)) visit(node);
    }
  }

 private:
  bool takes_reached(const Node& node) const {
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.op->reads(k) && reached_[std::size_t(node.inputs[k])]) return true;
    }
    return false;
  }

  void visit(const Node& node) {
    Values cts;
    bool flows = false;
    for (Value output : node.outputs) {
      cts.push_back(ct_[std::size_t(output)]);
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

  Values derive_control(const Node& node, const VjpArgs& args) {
    std::vector<bool> wanted;
    for (Value input : node.inputs) {
      wanted.push_back(reached(input) && is_floating(b_.type(input).dtype));
    }
    return control_gradient(node, args, wanted);
  }

  Values derive(const Node& node, const VjpArgs& args) {
    if (node.op->vjp) return node.op->vjp(args);
    if (!node.op->decompose) {
      fail(ErrorKind::kNotImplemented, node.op->name,
           "has no derivative; stop the gradient with samegrad.stop_gradient if none should flow.");
    }
    // The derivative of a fused row is that of the plain rows it stands for.
    const auto before = std::int32_t(b_.graph().nodes.size());
    const Values plain = node.op->decompose(args);
    return gradient(b_, plain, args.ct, node.inputs,
                    [before](std::int32_t i) { return i >= before; });
  }

  Builder& b_;
  const std::function<bool(std::int32_t)>& recorded_;
  std::int32_t nodes_;
  std::vector<bool> reached_;
  Values ct_;
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
  const Value sum = axes.empty() ? ct : b("reduce_sum", {ct}, {{"axes", axes}, {"keepdims", true}});
  const ValueType& made = b.type(sum);
  const bool same = made.shape == operand_type.shape && made.batch == operand_type.batch;
  return same ? sum : b("reshape_like", {sum, operand});
}

Values gradient(Builder& b, std::span<const Value> targets, std::span<const Value> seeds,
                std::span<const Value> sources, const std::function<bool(std::int32_t)>& recorded) {
  Walk walk(b, recorded);
  walk.mark_sources(sources);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!walk.reached(targets[i])) continue;
    const bool given = i < seeds.size() && seeds[i] != kNoValue;
    // A seed of kNoValue among given ones (an output nobody used) adds nothing.
    if (!given && !seeds.empty()) continue;
    walk.add(targets[i], given ? seeds[i] : b("full_like", {targets[i]}, {{"value", 1.0}}));
  }
  walk.run();
  Values result;
  for (Value source : sources) result.push_back(walk.ct(source));
  return result;
}

}  // namespace samegrad
