// The rows of one head of an attention: weights of queries, results, and gradients.
#pragma once

#include <algorithm>
#include <cstring>

#include "base/reduction_order.h"
#include "base/rounding.h"
#include "base/thresholds.h"
#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "ops/attention_operands.h"
#include "ops/gemm_call.h"

namespace samegrad {

// One call: everything but which head.
class Attention {
 public:
  // Operands from `first` on are query, key, value, perhaps masks, and the key of a dropout.
  Attention(const KernelArgs& args, std::size_t first)
      : q_(args.in[first]),
        k_(args.in[first + 1]),
        v_(args.in[first + 2]),
        masks_(masks_among(args.in, first, args.attrs.as<AttentionAttrs>())),
        dropout_(args, args.in[first]),
        causal_(masks_.any() && args.attrs.as<AttentionAttrs>().causal &&
                k_.length <= kContractionBlock),
        zero_blind_(masks_.any() && args.attrs.as<AttentionAttrs>().zero_blind),
        dtype_(args.in[first].dtype),
        product_(kernels().product(dtype_)),
        mul_(kernels().binary(BinaryFn::k_mul, dtype_)),
        parallel_(args.parallel) {
    visit<kFloats>("dot_product_attention", dtype_, [&]<class T>() {
      const T numbers[] = {args.attrs.as<AttentionAttrs>().scale.as<T>(), T(masked_score(dtype_)),
                           T(0), T(dropout_.kept_scale())};
      std::memcpy(numbers_, numbers, sizeof numbers);
    });
  }

  std::int64_t count() const { return q_.batch * q_.heads; }
  std::int64_t keys() const { return k_.length; }
  // The loops of the call; null: one thread.
  const ParallelFor* parallel() const { return parallel_; }
  // The number of heads that a thread takes as a whole: where heads are few, a multiple of the
  // threads, which share each of the others.
  std::int64_t unshared() const {
    const std::int64_t threads = parallel_ ? parallel_->threads() : 1;
    return count() < thresholds().parts_per_thread * threads ? count() / threads * threads
                                                             : count();
  }

  // Queries whose score rows are there together: those of a thread.
  std::int64_t most() const {
    const std::int64_t row = std::max<std::int64_t>(keys() * q_.item, 1);
    const std::int64_t fitting = thresholds().tile_bytes / row / kWholeTiles * kWholeTiles;
    return std::clamp<std::int64_t>(fitting, std::min(kWholeTiles, q_.length), q_.length);
  }
  // Queries whose score rows are there together: those of all threads that share a head; null: of
  // one.
  std::int64_t most(const ParallelFor* sharing) const {
    return std::min(q_.length, most() * (sharing ? sharing->threads() : 1));
  }

  // The queries [begin, end) of a head, and how many keys they look at.
  struct QueryBlock {
    std::int64_t batch, head, begin, end, seen = 0;
    std::int64_t rows() const { return end - begin; }
  };

  // The packed operands of a head and the buffers of one task.
  struct PackedHead {
    void *keys, *values, *keys_back = nullptr, *values_back = nullptr;
    std::byte *weights, *grads = nullptr, *products = nullptr, *sums = nullptr;
    std::byte *joined = nullptr, *kept = nullptr,
              *drawn = nullptr;  // rows of masks, and of dropouts
    std::int64_t depth = -1;     // how many keys `values` or `keys_back` is packed of
  };

  // The number of consecutive rows drawn at once: random numbers are generated in blocks.
  std::int64_t rows_drawn() const {
    constexpr std::int64_t kNumbers = 2048;
    return std::max<std::int64_t>(kNumbers / std::max<std::int64_t>(keys(), 1), 1);
  }

  // Memory for some queries at a time, forward or backward.
  PackedHead take(Scratch& scratch, std::int64_t queries, bool backward) const {
    const auto bytes = [&](std::int64_t count) {
      return static_cast<std::byte*>(scratch.take(std::size_t(count)));
    };
    const auto pack = [&](std::int64_t k, std::int64_t n) {
      return scratch.take(product_.packed_bytes(k, n));
    };
    const std::int64_t pairs = queries * keys();
    PackedHead p{
        .keys = pack(q_.width, keys()), .values = nullptr, .weights = bytes(pairs * q_.item)};
    take_for_rows(p, scratch);
    if (dropout_.any()) p.kept = bytes(pairs);
    if (!backward) {
      p.values = pack(keys(), v_.width);
      return p;
    }
    p.keys_back = pack(keys(), q_.width);
    p.values_back = pack(v_.width, keys());
    p.grads = bytes(pairs * q_.item);
    p.products = bytes(pairs * q_.item);
    p.sums = bytes(queries * q_.item);
    return p;
  }

