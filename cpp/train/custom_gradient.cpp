// Derivatives that the program gives itself, while a program is traced and in eager code.
#include <numeric>

#include "ops/gradient_rule.h"
#include "train/eager_trace.h"
#include "train/graph_trace.h"

namespace samegrad {
namespace {

GradientRuleAttrs rule_of(std::size_t results, std::size_t operands) {
  GradientRuleAttrs attrs;
  attrs.results = std::int64_t(results);
  attrs.given.resize(operands);
  std::iota(attrs.given.begin(), attrs.given.end(), attrs.results);
  return attrs;
}

Attrs failing_rule(std::size_t results, std::size_t operands, const Error& error) {
  CalledGradientAttrs attrs;
  static_cast<GradientRuleAttrs&>(attrs) = rule_of(results, operands);
  attrs.error = error.what();
  attrs.kind = std::int64_t(error.kind());
  return attrs;
}

}  // namespace

void GraphTrace::add_gradient(const Values& results, const Values& operands,
                              const GradientFunction& gradient) {
  const auto body =
      std::make_shared<BodyTrace>(std::static_pointer_cast<GraphTrace>(shared_from_this()));
  std::vector<Tensor> cts;
  for (Value result : results) {
    // The cotangent of a replicated result is a part of a sum.
    Placement placement = graph_.placement(result);
    const bool part = placement == Placement::kReplicated && graph_.replicas > 1;
    cts.push_back(
        body->tensor(body->add_argument(type(result), part ? Placement::kPartial : placement)));
  }
  Gradients made;
  {
    const Scope scope(with_trace(body));
    made = gradient(cts);
  }
  adopt_symbols(*body);
  if (!made.error && !body->written().empty()) {
    made.error.emplace(ErrorKind::kRuntime,
                       "[custom_gradient] a gradient function must not assign variables: got an "
                       "assignment to " +
                           body->written()[0]->name() + "; assign it where gradients are applied.");
  }
  Values inputs = results, outputs, captures;
  inputs.insert(inputs.end(), operands.begin(), operands.end());
  if (made.error) {
    (void)apply(OpRegistry::instance().get("gradient_by_call"), inputs,
                failing_rule(results.size(), operands.size(), *made.error));
    return;
  }
  GradientRuleAttrs attrs;
  attrs.results = std::int64_t(results.size());
  for (std::size_t i = 0; i < made.of_operands.size(); ++i) {
    if (!made.of_operands[i]) continue;
    attrs.given.push_back(std::int64_t(results.size() + i));
    outputs.push_back(body->lift(*made.of_operands[i]));
  }
  for (const auto& [outer, inner] : body->captures()) captures.push_back(outer);
  inputs.insert(inputs.end(), captures.begin(), captures.end());
  auto graph =
      std::make_shared<const Graph>(body->finish(std::move(outputs), results.size(), captures));
  (void)apply(OpRegistry::instance().get("gradient_by_graph"), inputs, std::move(attrs),
              {std::move(graph)});
}

void EagerTrace::add_gradient(const Values& results, const Values& operands,
                              const GradientFunction& gradient) {
  CalledGradientAttrs attrs;
  static_cast<GradientRuleAttrs&>(attrs) = rule_of(results.size(), operands.size());
  attrs.callback = std::int64_t(gradients_.size());
  gradients_.push_back(gradient);
  Values inputs = results;
  inputs.insert(inputs.end(), operands.begin(), operands.end());
  (void)apply(OpRegistry::instance().get("gradient_by_call"), inputs, attrs);
}

Values EagerTrace::called_gradient(std::int64_t callback, const Values& cts) {
  SG_CHECK_VALUE(callback >= 0 && std::size_t(callback) < gradients_.size(), "custom_gradient",
                 "function ", callback, " is none of this trace's ", gradients_.size(), ".");
  std::vector<Tensor> tensors;
  for (Value ct : cts) tensors.push_back(tensor(ct));
  const GradientFunction gradient = gradients_[std::size_t(callback)];
  const Gradients made = gradient(tensors);
  if (made.error) throw Error(*made.error);
  Values values;
  for (const auto& one : made.of_operands) values.push_back(one ? lift(*one) : kNoValue);
  return values;
}

}  // namespace samegrad
