// Operations across replicas; the runtime carries them out.
#include "ops/expr.h"
#include "ops/families.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

Inferred all_reduce_rule(const InferArgs& args) {
  const std::string& op = args.attrs.string("op");
  check_value(op == "sum" || op == "mean", args.op.name, "op must be 'sum' or 'mean': got '", op,
              "'.");
  check_dtype(args, 0, op == "mean" ? kFloats : kNumbers);
  const ValueType& x = args.in[0];
  check_value(!x.batched(), args.op.name, "the operand has the replica's examples on axis ",
              x.batch.axis, " (shape ", args.shape_of(0),
              "), and replicas may have different numbers of them: reduce that axis first, or "
              "use all_gather.");
  return {{x}, Locality::kWhole};
}

// Every replica's result is made of every replica's operand, so the adjoint is the same op.
Values all_reduce_vjp(const VjpArgs& args) {
  return cotangents(
      call("all_reduce", Expr(args.b, args.ct[0]), {{"op", args.attrs.string("op")}}));
}

}  // namespace

std::vector<OpDef> collective_ops() {
  OpDef op;
  op.name = "all_reduce";
  op.doc = "Sum or mean over the replicas, the same on all of them.";
  op.operands = {"x"};
  op.attrs = {{"op", AttrKind::kString, "'sum' or 'mean'.", {std::string("sum")}}};
  op.traits = kCollective;
  op.infer = all_reduce_rule;
  op.vjp = all_reduce_vjp;
  return {op};
}

}  // namespace samegrad
