// The top of the tree: partial results of the replicas are added in the order in which one device
// would have joined its subtrees.
#include <algorithm>

#include "base/error.h"
#include "base/thresholds.h"
#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "ops/attributes.h"
#include "runtime/executor.h"
#include "runtime/threads.h"
#include "runtime/tree.h"

namespace samegrad {
namespace {

// Elements of one result.
struct Slice {
  const Node* node;
  std::int64_t begin, end;
};

void reduce_slice(const Plan& plan, const Slice& slice, Context& context, Scratch& memory) {
  const Graph& graph = plan.graph;
  const Value input = plan.root[std::size_t(slice.node->inputs[0])];
  const DType dtype = graph.type(input).dtype;
  const auto width = std::int64_t(size_of(dtype));
  const std::int64_t n = slice.end - slice.begin;
  const Scratch::Frame frame(memory);
  const auto replicas = std::size_t(context.replicas());
  auto* x = static_cast<const std::byte**>(memory.take(replicas * sizeof(std::byte*)));
  for (std::size_t r = 0; r < replicas; ++r) {
    x[r] = context.base(int(r), input) + slice.begin * width;
  }
  std::byte* out = context.base(0, slice.node->outputs[0]) + slice.begin * width;
  sum_of_replicas({x, replicas}, dtype, n, out, memory);
  if (slice.node->attrs.as<AllReduceAttrs>().op == ReduceOp::kMean) {
    const Array count = Array::number(dtype, context.replicas());
    kernels().binary(BinaryFn::k_div, dtype)(out, count.raw(), out, n, 1, 0);
  }
}

std::vector<View> views_of(const Plan& plan, const std::vector<Value>& values, int replica,
                           Context& context) {
  std::vector<View> views;
  for (Value value : values) {
    const ValueType& type = plan.graph.type(value);
    views.push_back(view_of(type, concrete_shape(type, context.facts(replica).local_examples),
                            context.base(replica, plan.root[std::size_t(value)])));
  }
  return views;
}

void exchange(const Plan& plan, const Node& node, Context& context) {
  std::vector<std::vector<View>> in, out;
  const int copies = plan.graph.varying(node.outputs[0]) ? context.replicas() : 1;
  for (int r = 0; r < context.replicas(); ++r) {
    in.push_back(views_of(plan, node.inputs, r, context));
    if (r < copies) out.push_back(views_of(plan, node.outputs, r, context));
  }
  node.op->exchange({node.attrs, in, out});
}

}  // namespace

void all_reduce(const Plan& plan, const std::vector<std::int32_t>& nodes, Context& context) {
  std::vector<Slice> slices;
  std::int64_t total = 0;
  for (std::int32_t index : nodes) {
    const Node& node = plan.graph.nodes[std::size_t(index)];
    if (node.op->exchange) {
      exchange(plan, node, context);
      continue;
    }
    const std::int64_t n = plan.graph.type(node.outputs[0]).shape.size();
    const std::int64_t block = thresholds().all_reduce_block;
    for (std::int64_t begin = 0; begin < n; begin += block) {
      slices.push_back({&node, begin, std::min(begin + block, n)});
    }
    total += n * context.replicas();
  }
  if (total <= thresholds().parallel_all_reduce_elements) {
    for (const Slice& slice : slices)
      reduce_slice(plan, slice, context, context.main_task().scratch);
    return;
  }
  parallel_loops().run(std::int64_t(slices.size()), [&](std::int64_t i) {
    const Context::Lease lease(context);
    reduce_slice(plan, slices[std::size_t(i)], context, (*lease).scratch);
  });
}

}  // namespace samegrad
