// Attention, with whole rows of scores for a few queries at a time, which stay in L2. No matrix of
// all pairs is ever in memory, nor is the dropout mask, which the derivative draws again. Each
// number is computed by the functions that compute it in the decomposition.
#include "ops/attention.h"

#include <algorithm>
#include <limits>

#include "base/reduction_order.h"
#include "base/rounding.h"
#include "base/thresholds.h"
#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "ops/attention_head.h"

namespace samegrad {
namespace {

// body(i, scratch) for each of so many tasks.
template <class Body>
void for_each_task(const ParallelFor* parallel, std::int64_t tasks, Scratch& scratch,
                   const Body& body) {
  if (!parallel || tasks < 2) {
    for (std::int64_t i = 0; i < tasks; ++i) body(i, scratch);
    return;
  }
  parallel->run(tasks, [&](std::int64_t i) {
    Scratch own;
    body(i, own);
  });
}

// The backward pass of a head. The gradients of keys and values are contractions over the queries.
class Backward {
 public:
  // sharing: the loops of the threads that share the head; null: one thread has it.
  Backward(const Attention& attention, const Attention::OperandGradients& to, std::int64_t i,
           Scratch& scratch, const ParallelFor* sharing)
      : a_(attention),
        sharing_(sharing),
        to_(to),
        batch_(i / to.q.heads),
        head_(i % to.q.heads),
        scratch_(scratch),
        frame_(scratch),
        p_(attention.take(scratch, attention.most(sharing), true)) {
    a_.pack(p_, batch_, head_);
  }

  void run() {
    const TreeRange queries{0, a_.queries().length};
    const Levels keys(a_.key_heads(), to_.k.at(batch_, head_), queries, scratch_);
    const Levels values(a_.value_heads(), to_.v.at(batch_, head_), queries, scratch_);
    walk_tree(
        kContractionTree, queries,
        [&](TreeRange of, int level) { chain(of, keys[level], values[level]); },
        [&](int level) {
          join(a_.key_heads(), keys[level], keys[level + 1]);
          join(a_.value_heads(), values[level], values[level + 1]);
        });
  }

 private:
  // The sums of a head at the levels of the tree: the first one is the result.
  class Levels {
   public:
    Levels(const Heads& x, std::byte* result, TreeRange queries, Scratch& scratch)
        : result_(result), bytes_(x.length * x.stride() * x.item) {
      const std::int64_t others = kContractionTree.levels(queries.size()) - 1;
      others_ = static_cast<std::byte*>(scratch.take(std::size_t(others * bytes_)));
    }
    std::byte* operator[](int level) const {
      return level == 0 ? result_ : others_ + (level - 1) * bytes_;
    }

   private:
    std::byte *result_, *others_;
    std::int64_t bytes_;
  };

  void chain(TreeRange of, std::byte* keys, std::byte* values) {
    bool accumulate = false;
    std::int64_t at = of.begin;
    do {
      const Attention::QueryBlock block = next_block(at, of.end);
      run_block(block, keys, values, accumulate);
      accumulate = true;
      at = block.end;
    } while (at < of.end);
  }

  // The next blocks of one thread, joined for those that share a head while they see equal keys:
  // the others' products with zeros would differ where an operand is not finite.
  Attention::QueryBlock next_block(std::int64_t begin, std::int64_t stop) const {
    const auto from = [&](std::int64_t at) {
      return a_.block(p_, batch_, head_, at, std::min(at + a_.most(), stop));
    };
    Attention::QueryBlock block = from(begin);
    while (block.end < stop) {
      const Attention::QueryBlock next = from(block.end);
      if (next.seen != block.seen || next.end - begin > a_.most(sharing_)) break;
      block.end = next.end;
    }
    return block;
  }

  void run_block(const Attention::QueryBlock& block, std::byte* keys, std::byte* values,
                 bool accumulate) {
    a_.pack_seen(p_, block);
    if (!accumulate) a_.clear_unseen(block, keys, values);
    by_rows(block, [&](const auto& p, const auto& rows) { a_.weigh_and_drop(p, rows); });
    by_keys(block, [&](TreeRange of, Scratch& scratch) {
      a_.gradients_of_values(p_, block, to_, of, values, accumulate, scratch);
    });
    by_rows(block, [&](const auto& p, const auto& rows) { a_.gradients_of_queries(p, rows, to_); });
    by_keys(block, [&](TreeRange of, Scratch& scratch) {
      a_.gradients_of_keys(p_, block, of, keys, accumulate, scratch);
    });
  }

