// Custom gradients: ops that carry the derivatives that user code defines. No kernel runs: passes
// drop the rules, as gradients have been taken before.
#include "ops/gradient_rule.h"

#include "ops/movement.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

// Operands: the results whose gradient it is (each stops every other gradient), what the results
// were made of, then what the rule reads.
OpDef gradient_rule_op(const char* name, const char* doc, const AttrSchema* attrs) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.min_arity = 1;
  op.max_arity = -1;
  op.operands = {"x"};
  op.attrs = attrs;
  op.traits = kGradientRule | kBackward;
  op.infer = [](const InferArgs&) { return Inferred{}; };
  return op;
}

Inferred computed_again_rule(const InferArgs& args) {
  return one_result(args, args.in[0]);
}

// Not an identity: what follows is computed again and must not be merged with the first time.
OpDef computed_again_op() {
  OpDef op;
  op.name = "computed_again";
  op.doc = "The first operand, no sooner than the second is known.";
  op.min_arity = op.max_arity = 2;
  op.operands = {"x", "after"};
  op.linearity = Linearity::kSum;
  op.scaled = 1u;
  op.traits = kAliases | kBackward;
  op.infer = computed_again_rule;
  op.kernel = copy_bytes;
  op.vjp = [](const VjpArgs& args) -> Values { return {args.ct[0], kNoValue}; };
  op.samples = {{.shapes = {{2, 3}, {4}}, .attrs = {}}};
  return op;
}

}  // namespace

std::vector<OpDef> gradient_rule_ops() {
  OpDef graph = gradient_rule_op("gradient_by_graph", "A graph is the derivative of the results.",
                                 schema_of<GradientRuleAttrs>());
  graph.regions = {"gradient"};
  return {graph,
          gradient_rule_op("gradient_by_call",
                           "A function of the trace is the derivative of the results.",
                           schema_of<CalledGradientAttrs>()),
          computed_again_op()};
}

}  // namespace samegrad
