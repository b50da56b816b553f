// The top of the tree: partial results of the replicas are added in the order in which one device
// would have joined its subtrees.
#include <algorithm>
#include <memory>

#include "base/thresholds.h"
#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "ops/attributes.h"
#include "runtime/executor.h"
#include "runtime/threads.h"
#include "runtime/tree.h"
#include "runtime/world_sums.h"

namespace samegrad {
namespace {

// Elements of one result.
struct Slice {
  const Node* node;
  std::int64_t begin, end;
};

class AllReduce {
 public:
  AllReduce(const Plan& plan, ExecutionContext& context) : plan_(plan), context_(context) {}

  void add(const Node& node) {
    const ValueType& type = plan_.graph.type(node.outputs[0]);
    const std::int64_t n = type.shape.size();
    const std::int64_t block = thresholds().all_reduce_block;
    for (std::int64_t begin = 0; begin < n; begin += block) {
      slices_.push_back({&node, begin, std::min(begin + block, n)});
    }
    total_ += n * std::int64_t(size_of(type.dtype)) * context_.replicas();
  }

  void run() const {
    for_slices(0, slices_.size(), [&](std::size_t i, Scratch& memory) {
      const Slice& slice = slices_[i];
      const Scratch::Frame frame(memory);
      const TreeRange all{0, context_.terms(input(slice))};
      sum_of_replicas(parts(slice, all, memory), dtype(slice), slice.end - slice.begin,
                      result(slice), memory);
      finish(slice);
    });
  }

  // The results are there when `world` has taken its sums.
  static void start(const std::shared_ptr<AllReduce>& self, WorldSums& world) {
    self->cut(world);
    for (const SliceBucket& bucket : self->buckets_) {
      world.start(
          bucket.of_world,
          [&](std::span<std::byte* const> states) { self->fill(bucket, states, world); },
          [self, &bucket](const std::byte* sums) { self->take(bucket, sums); });
    }
  }

 private:
  // A bucket: slices that are sent together.
  struct SliceBucket {
    Bucket of_world;
    std::size_t begin;
    std::vector<std::int64_t> at;  // of each in it
  };

  void cut(const WorldSums& world) {
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      const Slice& slice = slices_[i];
      const std::int64_t bytes = bytes_of(slice);
      const WorldTree& tree = context_.tree_of(slice.node->inputs[0]);
      if (buckets_.empty() || buckets_.back().of_world.bytes + bytes > world.bucket_bytes()) {
        buckets_.push_back({{}, i, {}});
      }
      const std::int64_t whole = plan_.graph.type(slice.node->outputs[0]).shape.size();
      SliceBucket& bucket = buckets_.back();
      bucket.at.push_back(
          bucket.of_world.add(dtype(slice), slice.end - slice.begin, whole * width(slice), tree));
    }
  }

  void fill(const SliceBucket& bucket, std::span<std::byte* const> states,
            const WorldSums& world) const {
    for_slices(bucket.begin, bucket.begin + bucket.at.size(), [&](std::size_t i, Scratch& memory) {
      const Slice& slice = slices_[i];
      const PackedSum& packed = bucket.of_world.numbers[i - bucket.begin];
      for (std::size_t t = 0; t < packed.tree->own().size(); ++t) {
        const Scratch::Frame frame(memory);
        const TreeRange range = context_.terms_of(input(slice), t);
        const std::byte* sum = sum_of_replicas(parts(slice, range, memory), dtype(slice),
                                               slice.end - slice.begin, memory);
        world.put(states[t] + bucket.at[i - bucket.begin], sum, bytes_of(slice));
      }
    });
  }

  void take(const SliceBucket& bucket, const std::byte* sums) const {
    for_slices(bucket.begin, bucket.begin + bucket.at.size(), [&](std::size_t i, Scratch&) {
      const Slice& slice = slices_[i];
      std::copy_n(sums + bucket.at[i - bucket.begin], bytes_of(slice), result(slice));
      finish(slice);
    });
  }

  template <class F>
  void for_slices(std::size_t first, std::size_t last, const F& f) const {
    if (total_ <= thresholds().parallel_all_reduce_bytes) {
      for (std::size_t i = first; i < last; ++i) f(i, context_.main_task().scratch);
      return;
    }
    parallel_loops().run(std::int64_t(last - first), [&](std::int64_t i) {
      const ExecutionContext::TaskLease lease(context_);
      f(first + std::size_t(i), (*lease).scratch);
    });
  }

  DType dtype(const Slice& slice) const { return plan_.graph.type(slice.node->outputs[0]).dtype; }
  std::int64_t width(const Slice& slice) const { return std::int64_t(size_of(dtype(slice))); }
  std::int64_t bytes_of(const Slice& slice) const {
    return (slice.end - slice.begin) * width(slice);
  }
  std::byte* result(const Slice& slice) const {
    return context_.base(0, slice.node->outputs[0]) + slice.begin * width(slice);
  }

  Value input(const Slice& slice) const { return plan_.root[slice.node->inputs[0]]; }

  // Some of the terms that this process has.
  std::span<const std::byte* const> parts(const Slice& slice, TreeRange of, Scratch& memory) const {
    const auto count = std::size_t(of.size());
    auto* x = static_cast<const std::byte**>(memory.take(count * sizeof(std::byte*)));
    for (std::size_t i = 0; i < count; ++i) {
      x[i] = context_.term(input(slice), of.begin + std::int64_t(i)) + slice.begin * width(slice);
    }
    return {x, count};
  }

  void finish(const Slice& slice) const {
    if (!is_mean(*slice.node)) return;
    const Array count = Array::number(dtype(slice), context_.replicas_of_world());
    divide(result(slice), slice.end - slice.begin, count);
  }

  const Plan& plan_;
  ExecutionContext& context_;
  std::vector<Slice> slices_;
  std::int64_t total_ = 0;            // bytes that are read
  std::vector<SliceBucket> buckets_;  // of sums over processes
};

}  // namespace

void run_step(const AllReduceStep& step, const StepRun& run) {
  const Plan& plan = run.plan;
  const ExecuteParams& call = run.call;
  ExecutionContext& context = run.context;
  const auto sums = std::make_shared<AllReduce>(plan, context);
  bool any = false;
  for (NodeId index : step.nodes) {
    const Node& node = plan.graph.nodes[index];
    if (node.op->exchange) {
      exchange(plan, node, call, context);
      continue;
    }
    sums->add(node);
    any = true;
  }
  if (!any) return;
  if (call.communicator) {
    AllReduce::start(sums, context.world_sums());
  } else {
    sums->run();
  }
}

}  // namespace samegrad
