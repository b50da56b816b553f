// Arrays as histories of iterations and back, for loops over their rows.
#include "ops/stacked_iterations.h"

#include "base/error.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

Inferred unstack_rule(const InferArgs& args) {
  for (std::size_t k = 0; k < args.in.size(); ++k) {
    const ValueType& type = args.in[k];
    const bool rows = type.shape.rank() > 0 && !(type.batched() && type.batch.axis == 0);
    SG_CHECK_VALUE(
        rows && same_size(args, size_along(args, type, 0), size_along(args, args.in[0], 0)),
        args.op.name, "operands must have equally many rows, not examples: number ", k, " is ",
        to_string(type), ", and the first one ", to_string(args.in[0]), ".");
  }
  Inferred inferred{{ValueType{DType::kInt64, {}, {}}}};
  inferred.placements = {Placement::kReplicated};
  return inferred;
}

Inferred stack_rule(const InferArgs& args) {
  const auto& attrs = args.attrs.as<StackRoundsAttrs>();
  Inferred inferred;
  auto size = attrs.sizes.begin();
  for (std::size_t i = 0; i < attrs.dtypes.size(); ++i) {
    ValueType type{DType(attrs.dtypes[i]), {}, {}};
    type.shape.push_back(attrs.rounds);
    for (std::int64_t axis = 0; axis < attrs.ranks[i]; ++axis) type.shape.push_back(*size++);
    const std::int64_t* examples = &attrs.examples[3 * i];
    if (examples[0] >= 0) {
      type.batch = {int(examples[0]) + 1, examples[1], count_symbol(args.symbols, examples[2])};
    }
    inferred.types.push_back(type);
    inferred.placements.push_back(Placement(attrs.placements[i]));
  }
  return inferred;
}

OpDef rounds_op(const char* name, const char* doc, int most, Inferred (*infer)(const InferArgs&)) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.max_arity = most;
  op.operands = {"x"};
  op.traits = kControl | kBackward;
  op.infer = infer;
  return op;
}

}  // namespace

std::vector<OpDef> stacked_iterations_ops() {
  OpDef unstack = rounds_op("unstack_rounds", "A history with a row of each array in each round.",
                            -1, unstack_rule);
  unstack.traits |= kStacksResiduals;
  OpDef stack =
      rounds_op("stack_rounds", "Of a history: each array of its entries, stacked.", 1, stack_rule);
  stack.attrs = schema_of<StackRoundsAttrs>();
  return {unstack, stack};
}

}  // namespace samegrad