  // The memory from a row of the block on, with buffers for a task of its own.
  PackedHead from_row(PackedHead p, std::int64_t row, Scratch& scratch) const {
    p.weights += row * row_bytes();
    p.grads += row * row_bytes();
    p.products += row * row_bytes();
    p.sums += row * q_.item;
    if (p.kept) p.kept += row * keys();
    take_for_rows(p, scratch);
    return p;
  }

  // Returns the block with the number of keys to compute: those that the last query may attend to,
  // in whole panels. The weights of the others are zeros, which change no sum. The exceptions are
  // computed whole: a query that may attend to no key, and more keys than one chain holds. The
  // reduction order of chains depends on the number of keys.
  QueryBlock block(const PackedHead& p, std::int64_t batch, std::int64_t head, std::int64_t begin,
                   std::int64_t end) const {
    constexpr std::int64_t kPanels = 192;  // whole panels of every variant
    QueryBlock block{batch, head, begin, end, keys()};
    if (!causal_) return block;
    block.seen = std::min(keys(), round_up(end, kPanels));
    if (block.seen < keys() && !zero_blind_ && any_blind(p, block)) block.seen = keys();
    return block;
  }

  void pack(const PackedHead& p, std::int64_t b, std::int64_t h) const {
    product_.pack(k_.at(b, h), q_.width, keys(), k_.stride(), true, p.keys);
    if (p.values_back) {
      product_.pack(v_.at(b, h), v_.width, keys(), v_.stride(), true, p.values_back);
    }
  }

  // Packs the operands that are contracted over keys again when a block sees more keys.
  void pack_seen(PackedHead& p, const QueryBlock& block) const {
    const std::int64_t depth = block.seen;
    if (p.depth == depth) return;
    p.depth = depth;
    const std::int64_t b = block.batch, h = block.head;
    if (p.values) product_.pack(v_.at(b, h), depth, v_.width, v_.stride(), false, p.values);
    if (p.keys_back) product_.pack(k_.at(b, h), depth, q_.width, k_.stride(), false, p.keys_back);
  }

  // softmax(mask(scale · q kᵀ)) of some queries.
  void weigh(const PackedHead& p, const QueryBlock& block) const {
    if (block.rows() * keys() == 0) return;
    const std::byte* q = q_.row(q_.at(block.batch, block.head), block.begin);
    product_.matmul(q, block.rows(), q_.width, q_.stride(), p.keys, block.seen, p.weights, keys(),
                    nullptr);
    each_row(block, [&](std::int64_t r, std::int64_t n) {
      std::byte* row = p.weights + r * row_bytes();
      mul_(row, number(0), row, n, 1, 0);
    });
    mask(p, p.weights, block, number(1));
    const SoftmaxKernels& softmax = kernels().softmax(dtype_);
    if (block.seen == keys()) {
      softmax.softmax(p.weights, p.weights, block.rows(), keys());
    } else {
      softmax.softmax_of_seen(p.weights, p.weights, block.rows(), keys(), block.seen, number(1));
    }
    if (zero_blind_) mask(p, p.weights, block, number(2));
  }

  void forward(PackedHead& p, const QueryBlock& block, const Heads& y) const {
    weigh(p, block);
    draw(p, block);
    drop(p, block, p.weights, p.weights);
    pack_seen(p, block);
    product_.matmul(p.weights, block.rows(), block.seen, keys(), p.values, v_.width,
                    y.row(y.at(block.batch, block.head), block.begin), y.stride(), nullptr);
  }

  // Results of the backward pass: those of queries are written, those of keys and values go on.
  struct OperandGradients {
    Heads ct, q, k, v;
  };

  // The backward pass of a block has four phases: weights by rows, gradients of values by keys,
  // gradients of scores and queries by rows, gradients of keys by keys. A phase reads what the
  // phases before it have made of all rows.
  void weigh_and_drop(const PackedHead& p, const QueryBlock& block) const {
    weigh(p, block);
    draw(p, block);
    drop(p, block, p.weights, p.products);
  }

