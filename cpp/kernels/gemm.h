// The one routine behind every product: rows of A, given by pointers, times panels of B.
//
// Matrix products, convolutions and both of their gradients differ only in where a row starts and
// how the contraction walks through A and B, so they all describe themselves as a Product.
#pragma once

#include <cstdint>

#include "base/prefetch.h"
#include "kernels/simd.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

template <class T>
inline constexpr int kPanelColumns = 2 * Vec<T>::kLanes;

// Loops of the contraction: `outer` times `inner` segments of `length` products each. Steps of A
// are in elements, steps of B in rows; outer and inner steps count from the start of their segment.
struct AccessPattern {
  std::int64_t outer = 1;
  std::int64_t inner = 1;
  std::int64_t length = 0;
  std::int64_t a_outer = 0, b_outer = 0;
  std::int64_t a_inner = 0, b_inner = 0;
  std::int64_t a_step = 1;
};

// Calls f(offset in A, row of B) for the products of the walk, in order; `b` is the row where it
// starts.
template <class T, class F>
SAMEGRAD_INLINE void for_each_product(const AccessPattern& w, const T* b, std::int64_t b_step,
                                      const F& f) {
  for (std::int64_t o = 0; o < w.outer; ++o) {
    for (std::int64_t i = 0; i < w.inner; ++i) {
      std::int64_t at = o * w.a_outer + i * w.a_inner;
      const T* row = b + (o * w.b_outer + i * w.b_inner) * b_step;
      for (std::int64_t n = w.length; n > 0; --n, at += w.a_step, row += b_step) f(at, row);
    }
  }
}

// Rows of one product: whole tiles in every variant.
inline constexpr int kMaxRows = 96;

// B as panels of kPanelColumns columns; the last one is narrower when one vector holds its columns.
template <class T>
struct Panels {
  const T* data = nullptr;
  std::int64_t columns = 0;
  std::int64_t panel_step = 0;       // from panel to panel
  std::int64_t row_step = 0;         // from row to row
  std::int64_t narrow_row_step = 0;  // from row to row of a narrow last panel
};

template <class T>
struct Gemm {
  const T* const* a = nullptr;  // where the walk starts, per row
  T* const* y = nullptr;        // where the result goes, per row
  std::int64_t rows = 0;        // at most kMaxRows
  AccessPattern walk;
  Panels<T> b;
  std::int64_t b_first_row = 0;
  bool accumulate = false;  // the chains go on from y instead of +0
  // Element by element instead of a product: column j of y is the sum of column j of A by column j
  // of B, a row of either being all columns, one behind the other (`b` is one panel).
  bool by_channel = false;
  const T* bias = nullptr;
  Activation activation = Activation::kNone;
  PrefetchRows* prefetch = nullptr;  // fetched beside the tiles
  std::int64_t prefetch_lines = 0;   // so many with each
};

template <class T>
void multiply(const Gemm<T>& product);

extern template void multiply(const Gemm<float>&);
extern template void multiply(const Gemm<double>&);

// Collects rows that share a walk and multiplies them in groups whose B panel stays in cache.
template <class T>
class RowBatch {
 public:
  explicit RowBatch(Gemm<T>& product) : product_(product) {
    product_.a = a_;
    product_.y = y_;
  }
  void add(const T* a, T* y) {
    if (count_ == kCapacity) flush();
    a_[count_] = a;
    y_[count_] = y;
    ++count_;
  }
  // Must be called before the walk changes, and at the end.
  void flush() {
    product_.rows = count_;
    if (count_ > 0) multiply(product_);
    count_ = 0;
  }

 private:
  static constexpr int kCapacity = kMaxRows;
  Gemm<T>& product_;
  int count_ = 0;
  const T* a_[kCapacity];
  T* y_[kCapacity];
};

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
