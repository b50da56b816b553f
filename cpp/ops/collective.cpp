// Operations across replicas: the runtime adds up all-reduces itself, the others exchange.
#include <cstring>

#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "ops/attributes.h"
#include "ops/expr.h"
#include "ops/movement.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

// The operand as one of the same shape on all replicas; `axis` may differ.
ValueType equal_shapes(const InferArgs& args, int axis, const char* remedy) {
  ValueType type = args.in[0];
  const auto traced = traced_counts(args.symbols);
  for (int i = 0; i < type.shape.rank(); ++i) {
    if (i == axis) continue;
    const Size size = size_along(args, type, i);
    for (const auto& counts : traced) {
      SG_CHECK_VALUE(size.value(counts) == size.value(traced[0]), args.op.name,
                     "replicas have different numbers of examples, which decide axis ", i,
                     " (shape ", args.shape_of(0), " on replica 0): got ", size.value(traced[0]),
                     " and ", size.value(counts), "; ", remedy);
    }
    if (type.batch.axis != i && follows_lengths(args.symbols, type.shape[i])) continue;
    type.shape[i] = fixed_size(args, size);
    if (type.batch.axis == i) type.batch = {};
  }
  return type;
}

Inferred all_reduce_rule(const InferArgs& args) {
  const bool mean = args.attrs.as<AllReduceAttrs>().op == ReduceOp::kMean;
  check_dtype(args, 0, mean ? kFloats : kNumbers);
  const ValueType x = equal_shapes(args, -1, "reduce that axis first, or use all_gather.");
  return {{x}, Locality::kFullBatch};
}

// Every replica's result is made of every replica's operand, so the adjoint is the same op.
Values all_reduce_vjp(const VjpArgs& args) {
  const Expr x(args.b, args.in[0]);
  const Expr sum = call("all_reduce", Expr(args.b, args.ct[0]), args.attrs);
  return cotangents(sum.type() == x.type() ? sum : call("reshape_like", sum, x));
}

int gather_axis(const InferArgs& args, const ValueType& x) {
  const std::int64_t axis = args.attrs.as<AllGatherAttrs>().axis;
  SG_CHECK_VALUE(axis >= 0 && axis < x.shape.rank(), args.op.name, "axis must lie in [0, ",
                 x.shape.rank(), "): got ", axis, ".");
  return int(axis);
}

Inferred all_gather_rule(const InferArgs& args) {
  const int axis = gather_axis(args, args.in[0]);
  ValueType y = equal_shapes(args, axis, "gather along the examples.");
  const std::int64_t replicas = args.attrs.as<AllGatherAttrs>().replicas;
  const Size size = size_along(args, y, axis);
  if (!y.batched() && (size.number() || follows_lengths(args.symbols, size))) {
    y.shape[axis] = dim_of(args.symbols, size * replicas);
    return {{y}, Locality::kFullBatch};
  }
  Symbol all;
  all.kind = Symbol::Kind::kGlobal;
  all.parts = {y.batched() ? y.batch.symbol : int(y.shape[axis] - kSymbols)};
  const auto traced = counts_of_all(args.symbols);
  for (const auto& counts : traced) all.traced_count += counts[std::size_t(all.parts[0])];
  if (traced.size() == 1) all.traced_count *= replicas;
  const int made = derived_symbol(args.symbols, all);
  if (y.batched()) {
    y.batch.symbol = made;
  } else {
    y.shape[axis] = kSymbols + made;
  }
  return {{y}, Locality::kFullBatch};
}

// The bytes of a view as `outer` pieces of `bytes` each, before and from an axis on.
struct Pieces {
  std::int64_t outer;
  std::int64_t bytes;
  Pieces(const View& view, int axis)
      : outer(view.shape.size(0, axis)),
        bytes(view.shape.size(axis, view.shape.rank()) * std::int64_t(size_of(view.dtype))) {}
};

void all_gather_exchange(const ExchangeArgs& args) {
  const auto axis = int(args.attrs.as<AllGatherAttrs>().axis);
  const View& y = args.out[0][0];
  const Pieces whole(y, axis);
  std::int64_t offset = 0;
  for (const std::vector<View>& in : args.in) {
    const Pieces part(in[0], axis);
    for (std::int64_t i = 0; i < part.outer && part.bytes > 0; ++i) {
      std::memcpy(y.as<std::byte>() + i * whole.bytes + offset,
                  in[0].as<std::byte>() + i * part.bytes, std::size_t(part.bytes));
    }
    offset += part.bytes;
  }
}

Inferred reduce_scatter_rule(const InferArgs& args) {
  check_dtype(args, 0, kNumbers);
  ValueType y = args.in[1];
  y.dtype = args.in[0].dtype;
  return {{y}, Locality::kFullBatch, {y.batched() ? Placement::kSharded : Placement::kVarying}};
}

