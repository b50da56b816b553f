// Facts of the running step: how many elements, which examples, which replica, which step.
#include <algorithm>

#include "ops/attributes.h"
#include "ops/expr.h"
#include "ops/partition.h"
#include "ops/reduce_kernel.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

Inferred int64_scalar(const InferArgs&) {
  return {{{DType::kInt64, {}, {}}}, Locality::kFullBatch};
}

void store(const KernelArgs& args, std::int64_t value) {
  *args.out[0].as<std::int64_t>() = value;
}

Inferred size_rule(const InferArgs& args) {
  const ValueType& x = args.in[0];
  const std::uint32_t mask =
      axes_mask(args.op.name, args.attrs.as<CountAttrs>().axes, x.shape.rank());
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    SG_CHECK_VALUE(!args.op.has(kReplicaInvariant) || !(mask >> axis & 1u) ||
                       !is_symbolic(x.shape[axis]) || follows_lengths(args.symbols, x.shape[axis]),
                   args.op.name, "axis ", axis, " of shape ", args.shape_of(0),
                   " has another size on each replica: all-reduce what size_of gives.");
  }
  Inferred inferred = int64_scalar(args);
  // A count of examples on another axis is not a sum over the examples: each replica has its own.
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    if ((mask >> axis & 1u) && differs_between_replicas(args.symbols, x.shape[axis])) {
      return inferred;
    }
  }
  const bool examples = x.batched() && (mask >> x.batch.axis & 1u);
  if (examples) inferred.locality = Locality::kCount;
  if (!examples) inferred.placements = {Placement::kReplicated};
  return inferred;
}

std::int64_t size_along(const Shape& shape, std::uint32_t mask) {
  std::int64_t elements = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (mask >> axis & 1u) elements *= shape[axis];
  }
  return elements;
}

void size_kernel(const KernelArgs& args) {
  const Shape& shape = args.in[0].shape;
  store(args,
        size_along(shape, axes_mask("size_of", args.attrs.as<CountAttrs>().axes, shape.rank())));
}

// The sum of size_of over the replicas.
void global_size_kernel(const KernelArgs& args) {
  const View& x = args.in[0];
  Shape shape = x.shape;
  const std::uint32_t mask =
      axes_mask("global_size_of", args.attrs.as<CountAttrs>().axes, shape.rank());
  if (x.example_axis >= 0 && (mask >> x.example_axis & 1u)) {
    shape[x.example_axis] =
        x.rows_per_example * args.replica_context.global_examples[std::size_t(args.symbol)];
    store(args, size_along(shape, mask));
  } else {
    store(args, size_along(shape, mask) * args.replica_context.replicas);
  }
}

// The vjp for sizes that are each replica's own.
Values add_up_sizes(const VjpArgs& args) {
  return {call("all_reduce", call("size_of", Expr(args.b, args.in[0]), args.attrs)).value()};
}

OpDef size_op(const char* name, const char* doc, std::uint32_t traits, Kernel kernel) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.operands = {"x"};
  op.attrs = schema_of<CountAttrs>();
  op.traits = traits | kNoGradient;
  op.linearity = Linearity::kCount;
  op.type_only = 1;
  op.infer = size_rule;
  op.kernel = kernel;
  op.samples = {{.shapes = {{2, 3}}, .attrs = CountAttrs{.axes = {0, 1}}},
                {.shapes = {{5, 7}}, .attrs = CountAttrs{.axes = {0}}, .batched = {1}}};
  return op;
}

// Kernels know the counts of all symbols. A number may be below 0, as n - 1 without examples is.
void symbol_kernel(const KernelArgs& args) {
  const std::int64_t size = args.attrs.as<SizeAttrs>().size;
  store(args, is_symbolic(size) ? args.replica_context.local_examples[std::size_t(size - kSymbols)]
                                : size);
}

OpDef symbol_op() {
  OpDef op;
  op.name = "size_value";
  op.linearity = Linearity::kCount;
  op.doc = "A size (int64) that follows from the examples of other values, on this replica.";
  op.max_arity = 8;
  op.operands = {"likes"};
  op.attrs = schema_of<SizeAttrs>();
  op.traits = kNoGradient;
  op.type_only = ~0u;
  op.infer = int64_scalar;
  op.kernel = symbol_kernel;
  op.samples = {{.shapes = {{5}}, .attrs = SizeAttrs{.size = 4}}};
  return op;
}

