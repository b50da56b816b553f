#include "kernels/variant.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

// T is an unsigned integer: selecting moves bits and never looks at them.
template <class T, int c_step, int a_step, int b_step>
void select_loop(const std::uint8_t* c, const T* a, const T* b, T* y, std::int64_t n) {
  const T a_first = *a, b_first = *b;
  const std::uint8_t c_first = *c;
  SAMEGRAD_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const T u = a_step ? a[i] : a_first, v = b_step ? b[i] : b_first;
    y[i] = (c_step ? c[i] : c_first) != 0 ? u : v;
  }
}

template <class T, int c_step>
void select_steps(const std::uint8_t* c, const T* a, const T* b, T* y, std::int64_t n, int a_step,
                  int b_step) {
  if (a_step != 0 && b_step != 0) return select_loop<T, c_step, 1, 1>(c, a, b, y, n);
  if (a_step != 0) return select_loop<T, c_step, 1, 0>(c, a, b, y, n);
  if (b_step != 0) return select_loop<T, c_step, 0, 1>(c, a, b, y, n);
  select_loop<T, c_step, 0, 0>(c, a, b, y, n);
}

template <class T>
void select(const void* condition, const void* a, const void* b, void* y, std::int64_t n,
            int c_step, int a_step, int b_step) {
  if (n <= 0) return;
  const auto* c = static_cast<const std::uint8_t*>(condition);
  const auto* left = static_cast<const T*>(a);
  const auto* right = static_cast<const T*>(b);
  auto* to = static_cast<T*>(y);
  if (c_step != 0) return select_steps<T, 1>(c, left, right, to, n, a_step, b_step);
  select_steps<T, 0>(c, left, right, to, n, a_step, b_step);
}

}  // namespace

SelectKernel select_kernel(DType dtype) {
  return kernel_for<samegrad::kAll>(dtype,
                                    []<class T>() -> SelectKernel { return select<BitsOf<T>>; });
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
