// Control flow: rows that run graphs. The runtime carries them out, for all replicas together.
#include <numeric>

#include "ir/placement.h"
#include "ops/control.h"
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
  SG_CHECK_VALUE(a.size() == b.size(), args.op.name, what, " must be as many: got ", a.size(),
                 " and ", b.size(), ".");
  for (std::size_t i = 0; i < a.size(); ++i) {
    SG_CHECK_VALUE(same_type(args.symbols, a[i], b[i]), args.op.name, what,
                   " must have equal types: number ", i, " is ", to_string(a[i]), " and ",
                   to_string(b[i]), ".");
  }
}

void check_predicate(const InferArgs& args, const ValueType& type) {
  SG_CHECK_VALUE(type.dtype == DType::kBool && type.shape.rank() == 0, args.op.name,
                 "the condition must be one bool: got ", to_string(type), ".");
}

void check_collectives(const InferArgs& args, const Graph& body) {
  if (!args.attrs.as<ControlAttrs>().varying) return;
  SG_CHECK_VALUE(
      !contains(body, kCollective), args.op.name,
      "the condition may differ between replicas, and some of them would wait for ever in "
      "an all-reduce or update that others skip; make the condition equal on all: "
      "replica_context.all_reduce(...) of what it is made of.");
}

// The placements of `count` arguments from `first` on, which after an iteration are the body's
// results.
std::vector<Placement> after_iterations(const InferArgs& args, const Graph& body, std::size_t first,
                                        std::size_t count) {
  std::vector<Placement> placements;
  for (std::size_t i = 0; i < count; ++i) {
    const Placement either =
        joined(body.arguments[first + i].placement, body.placement(body.outputs[i]));
    placements.push_back(args.attrs.as<ControlAttrs>().varying ? Placement::kVarying : either);
  }
  return placements;
}

// Operands: the condition, then what the branches read.
Inferred cond_rule(const InferArgs& args) {
  check_predicate(args, args.in[0]);
  const Graph& yes = true_branch(args.regions);
  const Graph& no = false_branch(args.regions);
  check_same_types(args, "the results of both branches", types_of(yes, yes.outputs),
                   types_of(no, no.outputs));
  check_collectives(args, yes);
  check_collectives(args, no);
  Inferred inferred{types_of(yes, yes.outputs)};
  for (std::size_t i = 0; i < yes.outputs.size(); ++i) {
    const Placement either = joined(yes.placement(yes.outputs[i]), no.placement(no.outputs[i]));
    inferred.placements.push_back(args.attrs.as<ControlAttrs>().varying ? Placement::kVarying
                                                                        : either);
  }
  return inferred;
}

// Operands: the loop variables, then what condition and body read. Results: the variables after the
// loop and a handle of their history (what they were before each iteration), for the derivative.
Inferred while_rule(const InferArgs& args) {
  const Graph &test = condition(args.regions), &iteration = body(args.regions);
  check_predicate(args, test.type(test.outputs[0]));
  const std::int64_t variables = args.attrs.as<WhileAttrs>().variables;
  std::vector<ValueType> before(args.in.begin(), args.in.begin() + variables);
  check_same_types(args, "the loop variables before and after a round", before,
                   types_of(iteration, iteration.outputs));
  check_collectives(args, iteration);
  Inferred inferred{std::move(before)};
  inferred.placements = after_iterations(args, iteration, 0, iteration.outputs.size());
  inferred.types.push_back({DType::kInt64, {}, {}});
  inferred.placements.push_back(Placement::kReplicated);
  return inferred;
}

// Operands: histories, the variables, then what the body reads. Results: the variables after the
// iterations, their history and those that the iterations make.
Inferred replay_rule(const InferArgs& args) {
  const Graph& iteration = body(args.regions);
  const auto& attrs = args.attrs.as<ReplayAttrs>();
  const auto count = std::size_t(attrs.variables);
  Inferred inferred{types_of(iteration, iteration.outputs)};
  const auto first = std::accumulate(attrs.entries.begin(), attrs.entries.end(), std::int64_t(0));
  inferred.placements = after_iterations(args, iteration, std::size_t(first), count);
  inferred.types.resize(count);
  const std::size_t results = count + 1 + attrs.yields.size();
  inferred.types.resize(results, ValueType{DType::kInt64, {}, {}});
  inferred.placements.resize(results, Placement::kReplicated);
  return inferred;
}

Inferred add_histories_rule(const InferArgs& args) {
  return {{args.in[0]}, Locality::kFullBatch, {Placement::kReplicated}};
}

OpDef add_histories_op() {
  OpDef op;
  op.name = "add_histories";
  op.doc = "The sum of two histories, round by round.";
  op.min_arity = op.max_arity = 2;
  op.operands = {"x", "y"};
  op.traits = kControl | kBackward | kStacksResiduals;
  op.infer = add_histories_rule;
  return op;
}

// Under an eager tape: what a compiled step gave on several replicas. The tape keeps its operands
// and results; no graph is built with it.
OpDef run_on_replicas_op() {
  OpDef op;
  op.name = "run_on_replicas";
  op.version = OpDef::kOfPasses;
  op.doc = "The results of a step on several replicas.";
  op.min_arity = 0;
  op.max_arity = -1;
  op.operands = {"xs"};
  op.traits = kBackward;
  op.infer = [](const InferArgs&) { return Inferred{}; };
  op.vjp = [](const VjpArgs&) -> Values {
    fail(ErrorKind::kNotImplemented, "GradientTape.gradient",
         "the target comes from strategy.run on several replicas, and the tape is outside of it; "
         "use the tape inside the function that strategy.run is given, or make tape and run part "
         "of one samegrad.function.");
  };
  return op;
}

OpDef control_op(const char* name, const char* doc, const AttrSchema* attrs,
                 std::vector<std::string> regions, Inferred (*infer)(const InferArgs&),
                 std::uint32_t traits = 0) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.min_arity = 1;
  op.max_arity = -1;
  op.operands = {"x"};
  op.attrs = attrs;
  op.regions = std::move(regions);
  op.traits = kControl | kBackward | traits;
  op.infer = infer;
  return op;
}

}  // namespace

std::vector<OpDef> control_ops() {
  return {// Operands and results of the branches are those of the node but for the condition.
          control_op("cond", "The results of one of two graphs.", schema_of<CondAttrs>(),
                     {"true_branch", "false_branch"}, cond_rule),
          // Variables and operands to a bool, and to new variables.
          control_op("while_loop", "A graph run as long as another gives true.",
                     schema_of<WhileAttrs>(), {"condition", "body"}, while_rule, kStacksResiduals),
          // One iteration: entries, variables and operands to new variables and new entries.
          control_op("replay", "The rounds of a loop once more, with what it kept of them.",
                     schema_of<ReplayAttrs>(), {"body"}, replay_rule, kStacksResiduals),
          add_histories_op(), run_on_replicas_op()};
}

}  // namespace samegrad
