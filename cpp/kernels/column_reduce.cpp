#include "kernels/lanes.h"
#include "kernels/variant.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

// kVecs registers of neighbouring columns of rows that are n elements apart, kept while the rows go
// by; `count` elements of the last.
template <class T, class Op, int kVecs>
struct Columns {
  using V = Vec<T>;
  V sum[kVecs];

  static SAMEGRAD_INLINE V load(const T* from, int k, std::int64_t count) {
    return k + 1 < kVecs ? V::load(from + k * V::kLanes)
                         : load_n(from + k * V::kLanes, count, Op::template neutral<T>);
  }
  SAMEGRAD_INLINE void fold(const Columns& other) {
    for (int k = 0; k < kVecs; ++k) sum[k] = Op::fold(sum[k], other.sum[k]);
  }

  static SAMEGRAD_INLINE Columns of_block(const T* x, std::int64_t rows, std::int64_t n,
                                          std::int64_t count) {
    Columns c;
    for (int k = 0; k < kVecs; ++k) c.sum[k] = load(x, k, count);
    const T* const end = x + rows * n;
    for (const T* row = x + n; row != end; row += n) {
      for (int k = 0; k < kVecs; ++k) c.sum[k] = Op::fold(c.sum[k], load(row, k, count));
    }
    return c;
  }
  // The rows come one after the other behind those that y holds.
  static SAMEGRAD_INLINE void go_on(const T* x, T* y, std::int64_t rows, std::int64_t n,
                                    std::int64_t count) {
    Columns c;
    for (int k = 0; k < kVecs; ++k) c.sum[k] = load(y, k, count);
    const T* const end = x + rows * n;
    for (const T* row = x; row != end; row += n) {
      for (int k = 0; k < kVecs; ++k) c.sum[k] = Op::fold(c.sum[k], load(row, k, count));
    }
    c.store(y, count);
  }
  SAMEGRAD_INLINE void store(T* y, std::int64_t count) const {
    for (int k = 0; k + 1 < kVecs; ++k) sum[k].store(y + k * V::kLanes);
    store_n(sum[kVecs - 1], y + (kVecs - 1) * V::kLanes, count);
  }
  // Two blocks, the second being the shorter one, side by side: an addition waits for none of the
  // other's.
  static SAMEGRAD_INLINE Columns of_two_blocks(const T* x, std::int64_t rows, std::int64_t n,
                                               std::int64_t count) {
    const T* const y = x + kColumnBlock * n;
    Columns a, b;
    for (int k = 0; k < kVecs; ++k) a.sum[k] = load(x, k, count), b.sum[k] = load(y, k, count);
    std::int64_t row = 1;
    for (; row < rows - kColumnBlock; ++row) {
      for (int k = 0; k < kVecs; ++k) {
        a.sum[k] = Op::fold(a.sum[k], load(x + row * n, k, count));
        b.sum[k] = Op::fold(b.sum[k], load(y + row * n, k, count));
      }
    }
    for (; row < kColumnBlock; ++row) {
      for (int k = 0; k < kVecs; ++k) a.sum[k] = Op::fold(a.sum[k], load(x + row * n, k, count));
    }
    a.fold(b);
    return a;
  }
  // The blocks of rows, two at once where the registers suffice.
  static Columns of_rows(const T* x, std::int64_t rows, std::int64_t n, std::int64_t count) {
    constexpr bool kTwo = kVecs <= 4;
    constexpr Halving<kColumnBlock> kTree{(kTwo ? 2 : 1) * kColumnBlock};
    return reduce_tree(
        kTree, TreeRange{0, rows},
        [=](TreeRange of) {
          const T* const first = x + of.begin * n;
          if constexpr (kTwo) {
            if (of.size() > kColumnBlock) return of_two_blocks(first, of.size(), n, count);
          }
          return of_block(first, of.size(), n, count);
        },
        [](Columns left, const Columns& right) {
          left.fold(right);
          return left;
        });
  }
};

