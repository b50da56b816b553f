#include "runtime/round_sum.h"

#include <algorithm>
#include <deque>

#include "base/thresholds.h"
#include "kernels/table.h"
#include "ops/tree_rows.h"
#include "runtime/interrupt.h"
#include "runtime/threads.h"

namespace samegrad {
namespace {

// Rows of the operands between two looks for an interrupt.
constexpr std::int64_t kRowsAtATime = 4096;

// The iterations [begin, end).
struct Range {
  std::size_t begin, end;
};

class RoundProducts {
 public:
  RoundProducts(const Graph& round, const RoundSum& sum, const std::vector<RoundEntries>& rounds,
                const PerReplica<Array>& sums, Context& context)
      : rounds_(rounds),
        sums_(sums),
        context_(context),
        a_(round.values[sum.product->inputs[0]].argument()),
        b_(round.values[sum.product->inputs[1]].argument()),
        rows_per_example_(round.type(sum.product->inputs[0]).batch.rows_per_example),
        m_(sums[0].shape()[0]),
        n_(sums[0].shape()[1]),
        all_(sum.all_reduce != nullptr),
        kernels_(kernels().product(sums[0].dtype())) {}

  bool run() {
    if (!kernels_.matmul_tree_add || rounds_.empty() || m_ * n_ == 0) return false;
    for (std::size_t s = 0; s < sums_.size(); ++s) list_shares(s);
    if (most_rows_ > thresholds().product_subtree_rows) return false;
    choose_blocks();
    const auto rounds_at_a_time = std::size_t(
        std::max<std::int64_t>(1, kRowsAtATime / std::max<std::int64_t>(1, most_rows_)));
    for (std::size_t begin = 0; begin < rounds_.size(); begin += rounds_at_a_time) {
      poll_interrupt();
      add({begin, std::min(rounds_.size(), begin + rounds_at_a_time)});
    }
    return true;
  }

 private:
  // The examples of a sum in all rounds, and how many rows a round has.
  void list_shares(std::size_t s) {
    std::vector<TreeShare>& shares = shares_.emplace_back();
    for (const RoundEntries& round : rounds_) {
      const Operand a = operand(round[a_], s), b = operand(round[b_], s);
      shares.push_back({a.data, b.data, a.rows / rows_per_example_, 1});
      most_rows_ = std::max(most_rows_, a.rows);
    }
  }

  struct Operand {
    const std::byte* data;
    std::int64_t rows;
  };
  // The rows of a replica, or of all, one's after the other's.
  Operand operand(const PerReplica<Array>& replicas, std::size_t s) {
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
    Operand whole{list, rows};
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
    const std::int64_t work = m_ * n_ * most_rows_ * std::int64_t(rounds_.size());
    threads_ = work > thresholds().parallel_product_work ? parallel_loops().threads() : 1;
    while (blocks() < threads_ && side_ > kProductColumnGrain) side_ /= 2;
    const std::int64_t rows = std::max<std::int64_t>(1, bytes / (side_ * item));
    packed_rounds_ =
        std::size_t(std::max<std::int64_t>(1, rows / std::max<std::int64_t>(1, most_rows_)));
  }

  std::int64_t across() const { return (n_ + side_ - 1) / side_; }
  std::int64_t blocks() const {
    return (m_ + side_ - 1) / side_ * across() * std::int64_t(sums_.size());
  }

  void add(const Range& rounds) const {
    if (threads_ == 1) {
      for (std::int64_t i = 0; i < blocks(); ++i)
        add_block(i, rounds, context_.main_task().scratch);
      return;
    }
    parallel_loops().run(blocks(), [&](std::int64_t i) {
      const Context::Lease lease(context_);
      add_block(i, rounds, (*lease).scratch);
    });
  }

  void add_block(std::int64_t i, const Range& rounds, Scratch& scratch) const {
    const auto s = std::size_t(i % std::int64_t(sums_.size()));
    i /= std::int64_t(sums_.size());
    const std::int64_t row = i / across() * side_, column = i % across() * side_;
    const std::int64_t m = std::min(side_, m_ - row), n = std::min(side_, n_ - column);
    const auto item = std::int64_t(size_of(sums_[s].dtype()));
    std::byte* y = sums_[s].raw() + (row * n_ + column) * item;
    for (std::size_t k = rounds.begin; k < rounds.end; k += packed_rounds_) {
      const std::size_t count = std::min(packed_rounds_, rounds.end - k);
      const TreeSum sum{{shares_[s].data() + k, count}, rows_per_example_, m_, n_};
      const Scratch::Frame frame(scratch);
      void* memory = scratch.take(kernels_.matmul_tree_add_scratch_bytes(sum, m, n));
      kernels_.matmul_tree_add(sum, row, column, m, n, y, n_, memory);
    }
  }

  const std::vector<RoundEntries>& rounds_;
  const PerReplica<Array>& sums_;
  Context& context_;
  std::size_t a_, b_;  // places of the operands among the entries of a round
  std::int64_t rows_per_example_, m_, n_;
  bool all_;  // a sum is over the examples of all replicas
  const ProductKernels& kernels_;
  std::vector<std::vector<TreeShare>> shares_;  // per sum: those of all rounds
  std::deque<Leased> lists_;                    // operands that were not one list
  std::int64_t most_rows_ = 0;                  // of a round
  std::int64_t side_ = kProductColumnGrain;     // of a block
  std::size_t packed_rounds_ = 1;
  int threads_ = 1;
};

}  // namespace

bool add_round_products(const Graph& round, const RoundSum& sum,
                        const std::vector<RoundEntries>& rounds, const PerReplica<Array>& sums,
                        Context& context) {
  return RoundProducts(round, sum, rounds, sums, context).run();
}

}  // namespace samegrad
