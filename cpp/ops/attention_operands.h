// Operands of the attention kernels: heads, masks and dropout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "ops/attention.h"
#include "ops/random_attributes.h"

namespace samegrad {

// An operand (batch, length, heads, width); rows of a head are `stride` elements apart.
struct Heads {
  explicit Heads(const View& x)
      : data(x.as<std::byte>()),
        item(std::int64_t(size_of(x.dtype))),
        batch(x.shape[0]),
        length(x.shape[1]),
        heads(x.shape[2]),
        width(x.shape[3]) {}
  std::int64_t stride() const { return heads * width; }
  std::byte* at(std::int64_t b, std::int64_t h) const {
    return data + (b * length * heads + h) * width * item;
  }
  std::byte* row(std::byte* head, std::int64_t r) const { return head + r * stride() * item; }

  std::byte* data;
  std::int64_t item, batch, length, heads, width;
};

// The masks of a call, all of which must let a query look at a key.
class Masks {
 public:
  explicit Masks(std::span<const View> masks) : masks_(masks) {}
  bool any() const { return !masks_.empty(); }
  std::size_t joined_bytes(std::int64_t keys) const { return masks_.size() > 1 ? keys : 0; }

  // The mask of a query over the keys [0, n): one number each, or one for all.
  struct Row {
    const std::byte* data;
    int step;
    bool none(std::int64_t n) const {
      return std::memchr(data, 1, std::size_t(step ? n : 1)) == nullptr;
    }
  };
  Row row(std::int64_t batch, std::int64_t head, std::int64_t query, std::int64_t n,
          std::byte* joined) const {
    if (masks_.size() == 1) return row_of(masks_[0], batch, head, query);
    std::memset(joined, 1, std::size_t(n));
    for (const View& mask : masks_) {
      const Row row = row_of(mask, batch, head, query);
      if (row.step == 0 && *row.data == std::byte{0}) std::memset(joined, 0, std::size_t(n));
      for (std::int64_t i = 0; row.step && i < n; ++i) joined[i] &= row.data[i];
    }
    return {joined, 1};
  }

 private:
  static Row row_of(const View& mask, std::int64_t batch, std::int64_t head, std::int64_t query) {
    const Shape& shape = mask.shape;
    const auto place = [&](int axis, std::int64_t i) { return shape[axis] == 1 ? 0 : i; };
    const std::int64_t row =
        (place(0, batch) * shape[1] + place(1, head)) * shape[2] + place(2, query);
    return {mask.as<std::byte>() + row * shape[3], shape[3] == 1 ? 0 : 1};
  }

  std::span<const View> masks_;
};

// The dropout mask, drawn like a single array of (batch, heads, queries, keys).
class Dropout {
 public:
  Dropout(const KernelArgs& args, const View& query)
      : attrs_(args.attrs.as<AttentionAttrs>()), dtype_(attrs_.draw) {
    if (!any()) return;
    key_ = draw_key(args.in.back());
    const std::int64_t share = args.replica_context.first_example[std::size_t(args.symbol)];
    first_row_ = (share + args.first_example) * query.rows_per_example;
    uniform_ = kernels().random(dtype_).uniform_part;
    at_least_ = kernels().binary(BinaryFn::k_greater_equal, dtype_);
    visit<kFloats>("dot_product_attention", dtype_, [&]<class T>() {
      const T rate = attrs_.rate.as<T>();
      std::memcpy(rate_, &rate, sizeof rate);
    });
  }
  bool any() const { return attrs_.rate.as<double>() > 0; }
  std::int64_t item() const { return std::int64_t(size_of(dtype_)); }
  double kept_scale() const { return 1 / (1 - attrs_.rate.as<double>()); }

  // Draws n elements of an example, from `first` on; `drawn` has memory for them.
  void draw(std::int64_t batch, std::int64_t first, std::int64_t n, std::byte* drawn,
            std::byte* kept) const {
    uniform_(key_, first_row_ + batch, first, n, drawn);
    at_least_(drawn, rate_, kept, n, 1, 0);
  }

 private:
  const AttentionAttrs& attrs_;
  DType dtype_;
  RandomKey key_{};
  std::int64_t first_row_ = 0;
  decltype(RandomKernels::uniform_part) uniform_ = nullptr;
  BinaryKernel at_least_ = nullptr;
  std::byte rate_[kMaxElementBytes];
};

}  // namespace samegrad
