#include "runtime/steps/sparse_exchange.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "base/rounding.h"
#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "runtime/steps/sparse_rows.h"
#include "runtime/threads.h"
#include "runtime/tree.h"

namespace samegrad {
namespace {

// A sum over examples or replicas that one process adds up by itself.
struct PartialSum {
  std::size_t sum;
  int rank;
  TreeRange range;  // of the world
  // The rows that are named there, in order, and their sums.
  std::int64_t count = 0;
  std::int64_t* rows = nullptr;
  std::byte* values = nullptr;
};

class SparseExchange {
 public:
  SparseExchange(const Plan& plan, const SparseUpdate& step, SparseUpdateBinding& binding,
                 const ExecuteParams& call, ExecutionContext& context)
      : plan_(plan),
        step_(step),
        binding_(binding),
        world_(*call.communicator),
        context_(context),
        blocks_(plan, step, binding, binding.update, context) {
    for (std::size_t s = 0; s < step.sums.size(); ++s) {
      first_part_.push_back(parts_.size());
      add_parts(s);
    }
    first_part_.push_back(parts_.size());
  }

  void run() {
    find_own();
    tell_counts();
    make_room();
    sum_own();
    trade();
    join();
  }

 private:
  std::int64_t row_bytes(std::size_t s) const {
    return binding_.width * std::int64_t(size_of(dtype(s)));
  }
  DType dtype(std::size_t s) const { return plan_.graph.type(step_.sums[s].result).dtype; }
  bool is_own(const PartialSum& part) const { return part.rank == world_.rank(); }

  // Values that all replicas have alike are sent by the first process.
  void add_parts(std::size_t s) {
    if (!step_.sums[s].all_reduce.exists()) {
      parts_.push_back({s, 0, {0, 1}});
      return;
    }
    for (const WorldTree::Subtree& subtree : tree(s).all()) {
      parts_.push_back({s, subtree.rank, subtree.range});
    }
  }

  const WorldTree& tree(std::size_t s) const {
    return context_.tree_of(plan_.graph.nodes[step_.sums[s].tree].outputs[0]);
  }

  // The examples, or replicas, of a part of this process, as they are numbered here.
  TreeRange local(const PartialSum& part) const {
    if (!step_.sums[part.sum].all_reduce.exists()) return part.range;
    const std::int64_t first = tree(part.sum).range_of(world_.rank()).begin;
    return {part.range.begin - first, part.range.end - first};
  }

  void find_own() {
    named_.resize(parts_.size());
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      if (!is_own(parts_[p])) continue;
      const TreeRange of = local(parts_[p]);
      for (std::int64_t i = 0; i < binding_.named.count; ++i) {
        if (blocks_.is_named(parts_[p].sum, of, i)) named_[p].push_back(i);
      }
      parts_[p].count = std::ssize(named_[p]);
    }
  }

  // Exchanges the number of rows of each part, from all to all.
  void tell_counts() {
    std::vector<std::vector<std::int64_t>> counts(static_cast<std::size_t>(world_.size()));
    for (const PartialSum& part : parts_) counts[std::size_t(part.rank)].push_back(part.count);
    std::vector<Message> sends, receives;
    const auto message = [&](int of, int other) {
      auto& list = counts[std::size_t(of)];
      return Message{other, reinterpret_cast<std::byte*>(list.data()),
                     std::ssize(list) * std::int64_t(sizeof(std::int64_t))};
    };
    for (int rank = 0; rank < world_.size(); ++rank) {
      if (rank == world_.rank()) continue;
      if (!counts[std::size_t(world_.rank())].empty()) {
        sends.push_back(message(world_.rank(), rank));
      }
      if (!counts[std::size_t(rank)].empty()) receives.push_back(message(rank, rank));
    }
    world_.exchange(sends, receives);
    std::vector<std::size_t> next(counts.size());
    for (PartialSum& part : parts_) {
      const auto rank = std::size_t(part.rank);
      part.count = counts[rank][next[rank]++];
    }
  }

