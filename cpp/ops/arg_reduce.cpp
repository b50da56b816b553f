// Positions of the largest and the smallest elements along an axis.
#include <algorithm>

#include "kernels/table.h"
#include "ops/attributes.h"
#include "ops/families.h"
#include "ops/rules.h"
#include "ops/transpose.h"

namespace samegrad {
namespace {

Inferred arg_rule(const InferArgs& args) {
  check_dtype(args, 0, kNumbers);
  check_min_rank(args, 0, 1);
  const ValueType& x = args.in[0];
  const int axis = normalize_axis(args.attrs.as<ArgMaxAttrs>().axis, x.shape.rank(), args.op.name);
  check_value(x.shape[axis] != 0, args.op.name, "axis ", axis, " of shape ", args.shape_of(0),
              " has no elements to choose from; leave empty tensors out.");
  ValueType y = x;
  y.dtype = DType::kInt64;
  y.shape.erase(axis);
  if (axis == x.batch.axis) y.batch = {};
  if (axis < x.batch.axis) --y.batch.axis;
  return one_result(args, y);
}

void choose(ArgReduceKernel choice, const KernelArgs& args) {
  const View& x = args.in[0];
  const int rank = x.shape.rank();
  const int axis = normalize_axis(args.attrs.as<ArgMaxAttrs>().axis, rank, "arg_max");
  const std::int64_t n = x.shape[axis];
  std::int64_t* y = args.out[0].as<std::int64_t>();
  if (n == 0) {  // no examples to choose from
    std::fill_n(y, args.out[0].size(), 0);
    return;
  }
  if (axis == rank - 1) {
    choice(x.data, y, x.shape.size(0, axis), n);
    return;
  }
  const Scratch::Frame frame(args.scratch);
  const std::size_t item = size_of(x.dtype);
  const std::int64_t columns = x.shape.size(axis + 1, rank);
  void* turned = args.scratch.take(item * std::size_t(n * columns));
  const std::int64_t outer = x.shape.size(0, axis);
  for (std::int64_t i = 0; i < outer; ++i) {
    swap_axes(x.as<const char>() + item * std::size_t(i * n * columns), n, columns, 1, item,
              turned);
    choice(turned, y + i * columns, columns, n);
  }
}

void arg_max_kernel(const KernelArgs& args) {
  choose(kernels().arg_max(args.in[0].dtype), args);
}

void arg_min_kernel(const KernelArgs& args) {
  choose(kernels().arg_min(args.in[0].dtype), args);
}

OpDef arg_row(const char* name, const char* doc, Kernel kernel) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.operands = {"x"};
  op.attrs = schema_of<ArgMaxAttrs>();
  op.traits = kNoGradient;
  op.infer = arg_rule;
  op.kernel = kernel;
  op.samples = {{.shapes = {{2, 3}}, .attrs = ArgMaxAttrs{.axis = 0}},
                {.shapes = {{5, 7}}, .attrs = ArgMaxAttrs{.axis = -1}, .batched = {1}},
                {.shapes = {{5, 4, 3}}, .attrs = ArgMaxAttrs{.axis = 1}, .batched = {1}}};
  return op;
}

}  // namespace

std::vector<OpDef> arg_reduce_ops() {
  return {arg_row("arg_max", "Position (int64) of the first largest element along an axis.",
                  arg_max_kernel),
          arg_row("arg_min", "Position (int64) of the first smallest element along an axis.",
                  arg_min_kernel)};
}

}  // namespace samegrad
