#include <algorithm>

#include "base/rounding.h"
#include "kernels/lanes.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

template <class T>
inline constexpr T kMinusInfinity = -std::numeric_limits<T>::infinity();

// exp(x - largest), handed to f(start, count, register); returns the sum.
template <class T, class F>
SAMEGRAD_INLINE T exp_block(const T* x, T largest, std::int64_t first, std::int64_t n, F f) {
  RowLanes<T, SumOp> lanes;
  for_each_register<T>(n, [&](int k, std::int64_t start, std::int64_t count) {
    const std::int64_t at = first + start;
    const Vec<T> e = exp(load_n(x + at, count, kMinusInfinity<T>) - Vec<T>(largest));
    f(at, count, e);
    lanes.fold(k, e);
  });
  return lanes.join();
}
template <class T, class F>
SAMEGRAD_INLINE T exp_row(const T* x, T largest, std::int64_t n, F f) {
  if (n <= kRowBlock) return exp_block(x, largest, 0, n, f);
  return join_blocks<T, SumOp>(
      n, [&](TreeRange of) { return exp_block(x, largest, of.begin, of.size(), f); });
}

// One element, by the same code as a whole register.
template <class T>
SAMEGRAD_INLINE T log_of(T x) {
  return log(Vec<T>(x)).raw[0];
}

// A short row waits for its sum in whole registers, which come back from memory at once; a long one
// in y itself.
template <class T>
SAMEGRAD_INLINE T softmax_row(const T* x, T largest, T* y, std::int64_t n) {
  constexpr std::int64_t kShort = 8 * kRowLanes<T>;
  T waiting[kShort];
  T sum;
  if (n <= kShort) {
    sum = exp_row(x, largest, n,
                  [&](std::int64_t start, std::int64_t, Vec<T> e) { e.store(waiting + start); });
    for_each_register<T>(n, [&](int, std::int64_t start, std::int64_t count) {
      store_n(Vec<T>::load(waiting + start) / Vec<T>(sum), y + start, count);
    });
  } else {
    sum = exp_row(x, largest, n, [&](std::int64_t start, std::int64_t count, Vec<T> e) {
      store_n(e, y + start, count);
    });
    for_each_register<T>(n, [&](int, std::int64_t start, std::int64_t count) {
      store_n(load_n(y + start, count, T(0)) / Vec<T>(sum), y + start, count);
    });
  }
  return sum;
}

// Rows of at most so many rounds of lanes stay in registers, kRows of them side by side: each waits
// for its largest element and for its sum.
constexpr int kShortRounds = 4;

template <class T, int kRounds, int kRows>
SAMEGRAD_INLINE void softmax_rows(const T* x, T* y, std::int64_t n) {
  constexpr int kParts = RowLanes<T, SumOp>::kParts, kRegisters = kRounds * kParts;
  constexpr std::int64_t kLanes = Vec<T>::kLanes;
  static_assert(MaxOp::neutral<T> == kMinusInfinity<T>);
  Vec<T> e[kRows][kRegisters];
  RowLanes<T, MaxOp> most[kRows];
#pragma GCC unroll 16
  for (int k = 0; k < kRegisters; ++k) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const std::int64_t left = n - k * kLanes;  // nothing: it changes neither
      e[r][k] = left > 0 ? load_n(x + r * n + k * kLanes, left, kMinusInfinity<T>)
                         : Vec<T>(kMinusInfinity<T>);
      most[r].fold(k % kParts, e[r][k]);
    }
  }
  Vec<T> largest[kRows], sum[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) largest[r] = Vec<T>(most[r].join());
  RowLanes<T, SumOp> sums[kRows];
#pragma GCC unroll 16
  for (int k = 0; k < kRegisters; ++k) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      e[r][k] = exp(e[r][k] - largest[r]);
      sums[r].fold(k % kParts, e[r][k]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) sum[r] = Vec<T>(sums[r].join());
#pragma GCC unroll 16
  for (int k = 0; k < kRegisters; ++k) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const std::int64_t left = n - k * kLanes;
      if (left > 0) store_n(e[r][k] / sum[r], y + r * n + k * kLanes, left);
    }
  }
}

