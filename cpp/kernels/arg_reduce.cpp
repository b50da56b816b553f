#include "kernels/with_type.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

struct Largest {
  template <class T>
  static bool beats(T x, T best) {
    return x > best;
  }
};
struct Smallest {
  template <class T>
  static bool beats(T x, T best) {
    return x < best;
  }
};

template <class T, class Order>
void arg_reduce(const void* x, std::int64_t* y, std::int64_t rows, std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* row = static_cast<const T*>(x) + r * n;
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < n; ++i) {
      const bool first_nan = row[i] != row[i] && row[best] == row[best];
      if (Order::beats(row[i], row[best]) || first_nan) best = i;
    }
    y[r] = best;
  }
}

template <class Order>
ArgReduceKernel kernel_of(DType dtype) {
  return with_type(dtype, []<class T>() -> ArgReduceKernel { return arg_reduce<T, Order>; });
}

}  // namespace

ArgReduceKernel arg_max_kernel(DType dtype) { return kernel_of<Largest>(dtype); }
ArgReduceKernel arg_min_kernel(DType dtype) { return kernel_of<Smallest>(dtype); }

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