OpDef global_size_op() {
  OpDef op =
      size_op("global_size_of", "Number (int64) of elements along axes, summed over the replicas.",
              kReplicaInvariant, global_size_kernel);
  op.decompose = add_up_sizes;
  return op;
}

Inferred dimensions_rule(const InferArgs& args) {
  return {{{DType::kInt32, {args.in[0].shape.rank()}, {}}}, Locality::kFullBatch};
}

void dimensions_kernel(const KernelArgs& args) {
  const Shape& shape = args.in[0].shape;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    args.out[0].as<std::int32_t>()[axis] = std::int32_t(shape[axis]);
  }
}

OpDef dimensions_op() {
  OpDef op;
  op.name = "dimension_sizes";
  op.linearity = Linearity::kCount;
  op.doc = "The sizes of all axes on this replica, an int32 vector.";
  op.operands = {"x"};
  op.traits = kNoGradient;
  op.type_only = 1;
  op.infer = dimensions_rule;
  op.kernel = dimensions_kernel;
  op.samples = {{.shapes = {{2, 3}}, .attrs = {}},
                {.shapes = {{5, 7}}, .attrs = {}, .batched = {1}}};
  return op;
}

Inferred numbers_rule(const InferArgs& args) {
  const ValueType& x = args.in[0];
  SG_CHECK_VALUE(x.shape.rank() > 0, args.op.name, "x needs rows: got shape ().");
  const bool rows =
      x.batched() ? x.batch.axis == 0 : !differs_between_replicas(args.symbols, x.shape[0]);
  SG_CHECK_VALUE(rows, args.op.name,
                 "axis 0 of x counts its examples, or the same number on all "
                 "replicas: got shape ",
                 args.shape_of(0), ".");
  return one_result(args, {DType::kInt64, {x.shape[0]}, x.batch});
}

void run_numbers(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const View& x = args.in[0];
  std::int64_t first = 0;
  if (x.example_axis == 0) {
    const std::int64_t share = args.replica_context.first_example[std::size_t(args.symbol)];
    first = (share + args.first_example) * x.rows_per_example;
  }
  auto* y = args.out[0].as<std::int64_t>();
  for (std::int64_t i = begin; i < end; ++i) y[i] = first + i;
}

OpDef numbers_op() {
  OpDef op;
  op.name = "row_numbers";
  op.doc = "The numbers (int64) of the rows of x among those of all replicas.";
  op.operands = {"x"};
  op.traits = kNoGradient | kAnyType;
  op.infer = numbers_rule;
  set_parts<rows_of_result, run_numbers>(op);
  op.scratch_bytes = no_scratch;
  op.type_only = 1;
  op.samples = {{.shapes = {{2, 3}}, .attrs = {}},
                {.shapes = {{5, 7}}, .attrs = {}, .batched = {1}}};
  return op;
}

// True on the replicas that a trace was made for: see passes/merge_specializations.h.
OpDef trace_op() {
  OpDef op;
  op.name = "trace_of_count";
  op.version = OpDef::kOfPasses;
  op.doc = "Whether this replica is one of those whose number of examples a trace was made for.";
  op.min_arity = op.max_arity = 0;
  op.attrs = schema_of<TraceAttrs>();
  op.traits = kReplicaDependent | kNoGradient | kBackward;
  op.infer = [](const InferArgs&) -> Inferred {
    return {{{DType::kBool, {}, {}}}, Locality::kFullBatch};
  };
  op.kernel = [](const KernelArgs& args) {
    const auto& replicas = args.attrs.as<TraceAttrs>().replicas;
    *args.out[0].as<bool>() =
        std::find(replicas.begin(), replicas.end(), args.replica_context.replica) != replicas.end();
  };
  op.samples = {{.shapes = {}, .attrs = TraceAttrs({0})}};
  return op;
}

OpDef replica_op() {
  OpDef op;
  op.name = "replica_id";
  op.doc = "Which replica this is, from 0 (int64).";
  op.min_arity = op.max_arity = 0;
  op.traits = kReplicaDependent | kNoGradient;
  op.infer = int64_scalar;
  op.kernel = [](const KernelArgs& args) { store(args, args.replica_context.replica); };
  op.samples = {{.shapes = {}, .attrs = {}}};
  return op;
}

}  // namespace

std::vector<OpDef> replica_context_ops() {
  return {
      size_op("size_of", "Number (int64) of elements along axes on this replica.", 0, size_kernel),
      global_size_op(),
      dimensions_op(),
      symbol_op(),
      numbers_op(),
      trace_op(),
      replica_op(),
  };
}

}  // namespace samegrad
