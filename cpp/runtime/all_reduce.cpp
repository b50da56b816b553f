// The top of the tree: partial results of the replicas are added in the order in which one device
// would have joined its subtrees.
#include <algorithm>

#include "base/thresholds.h"
#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "ops/attributes.h"
#include "runtime/executor.h"
#include "runtime/threads.h"
#include "runtime/tree.h"
#include "runtime/world_sum.h"

namespace samegrad {
namespace {

// Elements of one result.
struct Slice {
  const Node* node;
  std::int64_t begin, end;
  std::int64_t packed;  // where the result begins, where results travel
};

class AllReduce {
 public:
  AllReduce(const Plan& plan, const Call& call, Context& context)
      : plan_(plan), call_(call), context_(context) {}

  void add(const Node& node) {
    const ValueType& type = plan_.graph.type(node.outputs[0]);
    const std::int64_t n = type.shape.size();
    const std::int64_t block = thresholds().all_reduce_block;
    for (std::int64_t begin = 0; begin < n; begin += block) {
      slices_.push_back({&node, begin, std::min(begin + block, n), packed_bytes_});
    }
    packed_.push_back({type.dtype, packed_bytes_, n});
    packed_bytes_ += aligned(n * std::int64_t(size_of(type.dtype)));
    total_ += n * std::int64_t(size_of(type.dtype)) * context_.replicas();
  }

  void run() const {
    if (!call_.communicator) {
      for_slices([&](const Slice& slice, Scratch& memory) {
        sum(slice, {0, context_.replicas()}, result(slice), memory);
        finish(slice);
      });
      return;
    }
    WorldSum world(*call_.communicator, packed_);
    for_slices([&](const Slice& slice, Scratch& memory) {
      for (std::size_t i = 0; i < world.subtrees().size(); ++i) {
        sum(slice, world.subtrees()[i], world.of_subtree(i) + at(slice), memory);
      }
    });
    const std::byte* sums = world.exchange();
    for_slices([&](const Slice& slice, Scratch&) {
      std::copy_n(sums + at(slice), (slice.end - slice.begin) * width(slice), result(slice));
      finish(slice);
    });
  }

 private:
  template <class F>
  void for_slices(const F& f) const {
    if (total_ <= thresholds().parallel_all_reduce_bytes) {
      for (const Slice& slice : slices_) f(slice, context_.main_task().scratch);
      return;
    }
    parallel_loops().run(std::int64_t(slices_.size()), [&](std::int64_t i) {
      const Context::Lease lease(context_);
      f(slices_[std::size_t(i)], (*lease).scratch);
    });
  }

  DType dtype(const Slice& slice) const { return plan_.graph.type(slice.node->outputs[0]).dtype; }
  std::int64_t width(const Slice& slice) const { return std::int64_t(size_of(dtype(slice))); }
  std::int64_t at(const Slice& slice) const { return slice.packed + slice.begin * width(slice); }
  std::byte* result(const Slice& slice) const {
    return context_.base(0, slice.node->outputs[0]) + slice.begin * width(slice);
  }

  // Over some replicas of this process.
  void sum(const Slice& slice, ReplicaRange replicas, std::byte* out, Scratch& memory) const {
    const Value input = plan_.root[slice.node->inputs[0]];
    const Scratch::Frame frame(memory);
    const auto count = std::size_t(replicas.end - replicas.begin);
    auto* x = static_cast<const std::byte**>(memory.take(count * sizeof(std::byte*)));
    for (std::size_t r = 0; r < count; ++r) {
      x[r] = context_.base(replicas.begin + int(r), input) + slice.begin * width(slice);
    }
    sum_of_replicas({x, count}, dtype(slice), slice.end - slice.begin, out, memory);
  }

  void finish(const Slice& slice) const {
    if (!is_mean(*slice.node)) return;
    const Array count = Array::number(dtype(slice), context_.replicas_of_world());
    divide(result(slice), slice.end - slice.begin, count);
  }

  const Plan& plan_;
  const Call& call_;
  Context& context_;
  std::vector<Slice> slices_;
  std::vector<Packed> packed_;
  std::int64_t packed_bytes_ = 0;
  std::int64_t total_ = 0;  // bytes that are read
};

}  // namespace

void all_reduce(const Plan& plan, const std::vector<NodeId>& nodes, const Call& call,
                Context& context) {
  AllReduce sums(plan, call, context);
  bool any = false;
  for (NodeId index : nodes) {
    const Node& node = plan.graph.nodes[index];
    if (node.op->exchange) {
      exchange(plan, node, call, context);
      continue;
    }
    sums.add(node);
    any = true;
  }
  if (any) sums.run();
}

}  // namespace samegrad
