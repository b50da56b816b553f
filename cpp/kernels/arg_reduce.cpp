#include "kernels/lanes.h"
#include "kernels/variant.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

// The best value first, by whole registers; then where it is. It is NaN if there is any NaN.
template <class T, class Op>
std::int64_t first_best(const T* x, std::int64_t n) {
  T best = x[0];
  if constexpr (!kInRegisters<T>) {
    for (std::int64_t i = 1; i < n; ++i) best = Op::fold(best, x[i]);
  } else {
    best = reduce_row<T, Op>(x, n);
  }
  const bool nan = best != best;
  std::int64_t i = 0;
  while (i + 1 < n && !(nan ? x[i] != x[i] : x[i] == best)) ++i;
  return i;
}

template <class T, class Op>
void arg_reduce(const void* x, std::int64_t* y, std::int64_t rows, std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r) {
    y[r] = n > 0 ? first_best<T, Op>(static_cast<const T*>(x) + r * n, n) : 0;
  }
}

template <class Op>
ArgReduceKernel kernel_of(DType dtype) {
  return kernel_for(dtype, []<class T>() -> ArgReduceKernel {
    using Element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
    return arg_reduce<Element, Op>;
  });
}

}  // namespace

ArgReduceKernel arg_max_kernel(DType dtype) {
  return kernel_of<MaxOp>(dtype);
}
ArgReduceKernel arg_min_kernel(DType dtype) {
  return kernel_of<MinOp>(dtype);
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
