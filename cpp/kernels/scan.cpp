#include <algorithm>

#include "base/reduction_order.h"
#include "kernels/variant.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

// Layout of the scratch: the sums of the running block, those before it, and these by levels.
constexpr int kBlockRow = 0, kBeforeRow = 1, kLevelRow = 2;
constexpr int kLevels = kScanRows - kLevelRow;

struct ScanSum {
  template <class T>
  static constexpr T neutral = T(0);
  static constexpr std::int64_t kBlock = kScanBlock;
  template <class T>
  static T fold(T a, T b) {
    return T(a + b);
  }
};

struct ScanProd {
  template <class T>
  static constexpr T neutral = T(1);
  static constexpr std::int64_t kBlock = INT64_MAX;
  template <class T>
  static T fold(T a, T b) {
    return T(a * b);
  }
};

// Sums before the running block: of whole blocks, of whole blocks of blocks, … A level is one chain
// of at most kBlock of them.
template <class T, class Op>
class Before {
 public:
  Before(T* scratch, std::int64_t width) : scratch_(scratch), width_(width) {}

  const T* sums() const { return any_ ? row(kBeforeRow) : nullptr; }

  // The running block ends before element `end`, a multiple of kBlock.
  void add_block(std::int64_t end) {
    const T* part = row(kBlockRow);
    for (int level = 0; level < kLevels; ++level) {
      T* own = row(kLevelRow + level);
      fold(own, part, has_[level]);
      has_[level] = true;
      end /= Op::kBlock;
      if (end % Op::kBlock != 0 || level + 1 == kLevels) break;
      has_[level] = false;
      part = own;
    }
    any_ = false;
    for (int level = kLevels - 1; level >= 0; --level) {
      if (!has_[level]) continue;
      fold(row(kBeforeRow), row(kLevelRow + level), any_);
      any_ = true;
    }
  }

 private:
  T* row(int i) const { return scratch_ + i * width_; }
  void fold(T* to, const T* part, bool has) const {
    for (std::int64_t c = 0; c < width_; ++c) to[c] = has ? Op::fold(to[c], part[c]) : part[c];
  }

  T* scratch_;
  std::int64_t width_;
  bool has_[kLevels] = {};
  bool any_ = false;
};

// `count` elements of one line, `step` from each to the next.
template <class T, class Op>
void scan_numbers(const T* x, T* y, std::int64_t count, std::int64_t step, const T* before,
                  T& block) {
  T sum = *x;
  for (std::int64_t k = 0;;) {
    *y = before ? Op::fold(*before, sum) : sum;
    if (++k == count) break;
    x += step;
    y += step;
    sum = Op::fold(sum, *x);
  }
  block = sum;
}

// `count` elements of each of `width` lines, `step` from each to the next.
template <class T, class Op>
void scan_rows(const T* x, T* y, std::int64_t count, std::int64_t step, std::int64_t width,
               const T* before, T* block) {
  std::copy_n(x, width, block);
  for (std::int64_t k = 0;;) {
    for (std::int64_t c = 0; c < width; ++c)
      y[c] = before ? Op::fold(before[c], block[c]) : block[c];
    if (++k == count) break;
    x += step;
    y += step;
    for (std::int64_t c = 0; c < width; ++c) block[c] = Op::fold(block[c], x[c]);
  }
}

template <class T, class Op>
void scan_line(const ScanLines& lines, const T* x, T* y, T* scratch) {
  const std::int64_t width = lines.width, step = lines.reverse ? -lines.stride : lines.stride;
  const std::int64_t first = lines.reverse ? (lines.n - 1) * lines.stride : 0;
  const T* from = x + first;
  T* to = y + first;
  std::int64_t n = lines.n;
  if (lines.exclusive) {
    std::fill_n(to, width, Op::template neutral<T>);
    to += step;
    --n;
  }
  Before<T, Op> before(scratch, width);
  for (std::int64_t k = 0; k < n;) {
    const std::int64_t count = std::min(Op::kBlock, n - k);
    if (width == 1) {
      scan_numbers<T, Op>(from + k * step, to + k * step, count, step, before.sums(), *scratch);
    } else {
      scan_rows<T, Op>(from + k * step, to + k * step, count, step, width, before.sums(), scratch);
    }
    k += count;
    if (k < n) before.add_block(k);
  }
}

template <class T, class Op>
void scan(const ScanLines& lines, const void* x, void* y, void* scratch) {
  if (lines.n * lines.width == 0) return;
  const std::int64_t size = lines.n * lines.stride;
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    scan_line<T, Op>(lines, static_cast<const T*>(x) + o * size, static_cast<T*>(y) + o * size,
                     static_cast<T*>(scratch));
  }
}

template <class Op>
ScanKernel kernel_of(DType dtype) {
  return kernel_for<kNumbers & kComputed>(dtype,
                                          []<class T>() -> ScanKernel { return scan<T, Op>; });
}

template <class T>
void affine_scan(const ScanLines& lines, const void* a_data, const void* b_data, void* y_data) {
  const std::int64_t n = lines.n, width = lines.width, stride = lines.stride;
  if (n * width == 0) return;
  const std::int64_t step = lines.reverse ? -stride : stride;
  const std::int64_t first = lines.reverse ? (n - 1) * stride : 0;
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    const T* a = static_cast<const T*>(a_data) + o * n * stride + first;
    const T* b = static_cast<const T*>(b_data) + o * n * stride + first;
    T* y = static_cast<T*>(y_data) + o * n * stride + first;
    std::fill_n(y, width, T(0));
    for (std::int64_t k = 1; k < n; ++k, a += step, b += step, y += step) {
      for (std::int64_t c = 0; c < width; ++c) {
        y[c + step] = T(b[c] + (a[c] == T(0) ? T(0) : T(a[c] * y[c])));
      }
    }
  }
}

}  // namespace

ScanKernel scan_kernel(ScanFn fn, DType dtype) {
  return fn == ScanFn::kSum ? kernel_of<ScanSum>(dtype) : kernel_of<ScanProd>(dtype);
}

AffineScanKernel affine_scan_kernel(DType dtype) {
  return kernel_for<kNumbers & kComputed>(
      dtype, []<class T>() -> AffineScanKernel { return affine_scan<T>; });
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