template <class T, int kRounds>
void softmax_short(const T* x, T* y, std::int64_t rows, std::int64_t n) {
  // v2 holds a row in many registers: they hide the latency of one row's reductions.
  constexpr int kTogether = kRounds * RowLanes<T, SumOp>::kParts > 8 ? 1 : 4;
  for (; rows >= kTogether; rows -= kTogether, x += kTogether * n, y += kTogether * n) {
    softmax_rows<T, kRounds, kTogether>(x, y, n);
  }
  for (; rows > 0; --rows, x += n, y += n) softmax_rows<T, kRounds, 1>(x, y, n);
}

template <class T>
void softmax(const void* x, void* y, std::int64_t rows, std::int64_t n) {
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  static_assert(kShortRounds == 4);
  switch (divide_up(n, kRowLanes<T>)) {
    case 1:
      return softmax_short<T, 1>(from, to, rows, n);
    case 2:
      return softmax_short<T, 2>(from, to, rows, n);
    case 3:
      return softmax_short<T, 3>(from, to, rows, n);
    case 4:
      return softmax_short<T, 4>(from, to, rows, n);
    default:
      break;
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* row = from + r * n;
    softmax_row(row, reduce_row<T, MaxOp>(row, n), to + r * n, n);
  }
}

// Weights of hidden elements are 0, unless all elements are about as small.
template <class T>
void softmax_of_seen(const void* x, void* y, std::int64_t rows, std::int64_t n, std::int64_t seen,
                     const void* hidden_score) {
  const T hidden = *static_cast<const T*>(hidden_score);
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* row = static_cast<const T*>(x) + r * n;
    T* to = static_cast<T*>(y) + r * n;
    const Vec<T> most(reduce_row<T, MaxOp>(row, seen));
    const T largest = MaxOp::fold(most, Vec<T>(hidden)).raw[0];
    const T weight = exp(Vec<T>(hidden) - Vec<T>(largest)).raw[0];
    if (weight != T(0)) {  // or NaN
      std::copy_n(row, seen, to);
      std::fill(to + seen, to + n, hidden);
      softmax_row(to, largest, to, n);
      continue;
    }
    const auto store = [&](std::int64_t start, std::int64_t count, Vec<T> e) {
      store_n(e, to + start, count);
    };
    const auto block = [&](TreeRange of) {
      const std::int64_t count = std::clamp<std::int64_t>(seen - of.begin, 0, of.size());
      return exp_block(row, largest, of.begin, count, store);
    };
    const T sum = n <= kRowBlock ? block(TreeRange{0, n}) : join_blocks<T, SumOp>(n, block);
    for_each_register<T>(seen, [&](int, std::int64_t start, std::int64_t count) {
      store_n(load_n(to + start, count, T(0)) / Vec<T>(sum), to + start, count);
    });
  }
}

template <class T>
void log_softmax(const void* x, void* y, std::int64_t rows, std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* row = static_cast<const T*>(x) + r * n;
    T* to = static_cast<T*>(y) + r * n;
    const T largest = reduce_row<T, MaxOp>(row, n);
    const auto nothing = [](std::int64_t, std::int64_t, Vec<T>) {};
    const T log_sum = log_of(exp_row(row, largest, n, nothing));
    for_each_register<T>(n, [&](int, std::int64_t start, std::int64_t count) {
      const Vec<T> shifted = load_n(row + start, count, T(0)) - Vec<T>(largest);
      store_n(shifted - Vec<T>(log_sum), to + start, count);
    });
  }
}

// A label that names no class gives NaN: the caller has checked them, and memory stays safe.
template <class T>
void sparse_cross_entropy(const void* x, const std::int64_t* labels, void* loss,
                          void* probabilities, std::int64_t rows, std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* row = static_cast<const T*>(x) + r * n;
    const T largest = reduce_row<T, MaxOp>(row, n);
    const bool valid = labels[r] >= 0 && labels[r] < n;
    const T score = valid ? row[labels[r]] : std::numeric_limits<T>::quiet_NaN();
    const T sum = softmax_row(row, largest, static_cast<T*>(probabilities) + r * n, n);
    static_cast<T*>(loss)[r] = log_of(sum) - (score - largest);
  }
}

template <class T>
constexpr SoftmaxKernels kKernels = {.softmax = softmax<T>,
                                     .softmax_of_seen = softmax_of_seen<T>,
                                     .log_softmax = log_softmax<T>,
                                     .sparse_cross_entropy = sparse_cross_entropy<T>};

}  // namespace

const SoftmaxKernels* softmax_kernel(DType dtype) {
  return kernel_for<samegrad::kFloats & kComputed>(dtype, []<class T>() { return &kKernels<T>; });
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