  // body(memory of the rows, rows) for parts of a block's queries.
  template <class Body>
  void by_rows(const Attention::QueryBlock& block, const Body& body) const {
    if (!sharing_) return body(p_, block);
    constexpr std::int64_t kRows = 12;  // whole tiles of most variants
    const std::int64_t tasks = divide_up(block.rows(), kRows);
    for_each_task(sharing_, tasks, scratch_, [&](std::int64_t i, Scratch& scratch) {
      const Scratch::Frame frame(scratch);
      Attention::QueryBlock rows = block;
      rows.begin = block.begin + i * kRows;
      rows.end = std::min(block.end, rows.begin + kRows);
      body(a_.from_row(p_, i * kRows, scratch), rows);
    });
  }

  // body(keys, scratch) for parts of the keys that a block sees: the elements of a result.
  template <class Body>
  void by_keys(const Attention::QueryBlock& block, const Body& body) const {
    const std::int64_t seen = block.seen;
    if (!sharing_) return body(TreeRange{0, seen}, scratch_);
    const std::int64_t tasks = thresholds().parts_per_thread * sharing_->threads();
    const std::int64_t grains = divide_up(seen, kProductRowGrain);
    for_each_task(sharing_, tasks, scratch_, [&](std::int64_t i, Scratch& scratch) {
      const TreeRange of{grains * i / tasks * kProductRowGrain,
                         std::min(seen, grains * (i + 1) / tasks * kProductRowGrain)};
      if (of.begin < of.end) body(of, scratch);
    });
  }

  void join(const Heads& x, std::byte* left, std::byte* right) const {
    const BinaryKernel add = kernels().binary(BinaryFn::k_add, a_.dtype());
    for (std::int64_t r = 0; r < x.length; ++r) {
      add(x.row(left, r), x.row(right, r), x.row(left, r), x.width, 1, 1);
    }
  }

  const Attention& a_;
  const ParallelFor* sharing_;
  const Attention::OperandGradients& to_;
  std::int64_t batch_, head_;
  Scratch& scratch_;
  const Scratch::Frame frame_;
  Attention::PackedHead p_;
};

}  // namespace

double masked_score(DType dtype) {
  const double largest = dtype == DType::kFloat64 ? std::numeric_limits<double>::max()
                                                  : double(std::numeric_limits<float>::max());
  return -0.7 * largest;
}

// Threads take heads, and ranges of a head's queries where heads are few.
void attention_kernel(const KernelArgs& args) {
  const Attention attention(args, 0);
  const Heads y(args.out[0]);
  const std::int64_t most = std::max<std::int64_t>(attention.most(), 1);
  const std::int64_t blocks = divide_up(y.length, most);
  std::int64_t ranges = 1;
  if (const ParallelFor* loops = attention.parallel()) {
    ranges = std::clamp<std::int64_t>(thresholds().parts_per_thread * loops->threads() /
                                          std::max<std::int64_t>(attention.count(), 1),
                                      1, std::max<std::int64_t>(blocks, 1));
  }
  for_each_task(attention.parallel(), attention.count() * ranges, args.scratch,
                [&](std::int64_t i, Scratch& scratch) {
                  const Scratch::Frame frame(scratch);
                  Attention::PackedHead packed = attention.take(scratch, most, false);
                  const std::int64_t of = i / ranges, batch = of / y.heads, head = of % y.heads;
                  attention.pack(packed, batch, head);
                  const std::int64_t begin = blocks * (i % ranges) / ranges * most;
                  const std::int64_t stop = blocks * (i % ranges + 1) / ranges * most;
                  for (std::int64_t at = begin; at < std::min(stop, y.length); at += most) {
                    const std::int64_t end = std::min(at + most, y.length);
                    attention.forward(packed, attention.block(packed, batch, head, at, end), y);
                  }
                });
}

// Threads that share a head take parts of one block of queries after the other: the gradients of
// its keys go on from block to block.
void attention_grad_kernel(const KernelArgs& args) {
  const Attention attention(args, 1);
  const Attention::OperandGradients to{Heads(args.in[0]), Heads(args.out[0]), Heads(args.out[1]),
                                       Heads(args.out[2])};
  const std::int64_t unshared = attention.unshared();
  for_each_task(attention.parallel(), unshared, args.scratch,
                [&](std::int64_t i, Scratch& scratch) {
                  Backward(attention, to, i, scratch, nullptr).run();
                });
  for (std::int64_t i = unshared; i < attention.count(); ++i) {
    Backward(attention, to, i, args.scratch, attention.parallel()).run();
  }
}

}  // namespace samegrad
