#include "kernels/lanes.h"
#include "kernels/variant.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

template <class T, class Op>
T reduce_one_by_one(const T* x, std::int64_t n) {
  T result = Op::template neutral<T>;
  for (std::int64_t i = 0; i < n; ++i) result = Op::fold(result, x[i]);
  return result;
}

template <class T, class Op>
void row_reduce(const void* x, void* y, std::int64_t rows, std::int64_t n) {
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  for (std::int64_t r = 0; r < rows; ++r) {
    if constexpr (kInRegisters<T>) {
      to[r] = reduce_row<T, Op>(from + r * n, n);
    } else {
      to[r] = reduce_one_by_one<T, Op>(from + r * n, n);
    }
  }
}

}  // namespace

RowReduceKernel row_reduce_kernel(ReduceFn fn, DType dtype) {
  const auto kernel = []<class T, class Op>() -> RowReduceKernel { return row_reduce<T, Op>; };
  return kernel_for(dtype, [&]<class T>() {
    if constexpr (std::is_same_v<T, bool>) {
      return with_bool_op<RowReduceKernel>(fn, kernel);
    } else {
      return with_number_op<RowReduceKernel, T>(fn, kernel);
    }
  });
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