  void make_room() {
    std::int64_t bytes = 0;
    for (const PartialSum& part : parts_)
      bytes += part.count * (8 + row_bytes(part.sum)) + 2 * kLine;
    memory_ = PooledBuffer(std::size_t(std::max<std::int64_t>(bytes, 1)));
    std::byte* next = memory_.data();
    const auto take = [&](std::int64_t size) {
      std::byte* const at = next;
      next += aligned(size);
      return at;
    };
    for (PartialSum& part : parts_) {
      part.rows = reinterpret_cast<std::int64_t*>(take(part.count * 8));
      part.values = take(part.count * row_bytes(part.sum));
    }
  }

  void sum_own() {
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const PartialSum& part = parts_[p];
      if (!is_own(part)) continue;
      const TreeRange of = local(part);
      for_chunks(part.count, part.sum, [&](std::int64_t begin, std::int64_t end, Scratch& scratch) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t named = named_[p][std::size_t(i)];
          part.rows[i] = blocks_.named_row(named);
          blocks_.sum_named(part.sum, of, named, part.values + i * row_bytes(part.sum), scratch);
        }
      });
    }
  }

  // Calls f(begin, end, scratch) for pieces of n rows of a sum, in several threads where that is
  // worth it.
  template <class F>
  void for_chunks(std::int64_t n, std::size_t s, const F& f) const {
    constexpr std::int64_t kChunkBytes = 256 << 10;
    const std::int64_t rows = std::max<std::int64_t>(1, kChunkBytes / row_bytes(s));
    const std::int64_t chunks = divide_up(n, rows);
    if (chunks < 2 || parallel_loops().threads() == 1) {
      if (n > 0) f(std::int64_t(0), n, context_.main_task().scratch);
      return;
    }
    parallel_loops().run(chunks, [&](std::int64_t i) {
      const ExecutionContext::TaskLease lease(context_);
      f(i * rows, std::min(n, (i + 1) * rows), (*lease).scratch);
    });
  }

  // Rows and sums, from all to all.
  void trade() {
    std::vector<Message> sends, receives;
    for (const PartialSum& part : parts_) {
      if (part.count == 0) continue;
      const std::array<Message, 2> both = {
          Message{part.rank, reinterpret_cast<std::byte*>(part.rows), part.count * 8},
          Message{part.rank, part.values, part.count * row_bytes(part.sum)}};
      for (Message message : both) {
        if (!is_own(part)) {
          receives.push_back(message);
          continue;
        }
        for (message.rank = 0; message.rank < world_.size(); ++message.rank) {
          if (message.rank != world_.rank()) sends.push_back(message);
        }
      }
    }
    world_.exchange(sends, receives);
  }

  // The binding gets the rows that anybody names, and their sums.
  void join() {
    std::vector<std::int64_t> rows;
    for (const PartialSum& part : parts_)
      rows.insert(rows.end(), part.rows, part.rows + part.count);
    std::ranges::sort(rows);
    rows.erase(std::ranges::unique(rows).begin(), rows.end());
    const std::int64_t n = std::ssize(rows);
    SparseUpdateBinding::TouchedRows& named = binding_.named;
    std::int64_t bytes = aligned(n * 8) + 2 * aligned((n + 1) * 8);
    const std::int64_t sums_at = bytes;
    named.summed_at.clear();
    for (std::size_t s = 0; s < step_.sums.size(); ++s) {
      named.summed_at.push_back(bytes - sums_at);
      bytes += aligned(n * row_bytes(s));
    }
    binding_.of_world = PooledBuffer(std::size_t(std::max<std::int64_t>(bytes, 1)));
    named.row = binding_.of_world.data();
    named.begin = named.row + aligned(n * 8);
    named.place = named.begin + aligned((n + 1) * 8);
    named.summed = named.row + sums_at;
    named.count = n;
    std::ranges::copy(rows, SparseUpdateBinding::as<std::int64_t>(named.row));
    // Each row has one place: its sum.
    for (std::int64_t i = 0; i <= n; ++i) {
      SparseUpdateBinding::as<std::int64_t>(named.begin)[i] = i;
      SparseUpdateBinding::as<std::int64_t>(named.place)[i] = i;
    }
    for (std::size_t s = 0; s < step_.sums.size(); ++s) join(s, rows);
  }

  void join(std::size_t s, const std::vector<std::int64_t>& rows) {
    const std::span<const PartialSum> parts =
        std::span(parts_).subspan(first_part_[s], first_part_[s + 1] - first_part_[s]);
    std::byte* const sums = binding_.named.summed + binding_.named.summed_at[s];
    const std::int64_t bytes = row_bytes(s);
    for_chunks(std::ssize(rows), s, [&](std::int64_t begin, std::int64_t end, Scratch& scratch) {
      const Scratch::Frame frame(scratch);
      const auto levels = std::size_t(kReplicaTree.levels(size_of_tree(s)));
      auto* const memory = static_cast<std::byte*>(scratch.take(levels * std::size_t(bytes)));
      std::vector<const std::byte*> of_part(parts.size());
      std::vector<WorldTree::Subtree> subtrees;
      for (const PartialSum& part : parts) subtrees.push_back({part.rank, part.range});
      std::vector<std::int64_t> next;
      for (const PartialSum& part : parts) {
        const auto found =
            std::lower_bound(part.rows, part.rows + part.count, rows[std::size_t(begin)]);
        next.push_back(found - part.rows);
      }
      for (std::int64_t i = begin; i < end; ++i) {
        for (std::size_t p = 0; p < parts.size(); ++p) {
          const PartialSum& part = parts[p];
          const bool named = next[p] < part.count && part.rows[next[p]] == rows[std::size_t(i)];
          of_part[p] = named ? part.values + next[p]++ * bytes : nullptr;
        }
        const std::byte* sum = sum_of_row(s, subtrees, of_part, memory);
        if (sum) std::memcpy(sums + i * bytes, sum, std::size_t(bytes));
        if (!sum) std::memset(sums + i * bytes, 0, std::size_t(bytes));
      }
    });
    const NodeId all_reduce = step_.sums[s].all_reduce;
    if (!all_reduce.exists() || !is_mean(plan_.graph.nodes[all_reduce])) return;
    divide(sums, std::ssize(rows) * binding_.width, binding_.divisors[s]);
  }

  // A row's sum over all replicas of what each part has of it, which is null where it does not name
  // the row: its +0 changes nothing, as no sum is -0.
  const std::byte* sum_of_row(std::size_t s, std::span<const WorldTree::Subtree> subtrees,
                              std::span<const std::byte* const> of_part, std::byte* levels) const {
    const std::int64_t bytes = row_bytes(s);
    const DType dtype = this->dtype(s);
    std::array<const std::byte*, kMaxTreeLevels> at{};
    join_subtrees(
        {0, size_of_tree(s)}, subtrees,
        [&](std::size_t part, int level) { at[std::size_t(level)] = of_part[part]; },
        [&](int level) {
          const std::byte*& left = at[std::size_t(level)];
          const std::byte* const right = at[std::size_t(level) + 1];
          if (!right) return;
          std::byte* const to = levels + level * bytes;
          if (left) {
            kernels().binary(BinaryFn::k_add, dtype)(left, right, to, binding_.width, 1, 1);
          } else {  // the next subtree wants the memory of that level
            std::memcpy(to, right, std::size_t(bytes));
          }
          left = to;
        });
    return at[0];
  }

  std::int64_t size_of_tree(std::size_t s) const {
    return step_.sums[s].all_reduce.exists() ? tree(s).size() : 1;
  }

  static constexpr std::int64_t kLine = 64;

  const Plan& plan_;
  const SparseUpdate& step_;
  SparseUpdateBinding& binding_;
  Communicator& world_;
  ExecutionContext& context_;
  SparseBlocks blocks_;
  std::vector<PartialSum> parts_;  // of all processes, sum after sum, from left to right
  std::vector<std::size_t> first_part_;
  std::vector<std::vector<std::int64_t>> named_;  // per own part: numbers of the rows it names
  PooledBuffer memory_;
};

}  // namespace

void exchange_rows(const Plan& plan, const SparseUpdate& step, SparseUpdateBinding& binding,
                   const ExecuteParams& call, ExecutionContext& context) {
  SparseExchange(plan, step, binding, call, context).run();
}

}  // namespace samegrad
