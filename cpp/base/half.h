// Floats of 16 bits as they are in memory. Arithmetic is float32's: they are widened, which is
// exact, and a result is rounded once, to the nearest, of two equally near ones to the even one.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace samegrad {

// A number as a float32 that rounds to 16 bits as the number itself does: cut, with the lowest bit
// set if anything was cut off.
template <class T>
constexpr float rounded_to_odd(T x) {
  if constexpr (std::is_same_v<T, float>) {
    return x;
  } else if constexpr (std::is_same_v<T, double>) {
    const float nearest = static_cast<float>(x);
    const double back = nearest;
    if (back == x || x != x) return nearest;
    const auto bits = std::bit_cast<std::uint32_t>(nearest);
    const bool above = x < 0 ? back < x : back > x;
    return std::bit_cast<float>((above ? bits - 1 : bits) | 1u);
  } else if constexpr (sizeof(T) == 8) {
    const double near = static_cast<double>(x);
    if (near < 0x1p53 && near > -0x1p53) return rounded_to_odd(near);
    constexpr T kLow = 0x7ff;  // what a double may not hold, far below the 16 bits
    return rounded_to_odd(static_cast<double>((x & ~kLow) | (x & kLow ? kLow + 1 : 0)));
  } else {
    return rounded_to_odd(static_cast<double>(x));
  }
}

// IEEE 754's binary16. Without branches, as the compiler is to vectorise them; NaN stays NaN, with
// the upper bits of its payload, as the processors' instructions have it.
struct Float16Format {
  static constexpr std::uint16_t narrow(float x) {
    constexpr std::uint32_t kInfinity = 0x7f800000u, kTooLarge = 143u << 23, kNormal = 113u << 23;
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t a = bits & 0x7fffffffu;
    const std::uint32_t normal = (a - (112u << 23) + 0xfffu + (a >> 13 & 1u)) >> 13;
    const std::uint32_t subnormal =  // added to 0.5, whose last bit is that of the result
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(a) + 0.5f) - (126u << 23);
    const std::uint32_t special = a > kInfinity ? 0x7e00u | (a >> 13 & 0x3ffu) : 0x7c00u;
    const std::uint32_t finite = a < kNormal ? subnormal : normal;
    return static_cast<std::uint16_t>((a >= kTooLarge ? special : finite) | (bits >> 16 & 0x8000u));
  }
  static constexpr float widen(std::uint16_t half) {
    const std::uint32_t sign = (half & 0x8000u) << 16, a = (half & 0x7fffu) << 13;
    const std::uint32_t quiet = a > (31u << 23) ? 1u << 22 : 0u;
    const std::uint32_t special = (a + (224u << 23)) | quiet;
    const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(
        std::bit_cast<float>(a + (113u << 23)) - std::bit_cast<float>(113u << 23));
    const std::uint32_t finite = a < (1u << 23) ? subnormal : a + (112u << 23);
    return std::bit_cast<float>(sign | (a >= (31u << 23) ? special : finite));
  }
};

// The upper half of a float32.
struct BFloat16Format {
  static constexpr std::uint16_t narrow(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t nan = (bits & 0x7fffffffu) > 0x7f800000u;
    const std::uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return static_cast<std::uint16_t>(nan ? bits >> 16 | 0x40u : rounded);
  }
  static constexpr float widen(std::uint16_t half) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
  }
};

template <class Format>
struct Half {
  std::uint16_t bits;

  Half() = default;
  template <class T>
  requires std::is_arithmetic_v<T>
  explicit(!std::is_same_v<T, float>) constexpr Half(T x)
      : bits(Format::narrow(rounded_to_odd(x))) {}
  constexpr operator float() const { return Format::widen(bits); }
};
using Float16 = Half<Float16Format>;
using BFloat16 = Half<BFloat16Format>;

}  // namespace samegrad
