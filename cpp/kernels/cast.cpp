#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/simd.h"
#include "kernels/variant.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

template <class T>
inline constexpr bool kHalf = is_storage_dtype(kDTypeOf<T>);

// Floats outside the range of an integer become its nearest end, NaN becomes 0.
template <class From, class To>
inline To convert(From x) {
  if constexpr (kHalf<From>) {
    return convert<float, To>(x);
  } else if constexpr (std::is_same_v<To, bool>) {
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

// Converts elements by the variant's conversion instructions and returns their number. The
// remaining elements are converted one by one, with the same bits.
template <class From, class To>
std::int64_t cast_registers(const From* from, To* to, std::int64_t n) {
  std::int64_t i = 0;
  if constexpr (kConvertsHalves && std::is_same_v<From, Float16> && std::is_same_v<To, float>) {
    for (; i + Vec<float>::kLanes <= n; i += Vec<float>::kLanes) {
      widen_halves(from + i).store(to + i);
    }
  }
  if constexpr (kConvertsHalves && std::is_same_v<From, float> && std::is_same_v<To, Float16>) {
    for (; i + Vec<float>::kLanes <= n; i += Vec<float>::kLanes) {
      narrow_to_halves(Vec<float>::load(from + i), to + i);
    }
  }
  return i;
}

template <class From, class To>
void cast(const void* x, void* y, std::int64_t n) {
  if constexpr (std::is_same_v<From, To>) {
    if (n > 0) std::memmove(y, x, static_cast<std::size_t>(n) * sizeof(To));
  } else if constexpr (std::is_same_v<From, bool> || !std::is_integral_v<To> ||
                       std::is_same_v<To, bool> || std::is_unsigned_v<To> ||
                       !std::is_integral_v<From>) {
    const From* from = static_cast<const From*>(x);
    To* to = static_cast<To*>(y);
    for (std::int64_t i = cast_registers(from, to, n); i < n; ++i) {
      to[i] = convert<From, To>(from[i]);
    }
  } else {  // modulo 2^bits, whatever the sign
    cast<From, BitsOf<To>>(x, y, n);
  }
}

}  // namespace

CastKernel cast_kernel(DType from, DType to) {
  return kernel_for<samegrad::kAll>(from, [to]<class From>() {
    return kernel_for<samegrad::kAll>(to, []<class To>() -> CastKernel { return cast<From, To>; });
  });
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