template <class T, class Op, int kVecs>
SAMEGRAD_INLINE void reduce_columns(const T* x, T* y, std::int64_t rows, std::int64_t n,
                                    std::int64_t count, bool accumulate) {
  using C = Columns<T, Op, kVecs>;
  C c = rows <= kColumnBlock ? C::of_block(x, rows, n, count) : C::of_rows(x, rows, n, count);
  if (accumulate) {
    for (int k = 0; k < kVecs; ++k) c.sum[k] = Op::fold(C::load(y, k, count), c.sum[k]);
  }
  c.store(y, count);
}

// f.operator()<registers>(first column, elements of the last register), for n columns.
template <class T, class F>
SAMEGRAD_INLINE void for_each_columns(std::int64_t n, F f) {
  constexpr std::int64_t kLanes = Vec<T>::kLanes;
  std::int64_t c = 0;
  for (; c + 8 * kLanes <= n; c += 8 * kLanes) f.template operator()<8>(c, kLanes);
  for (; c + 4 * kLanes <= n; c += 4 * kLanes) f.template operator()<4>(c, kLanes);
  for (; c + kLanes <= n; c += kLanes) f.template operator()<1>(c, kLanes);
  if (c < n) f.template operator()<1>(c, n - c);
}

template <class T, class Op>
void reduce_all_columns(const T* x, T* y, std::int64_t rows, std::int64_t n, std::int64_t stride,
                        bool accumulate) {
  for_each_columns<T>(n, [&]<int kVecs>(std::int64_t c, std::int64_t count) {
    reduce_columns<T, Op, kVecs>(x + c, y + c, rows, stride, count, accumulate);
  });
}

template <class T, class Op>
void reduce_one_by_one(const T* x, T* y, std::int64_t rows, std::int64_t n, std::int64_t stride,
                       bool accumulate) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* row = x + r * stride;
    for (std::int64_t c = 0; c < n; ++c) {
      y[c] = r == 0 && !accumulate ? row[c] : Op::fold(y[c], row[c]);
    }
  }
}

template <class T, class Op>
void column_reduce(const void* x, void* y, std::int64_t rows, std::int64_t n, std::int64_t stride,
                   bool accumulate) {
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  if (rows == 0) {
    for (std::int64_t c = 0; !accumulate && c < n; ++c) to[c] = Op::template neutral<T>;
  } else if constexpr (kInRegisters<T>) {
    reduce_all_columns<T, Op>(from, to, rows, n, stride, accumulate);
  } else {
    reduce_one_by_one<T, Op>(from, to, rows, n, stride, accumulate);
  }
}

template <class T, class Op>
void column_fold(const void* x, void* y, std::int64_t rows, std::int64_t n) {
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  if constexpr (kInRegisters<T>) {
    for_each_columns<T>(n, [&]<int kVecs>(std::int64_t c, std::int64_t count) {
      Columns<T, Op, kVecs>::go_on(from + c, to + c, rows, n, count);
    });
  } else {
    reduce_one_by_one<T, Op>(from, to, rows, n, n, true);
  }
}

template <class Kernel, class F>
Kernel kernel_of(ReduceFn fn, DType dtype, const F& kernel) {
  return kernel_for(dtype, [&]<class T>() {
    if constexpr (std::is_same_v<T, bool>) {
      return with_bool_op<Kernel>(fn, kernel);
    } else {
      return with_number_op<Kernel, T>(fn, kernel);
    }
  });
}

}  // namespace

ColumnReduceKernel column_reduce_kernel(ReduceFn fn, DType dtype) {
  return kernel_of<ColumnReduceKernel>(
      fn, dtype, []<class T, class Op>() -> ColumnReduceKernel { return column_reduce<T, Op>; });
}

ColumnFoldKernel column_fold_kernel(ReduceFn fn, DType dtype) {
  return kernel_of<ColumnFoldKernel>(
      fn, dtype, []<class T, class Op>() -> ColumnFoldKernel { return column_fold<T, Op>; });
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
