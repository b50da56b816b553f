#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/variant.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

// Floats outside the range of a whole number become its nearest end, NaN becomes 0.
template <class From, class To>
inline To convert(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr From kLow = static_cast<From>(std::numeric_limits<To>::min());
    constexpr int kDigits = std::numeric_limits<To>::digits;
    constexpr From kPastHigh = From(2) * static_cast<From>(std::uint64_t{1} << (kDigits - 1));
    const bool inside = x >= kLow && x < kPastHigh;
    const To whole = static_cast<To>(inside ? x : From(0));
    const To high = x >= kPastHigh ? std::numeric_limits<To>::max() : whole;
    return x < kLow ? std::numeric_limits<To>::min() : high;
  } else {
    return static_cast<To>(x);
  }
}

template <class From, class To>
void cast(const void* x, void* y, std::int64_t n) {
  if constexpr (std::is_same_v<From, To>) {
    if (n > 0) std::memmove(y, x, static_cast<std::size_t>(n) * sizeof(To));
  } else {
    const From* from = static_cast<const From*>(x);
    To* to = static_cast<To*>(y);
    for (std::int64_t i = 0; i < n; ++i) to[i] = convert<From, To>(from[i]);
  }
}

}  // namespace

CastKernel cast_kernel(DType from, DType to) {
  return kernel_for(from, [to]<class From>() {
    return kernel_for(to, []<class To>() -> CastKernel { return cast<From, To>; });
  });
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
