#include "runtime/iteration_sum.h"

#include <algorithm>
#include <deque>

#include "base/rounding.h"
#include "base/thresholds.h"
#include "kernels/table.h"
#include "ops/tree_reduction.h"
#include "runtime/interrupt.h"
#include "runtime/threads.h"

namespace samegrad {
namespace {

// Rows of the operands between two looks for an interrupt.
constexpr std::int64_t kRowsAtATime = 4096;

// The iterations [begin, end).
struct IterationRange {
  std::size_t begin, end;
};

class IterationProducts {
 public:
  IterationProducts(const Graph& iteration, const IterationSum& sum,
                    const std::vector<IterationEntries>& iterations, const PerReplica<Array>& sums,
                    ExecutionContext& context)
      : iterations_(iterations),
        sums_(sums),
        context_(context),
        a_(iteration.values[sum.product->inputs[0]].argument()),
        b_(iteration.values[sum.product->inputs[1]].argument()),
        rows_per_example_(iteration.type(sum.product->inputs[0]).batch.rows_per_example),
        m_(sums[0].shape()[0]),
        n_(sums[0].shape()[1]),
        all_(sum.all_reduce != nullptr),
        kernels_(kernels().product(sums[0].dtype())) {}

  bool run() {
    if (!kernels_.matmul_tree_add || iterations_.empty() || m_ * n_ == 0) return false;
    for (std::size_t s = 0; s < sums_.size(); ++s) list_shares(s);
    if (most_rows_ > thresholds().product_subtree_rows) return false;
    choose_blocks();
    const auto rounds_at_a_time = std::size_t(
        std::max<std::int64_t>(1, kRowsAtATime / std::max<std::int64_t>(1, most_rows_)));
    for (std::size_t begin = 0; begin < iterations_.size(); begin += rounds_at_a_time) {
      poll_interrupt();
      add({begin, std::min(iterations_.size(), begin + rounds_at_a_time)});
    }
    return true;
  }

 private:
  // The examples of a sum in all iterations, and how many rows an iteration has.
  void list_shares(std::size_t s) {
    std::vector<TreeShare>& shares = shares_.emplace_back();
    for (const IterationEntries& iteration : iterations_) {
      const StackedOperand a = operand(iteration[a_], s), b = operand(iteration[b_], s);
      shares.push_back({a.data, b.data, a.rows / rows_per_example_, 1});
      most_rows_ = std::max(most_rows_, a.rows);
    }
  }

  struct StackedOperand {
    const std::byte* data;
    std::int64_t rows;
  };
  // The rows of a replica, or of all, one's after the other's.
  StackedOperand operand(const PerReplica<Array>& replicas, std::size_t s) {
    if (!all_) return {replicas.at(s).raw(), replicas.at(s).shape()[0]};
    std::int64_t rows = 0;
    std::size_t bytes = 0;
    bool is_list = true;
    for (const Array& array : replicas) {
      is_list &= array.bytes() == 0 || array.raw() == replicas[0].raw() + bytes;
      bytes += array.bytes();
      rows += array.shape()[0];
    }
    if (is_list) return {replicas[0].raw(), rows};
    std::byte* list = lists_.emplace_back(bytes).data();
    StackedOperand whole{list, rows};
    for (const Array& array : replicas) {
      list = std::copy_n(array.raw(), array.bytes(), list);
    }
    return whole;
  }

  // A block of the sum and the rows that are packed for it stay in the second cache.
  void choose_blocks() {
    const auto item = std::int64_t(size_of(sums_[0].dtype()));
    const std::int64_t bytes = thresholds().product_block_bytes / 2;
    while (2 * side_ * 2 * side_ * item <= bytes) side_ *= 2;
    const std::int64_t work = m_ * n_ * most_rows_ * std::int64_t(iterations_.size());
    threads_ = work > thresholds().parallel_product_work ? parallel_loops().threads() : 1;
    while (blocks() < threads_ && side_ > kProductColumnGrain) side_ /= 2;
    const std::int64_t rows = std::max<std::int64_t>(1, bytes / (side_ * item));
    packed_iterations_ =
        std::size_t(std::max<std::int64_t>(1, rows / std::max<std::int64_t>(1, most_rows_)));
  }

  std::int64_t across() const { return divide_up(n_, side_); }
  std::int64_t blocks() const {
    return divide_up(m_, side_) * across() * std::int64_t(sums_.size());
  }

  void add(const IterationRange& iterations) const {
    if (threads_ == 1) {
      for (std::int64_t i = 0; i < blocks(); ++i)
        add_block(i, iterations, context_.main_task().scratch);
      return;
    }
    parallel_loops().run(blocks(), [&](std::int64_t i) {
      const ExecutionContext::TaskLease lease(context_);
      add_block(i, iterations, (*lease).scratch);
    });
  }

  void add_block(std::int64_t i, const IterationRange& iterations, Scratch& scratch) const {
    const auto s = std::size_t(i % std::int64_t(sums_.size()));
    i /= std::int64_t(sums_.size());
    const std::int64_t row = i / across() * side_, column = i % across() * side_;
    const std::int64_t m = std::min(side_, m_ - row), n = std::min(side_, n_ - column);
    const auto item = std::int64_t(size_of(sums_[s].dtype()));
    std::byte* y = sums_[s].raw() + (row * n_ + column) * item;
    for (std::size_t k = iterations.begin; k < iterations.end; k += packed_iterations_) {
      const std::size_t count = std::min(packed_iterations_, iterations.end - k);
      const TreeSum sum{{shares_[s].data() + k, count}, rows_per_example_, m_, n_};
      const Scratch::Frame frame(scratch);
      void* memory = scratch.take(kernels_.matmul_tree_add_scratch_bytes(sum, m, n));
      kernels_.matmul_tree_add(sum, row, column, m, n, y, n_, memory);
    }
  }

  const std::vector<IterationEntries>& iterations_;
  const PerReplica<Array>& sums_;
  ExecutionContext& context_;
  std::size_t a_, b_;  // places of the operands among the entries of an iteration
  std::int64_t rows_per_example_, m_, n_;
  bool all_;  // a sum is over the examples of all replicas
  const ProductKernels& kernels_;
  std::vector<std::vector<TreeShare>> shares_;  // per sum: those of all iterations
  std::deque<PooledBuffer> lists_;              // operands that were not one list
  std::int64_t most_rows_ = 0;                  // of an iteration
  std::int64_t side_ = kProductColumnGrain;     // of a block
  std::size_t packed_iterations_ = 1;
  int threads_ = 1;
};

}  // namespace

bool add_iteration_products(const Graph& iteration, const IterationSum& sum,
                            const std::vector<IterationEntries>& iterations,
                            const PerReplica<Array>& sums, ExecutionContext& context) {
  return IterationProducts(iteration, sum, iterations, sums, context).run();
}

}  // namespace samegrad
