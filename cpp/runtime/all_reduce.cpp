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
      slices_.push_back({&node, begin, std::min(begin + block, n)});
    }
    total_ += n * std::int64_t(size_of(type.dtype)) * context_.replicas();
  }

  void run() const {
    if (call_.communicator) return run_in_world();
    for_slices(0, slices_.size(), [&](std::size_t i, Scratch& memory) {
      const Slice& slice = slices_[i];
      sum(slice, {0, context_.replicas()}, result(slice), memory);
      finish(slice);
    });
  }

 private:
  void run_in_world() const {
    WorldSum world(*call_.communicator);
    std::vector<WorldPiece> pieces;
    std::vector<std::size_t> first;  // slice of each piece, and the number of all
    std::vector<std::int64_t> at;    // of each slice in its piece
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      const Slice& slice = slices_[i];
      const std::int64_t bytes = (slice.end - slice.begin) * width(slice);
      if (pieces.empty() || pieces.back().bytes + bytes > world.piece_bytes()) {
        pieces.emplace_back();
        first.push_back(i);
      }
      const std::int64_t whole = plan_.graph.type(slice.node->outputs[0]).shape.size();
      at.push_back(pieces.back().add(dtype(slice), slice.end - slice.begin, whole * width(slice)));
    }
    first.push_back(slices_.size());
    world.run(
        pieces,
        [&](std::size_t piece, std::span<std::byte* const> states) {
          for_slices(first[piece], first[piece + 1], [&](std::size_t i, Scratch& memory) {
            for (std::size_t t = 0; t < states.size(); ++t) {
              sum(slices_[i], world.subtrees()[t], states[t] + at[i], memory);
            }
          });
        },
        [&](std::size_t piece, const std::byte* sums) {
          for_slices(first[piece], first[piece + 1], [&](std::size_t i, Scratch&) {
            const Slice& slice = slices_[i];
            std::copy_n(sums + at[i], (slice.end - slice.begin) * width(slice), result(slice));
            finish(slice);
          });
        });
  }

  template <class F>
  void for_slices(std::size_t first, std::size_t last, const F& f) const {
    if (total_ <= thresholds().parallel_all_reduce_bytes) {
      for (std::size_t i = first; i < last; ++i) f(i, context_.main_task().scratch);
      return;
    }
    parallel_loops().run(std::int64_t(last - first), [&](std::int64_t i) {
      const Context::Lease lease(context_);
      f(first + std::size_t(i), (*lease).scratch);
    });
  }

  DType dtype(const Slice& slice) const { return plan_.graph.type(slice.node->outputs[0]).dtype; }
  std::int64_t width(const Slice& slice) const { return std::int64_t(size_of(dtype(slice))); }
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