  void gradients_of_queries(const PackedHead& p, const QueryBlock& block,
                            const OperandGradients& to) const {
    const std::int64_t rows = block.rows(), some = block.seen;
    product_.matmul(cotangents(block, to), rows, v_.width, to.ct.stride(), p.values_back, some,
                    p.grads, keys(), nullptr);
    drop_back(p, block);
    of_scores(p, block);
    product_.matmul(p.grads, rows, some, keys(), p.keys_back, q_.width,
                    to.q.row(to.q.at(block.batch, block.head), block.begin), q_.stride(), nullptr);
  }

  // Gradients of a range of keys and their values, which go on from earlier blocks if accumulated.
  void gradients_of_values(const PackedHead& p, const QueryBlock& block, const OperandGradients& to,
                           TreeRange keys_of, std::byte* values_to, bool accumulate,
                           Scratch& scratch) const {
    const Scratch::Frame frame(scratch);
    const std::byte* used = dropout_.any() ? p.products : p.weights;
    product_.matmul_transposed(
        used + keys_of.begin * q_.item, keys(), cotangents(block, to), to.ct.stride(), block.rows(),
        keys_of.size(), v_.width, v_.row(values_to, keys_of.begin), v_.stride(), accumulate,
        take_workspace(product_, scratch, block.rows(), keys_of.size(), v_.width));
  }
  void gradients_of_keys(const PackedHead& p, const QueryBlock& block, TreeRange keys_of,
                         std::byte* keys_to, bool accumulate, Scratch& scratch) const {
    const Scratch::Frame frame(scratch);
    const std::byte* q = q_.row(q_.at(block.batch, block.head), block.begin);
    product_.matmul_transposed(
        p.grads + keys_of.begin * q_.item, keys(), q, q_.stride(), block.rows(), keys_of.size(),
        q_.width, k_.row(keys_to, keys_of.begin), k_.stride(), accumulate,
        take_workspace(product_, scratch, block.rows(), keys_of.size(), q_.width));
  }
  void clear_unseen(const QueryBlock& block, std::byte* keys_to, std::byte* values_to) const {
    clear(k_, keys_to, block.seen);
    clear(v_, values_to, block.seen);
  }

  const Heads& queries() const { return q_; }
  const Heads& key_heads() const { return k_; }
  const Heads& value_heads() const { return v_; }
  DType dtype() const { return dtype_; }

 private:
  static const std::byte* cotangents(const QueryBlock& block, const OperandGradients& to) {
    return to.ct.row(to.ct.at(block.batch, block.head), block.begin);
  }
  // Buffers of what is computed for some rows at a time.
  void take_for_rows(PackedHead& p, Scratch& scratch) const {
    p.joined = static_cast<std::byte*>(scratch.take(masks_.joined_bytes(keys())));
    if (!dropout_.any()) return;
    const std::int64_t drawn = rows_drawn() * keys() * std::int64_t(dropout_.item());
    p.drawn = static_cast<std::byte*>(scratch.take(std::size_t(drawn)));
  }
  const std::byte* number(std::size_t i) const { return numbers_ + i * std::size_t(q_.item); }
  std::int64_t row_bytes() const { return keys() * q_.item; }

  // f(row, n) for the n keys that each row sees; for all rows as one where that is all of them.
  template <class F>
  void each_row(const QueryBlock& block, const F& f) const {
    const std::int64_t n = block.seen;
    if (n == keys()) return f(0, block.rows() * n);
    for (std::int64_t r = 0; r < block.rows(); ++r) f(r, n);
  }

  // Zeros in what no row sees.
  void clear_unseen(std::byte* x, const QueryBlock& block) const {
    if (block.seen == keys()) return;
    const std::int64_t seen = block.seen * q_.item;
    for (std::int64_t r = 0; r < block.rows(); ++r) {
      std::memset(x + r * row_bytes() + seen, 0, std::size_t(row_bytes() - seen));
    }
  }

  // Zeros in the rows of a head from `first` on.
  static void clear(const Heads& x, std::byte* head, std::int64_t first) {
    for (std::int64_t r = first; r < x.length; ++r) {
      std::memset(x.row(head, r), 0, std::size_t(x.width * x.item));
    }
  }

