// Control flow: rows that run graphs. The runtime carries them out, for all replicas together.
#include "ir/placement.h"
#include "ops/families.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

std::vector<ValueType> types_of(const Graph& graph, const std::vector<Value>& values) {
  std::vector<ValueType> types;
  for (Value value : values) types.push_back(graph.type(value));
  return types;
}

void check_same_types(const InferArgs& args, const char* what, const std::vector<ValueType>& a,
                      const std::vector<ValueType>& b) {
  check_value(a.size() == b.size(), args.op.name, what, " must be as many: got ", a.size(), " and ",
              b.size(), ".");
  for (std::size_t i = 0; i < a.size(); ++i) {
    check_value(a[i] == b[i], args.op.name, what, " must have equal types: number ", i, " is ",
                to_string(a[i]), " and ", to_string(b[i]), ".");
  }
}

void check_predicate(const InferArgs& args, const ValueType& type) {
  check_value(type.dtype == DType::kBool && type.shape.rank() == 0, args.op.name,
              "the condition must be one bool: got ", to_string(type), ".");
}

void check_collectives(const InferArgs& args, const Graph& body) {
  if (!args.attrs.flag("varying")) return;
  check_value(!contains(body, kCollective), args.op.name,
              "the condition may differ between replicas, and some of them would wait for ever in "
              "an all-reduce or update that others skip; make the condition equal on all: "
              "replica_context.all_reduce(...) of what it is made of.");
}

// Of a body's results, which are its arguments from `first` on after a round.
std::vector<Placement> after_rounds(const InferArgs& args, const Graph& body, std::size_t first) {
  std::vector<Placement> placements;
  for (std::size_t i = 0; i < body.outputs.size(); ++i) {
    const Placement either =
        joined(body.arguments[first + i].placement, body.placement(body.outputs[i]));
    placements.push_back(args.attrs.flag("varying") ? Placement::kOwn : either);
  }
  return placements;
}

// Operands: the condition, then what the branches read.
Inferred cond_rule(const InferArgs& args) {
  check_predicate(args, args.in[0]);
  const Graph& yes = args.attrs.graph("true_branch");
  const Graph& no = args.attrs.graph("false_branch");
  check_same_types(args, "the results of both branches", types_of(yes, yes.outputs),
                   types_of(no, no.outputs));
  check_collectives(args, yes);
  check_collectives(args, no);
  Inferred inferred{types_of(yes, yes.outputs)};
  for (std::size_t i = 0; i < yes.outputs.size(); ++i) {
    const Placement either = joined(yes.placement(yes.outputs[i]), no.placement(no.outputs[i]));
    inferred.placements.push_back(args.attrs.flag("varying") ? Placement::kOwn : either);
  }
  return inferred;
}

// Operands: the loop variables, then what condition and body read. Results: the variables after the
// loop and a handle of what they were before each round, for the derivative.
Inferred while_rule(const InferArgs& args) {
  const Graph& condition = args.attrs.graph("condition");
  const Graph& body = args.attrs.graph("body");
  check_predicate(args, condition.type(condition.outputs[0]));
  std::vector<ValueType> before(args.in.begin(), args.in.begin() + args.attrs.integer("variables"));
  check_same_types(args, "the loop variables before and after a round", before,
                   types_of(body, body.outputs));
  check_collectives(args, body);
  Inferred inferred{std::move(before)};
  inferred.placements = after_rounds(args, body, 0);
  inferred.types.push_back({DType::kInt64, {}, {}});
  inferred.placements.push_back(Placement::kReplicated);
  return inferred;
}

// Operands: the handle, the cotangents of the variables, zeros for the operands' gradients, then
// the operands after the variables. Results: gradients of variables, then of the operands.
Inferred while_grad_rule(const InferArgs& args) {
  const Graph& body = args.attrs.graph("body");
  Inferred inferred{types_of(body, body.outputs)};
  inferred.placements = after_rounds(args, body, body.arguments.size() - body.outputs.size());
  return inferred;
}

OpDef control_row(const char* name, const char* doc, std::vector<AttrSpec> attrs,
                  Inferred (*infer)(const InferArgs&)) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.min_arity = 1;
  op.max_arity = -1;
  op.operands = {"x"};
  op.attrs = std::move(attrs);
  op.attrs.push_back({"varying", AttrKind::kFlag, "The condition may differ between replicas."});
  op.traits = kControl | kBackward;
  op.infer = infer;
  return op;
}

}  // namespace

std::vector<OpDef> control_ops() {
  return {
      control_row("cond", "The results of one of two graphs.",
                  {{"true_branch", AttrKind::kGraph, "Run where the condition holds."},
                   {"false_branch", AttrKind::kGraph, "Run elsewhere."}},
                  cond_rule),
      control_row("while_loop", "A graph run as long as another gives true.",
                  {{"condition", AttrKind::kGraph, "Variables and operands to a bool."},
                   {"body", AttrKind::kGraph, "Variables and operands to new variables."},
                   {"variables", AttrKind::kInteger, "How many operands are variables."},
                   {"maximum", AttrKind::kInteger, "Rounds at most; -1: any number."}},
                  while_rule),
      control_row("while_loop_grad", "The rounds of a loop backwards.",
                  {{"body", AttrKind::kGraph, "The derivative of one round."}}, while_grad_rule)};
}

}  // namespace samegrad