// The runtime has added the operands up: each replica gets its part of the first one.
void reduce_scatter_exchange(const ExchangeArgs& args) {
  const auto axis = int(args.attrs.as<AllGatherAttrs>().axis);
  const View& sum = args.in[0][0];
  const Pieces whole(sum, axis);
  std::int64_t offset = 0;
  for (const std::vector<View>& out : args.out) {
    const Pieces part(out[0], axis);
    for (std::int64_t i = 0; out[0].data && i < part.outer && part.bytes > 0; ++i) {
      std::memcpy(out[0].as<std::byte>() + i * part.bytes,
                  sum.as<std::byte>() + i * whole.bytes + offset, std::size_t(part.bytes));
    }
    offset += part.bytes;
  }
}

Inferred collective_broadcast_rule(const InferArgs& args) {
  return {{equal_shapes(args, -1, "give all replicas equally many.")}, Locality::kFullBatch};
}

void collective_broadcast_exchange(const ExchangeArgs& args) {
  const View &x = args.in[0][0], &y = args.out[0][0];
  const std::size_t bytes = std::size_t(y.size()) * size_of(y.dtype);
  if (bytes > 0) std::memcpy(y.data, x.data, bytes);
}

// The results of all replicas are made of the first one's operand.
Values collective_broadcast_vjp(const VjpArgs& args) {
  const Expr x(args.b, args.in[0]);
  const Expr sum = call("all_reduce", Expr(args.b, args.ct[0]), AllReduceAttrs{});
  const Expr shaped = sum.type() == x.type() ? sum : call("reshape_like", sum, x);
  const Expr is_first = Expr(args.b, args.b("replica_id", {})) == 0.0;
  return cotangents(select(is_first, shaped, 0.0));
}

OpDef collective_broadcast_op() {
  OpDef op;
  op.name = "collective_broadcast";
  op.doc = "The value of the first replica, to the bit, the same on all of them.";
  op.operands = {"x"};
  op.traits = kCollective | kAnyType;
  op.infer = collective_broadcast_rule;
  op.exchange = {.run = collective_broadcast_exchange, .first_only = true};
  op.vjp = collective_broadcast_vjp;
  return op;
}

OpDef all_gather_op() {
  OpDef op;
  op.name = "all_gather";
  op.doc =
      "The values of all replicas, one after the other along an axis, the same on all of them.";
  op.operands = {"x"};
  op.attrs = schema_of<AllGatherAttrs>();
  op.traits = kCollective;
  op.infer = all_gather_rule;
  op.exchange = {.run = all_gather_exchange};
  op.vjp = [](const VjpArgs& v) -> Values {
    return cotangents(call("reduce_scatter", Expr(v.b, v.ct[0]), Expr(v.b, v.in[0]), v.attrs));
  };
  return op;
}

OpDef reduce_scatter_op() {
  OpDef op;
  op.name = "reduce_scatter";
  op.doc = "The sum over the replicas of what is each one's own part along an axis.";
  op.linearity = Linearity::kSum;
  op.min_arity = op.max_arity = 2;
  op.operands = {"x", "part_like"};
  op.attrs = schema_of<AllGatherAttrs>();
  op.traits = kCollective | kBackward;
  op.infer = reduce_scatter_rule;
  op.exchange = {.run = reduce_scatter_exchange};
  op.type_only = 1u << 1;
  op.vjp = [](const VjpArgs& v) -> Values {
    return cotangents(call("all_gather", Expr(v.b, v.ct[0]), v.attrs), none());
  };
  return op;
}

// Divides on every replica in the same way: none of them needs another's part.
void replica_share_kernel(const KernelArgs& args) {
  if (args.replica_context.replicas == 1) return copy_bytes(args);
  const View &x = args.in[0], &y = args.out[0];
  if (y.size() == 0) return;
  const Array replicas = Array::number(y.dtype, args.replica_context.replicas);
  kernels().binary(BinaryFn::k_div, y.dtype)(x.data, replicas.raw(), y.data, y.size(), 1, 0);
}

OpDef replica_share_op() {
  OpDef op;
  op.name = "replica_share";
  op.doc =
      "This replica's share of a value that all have alike, x / replicas: the sum over the "
      "replicas is x, to the bit.";
  op.operands = {"x"};
  op.linearity = Linearity::kSum;
  op.traits = kReplicaShare;
  op.infer = [](const InferArgs& args) -> Inferred {
    check_dtype(args, 0, kFloats);
    return same_as_input(args);
  };
  op.kernel = replica_share_kernel;
  op.vjp = [](const VjpArgs& args) -> Values {
    return cotangents(call("replica_share", Expr(args.b, args.ct[0])));
  };
  op.samples = {{.shapes = {{2, 3}}, .attrs = {}},
                {.shapes = {{}}, .attrs = {}},
                {.shapes = {{5, 3}}, .attrs = {}, .batched = {1}}};
  return op;
}

OpDef all_reduce_op() {
  OpDef op;
  op.name = "all_reduce";
  op.doc = "Sum or mean over the replicas, the same on all of them.";
  op.operands = {"x"};
  op.attrs = schema_of<AllReduceAttrs>();
  op.traits = kCollective;
  op.infer = all_reduce_rule;
  op.vjp = all_reduce_vjp;
  return op;
}

}  // namespace

std::vector<OpDef> collective_ops() {
  return {all_reduce_op(), all_gather_op(), collective_broadcast_op(), reduce_scatter_op(),
          replica_share_op()};
}

}  // namespace samegrad