  // From the gradients of weights those of scores.
  void of_scores(const PackedHead& p, const QueryBlock& block) const {
    const auto at = [&](std::byte* x, std::int64_t r) { return x + r * row_bytes(); };
    each_row(block, [&](std::int64_t r, std::int64_t n) {
      mul_(at(p.grads, r), at(p.weights, r), at(p.products, r), n, 1, 1);
    });
    clear_unseen(p.products, block);
    kernels().row_reduce(ReduceFn::kSum, dtype_)(p.products, p.sums, block.rows(), keys());
    const BinaryKernel sub = kernels().binary(BinaryFn::k_sub, dtype_);
    for (std::int64_t r = 0; r < block.rows(); ++r) {
      sub(at(p.grads, r), p.sums + r * q_.item, at(p.grads, r), block.seen, 1, 0);
    }
    each_row(block, [&](std::int64_t r, std::int64_t n) {
      mul_(at(p.weights, r), at(p.grads, r), at(p.grads, r), n, 1, 1);
    });
    mask(p, p.grads, block, number(2));
    each_row(block, [&](std::int64_t r, std::int64_t n) {
      mul_(at(p.grads, r), number(0), at(p.grads, r), n, 1, 0);
    });
  }

  // Replaces x by the number at all pairs that the masks exclude.
  void mask(const PackedHead& p, std::byte* x, const QueryBlock& block,
            const std::byte* number) const {
    if (!masks_.any()) return;
    const SelectKernel select = kernels().select(dtype_);
    for (std::int64_t r = 0; r < block.rows(); ++r, x += row_bytes()) {
      const auto row = mask_row(p, block, r);
      select(row.data, x, number, x, block.seen, row.step, 1, 0);
    }
  }

  // True if one of the queries may attend to none of the block's keys.
  bool any_blind(const PackedHead& p, const QueryBlock& block) const {
    for (std::int64_t r = 0; r < block.rows(); ++r) {
      if (mask_row(p, block, r).none(block.seen)) return true;
    }
    return false;
  }
  Masks::Row mask_row(const PackedHead& p, const QueryBlock& block, std::int64_t r) const {
    return masks_.row(block.batch, block.head, block.begin + r, block.seen, p.joined);
  }

  void draw(const PackedHead& p, const QueryBlock& block) const {
    if (!dropout_.any()) return;
    const std::int64_t together = block.seen == keys() ? rows_drawn() : 1;
    for (std::int64_t r = 0; r < block.rows(); r += together) {
      const std::int64_t row = block.head * q_.length + block.begin + r;
      const std::int64_t rows = std::min(together, block.rows() - r);
      const std::int64_t n = (rows - 1) * keys() + block.seen;
      dropout_.draw(block.batch, row * keys(), n, p.drawn, p.kept + r * keys());
    }
  }

  // Scaled weights, 0 where they are dropped; `to`, unless there is no dropout.
  const std::byte* drop(const PackedHead& p, const QueryBlock& block, const std::byte* weights,
                        std::byte* to) const {
    if (!dropout_.any()) return weights;
    const SelectKernel select = kernels().select(dtype_);
    each_row(block, [&](std::int64_t r, std::int64_t n) {
      std::byte* y = to + r * row_bytes();
      mul_(weights + r * row_bytes(), number(3), y, n, 1, 0);
      select(p.kept + r * keys(), y, number(2), y, n, 1, 1, 0);
    });
    return to;
  }

  void drop_back(const PackedHead& p, const QueryBlock& block) const {
    if (!dropout_.any()) return;
    const SelectKernel select = kernels().select(dtype_);
    each_row(block, [&](std::int64_t r, std::int64_t n) {
      std::byte* y = p.grads + r * row_bytes();
      select(p.kept + r * keys(), y, number(2), y, n, 1, 1, 0);
      mul_(y, number(3), y, n, 1, 0);
    });
  }

  const Heads q_, k_, v_;
  const Masks masks_;
  const Dropout dropout_;
  bool causal_, zero_blind_;  // zero_blind_: a query that may look at no key has weights of 0
  DType dtype_;
  const ProductKernels& product_;
  BinaryKernel mul_;
  const ParallelFor* parallel_;
  std::byte numbers_[4 * kMaxElementBytes];  // scale, masked score, zero, scale of what is kept
};

}  // namespace samegrad
