#include "kernels/lanes.h"
#include "kernels/with_type.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

// kVecs registers of neighbouring columns, kept while the rows go by; `count` elements of the last.
template <class T, class Op, int kVecs>
SAMEGRAD_INLINE void reduce_columns(const T* x, T* y, std::int64_t rows, std::int64_t n,
                                    std::int64_t count, bool accumulate) {
  using V = Vec<T>;
  constexpr T kNeutral = Op::template neutral<T>;
  const auto load = [&](const T* from, int k) {
    return k + 1 < kVecs ? V::load(from + k * V::kLanes)
                         : load_some(from + k * V::kLanes, count, kNeutral);
  };
  V sum[kVecs];
  const T* start = accumulate ? y : x;
  for (int k = 0; k < kVecs; ++k) sum[k] = load(start, k);
  const T* const end = x + rows * n;
  for (const T* row = accumulate ? x : x + n; row != end; row += n) {
    for (int k = 0; k < kVecs; ++k) sum[k] = Op::fold(sum[k], load(row, k));
  }
  for (int k = 0; k + 1 < kVecs; ++k) sum[k].store(y + k * V::kLanes);
  store_some(sum[kVecs - 1], y + (kVecs - 1) * V::kLanes, count);
}

template <class T, class Op>
void reduce_all_columns(const T* x, T* y, std::int64_t rows, std::int64_t n, bool accumulate) {
  constexpr std::int64_t kLanes = Vec<T>::kLanes;
  std::int64_t c = 0;
  for (; c + 8 * kLanes <= n; c += 8 * kLanes) {
    reduce_columns<T, Op, 8>(x + c, y + c, rows, n, kLanes, accumulate);
  }
  for (; c + 4 * kLanes <= n; c += 4 * kLanes) {
    reduce_columns<T, Op, 4>(x + c, y + c, rows, n, kLanes, accumulate);
  }
  for (; c + kLanes <= n; c += kLanes) {
    reduce_columns<T, Op, 1>(x + c, y + c, rows, n, kLanes, accumulate);
  }
  if (c < n) reduce_columns<T, Op, 1>(x + c, y + c, rows, n, n - c, accumulate);
}

template <class Op>
void reduce_byte_columns(const std::uint8_t* x, std::uint8_t* y, std::int64_t rows, std::int64_t n,
                         bool accumulate) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::uint8_t* row = x + r * n;
    for (std::int64_t c = 0; c < n; ++c) {
      y[c] = r == 0 && !accumulate ? row[c] : Op::fold(y[c], row[c]);
    }
  }
}

template <class T, class Op>
void column_reduce(const void* x, void* y, std::int64_t rows, std::int64_t n, bool accumulate) {
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  if (rows == 0) {
    for (std::int64_t c = 0; !accumulate && c < n; ++c) to[c] = Op::template neutral<T>;
  } else if constexpr (sizeof(T) == 1) {
    reduce_byte_columns<Op>(from, to, rows, n, accumulate);
  } else {
    reduce_all_columns<T, Op>(from, to, rows, n, accumulate);
  }
}

}  // namespace

ColumnReduceKernel column_reduce_kernel(ReduceFn fn, DType dtype) {
  const auto kernel = []<class T, class Op>() -> ColumnReduceKernel {
    return column_reduce<T, Op>;
  };
  return with_type(dtype, [&]<class T>() {
    if constexpr (std::is_same_v<T, bool>) {
      return with_bool_op<ColumnReduceKernel>(fn, kernel);
    } else {
      return with_number_op<ColumnReduceKernel, T>(fn, kernel);
    }
  });
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
