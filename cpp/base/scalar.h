// A number before it has a dtype, as a program wrote it: a double or an int64, exactly.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>

namespace samegrad {

// Floats outside the range of an integer become its nearest end, NaN becomes 0: as a cast does.
template <std::integral To>
constexpr To saturated(double x) {
  constexpr auto kLow = double(std::numeric_limits<To>::min());
  constexpr double kPastHigh =
      2.0 * double(std::uint64_t{1} << (std::numeric_limits<To>::digits - 1));
  if (x != x) return To(0);
  if (x < kLow) return std::numeric_limits<To>::min();
  return x >= kPastHigh ? std::numeric_limits<To>::max() : To(x);
}

class Scalar {
 public:
  template <std::floating_point T>
  constexpr Scalar(T value) : real_(value) {}
  template <std::integral T>
  constexpr Scalar(T value) : whole_(value), is_whole_(true) {}

  constexpr bool is_whole() const { return is_whole_; }
  // The number in a dtype: rounded once.
  template <class T>
  constexpr T as() const {
    if constexpr (std::same_as<T, bool>) {
      return is_whole_ ? whole_ != 0 : real_ != 0;
    } else if constexpr (std::integral<T>) {
      return is_whole_ ? T(whole_) : saturated<T>(real_);
    } else {
      return is_whole_ ? T(whole_) : T(real_);
    }
  }
  // Compares bits: NaN is itself, and -0 is not 0.
  constexpr bool operator==(const Scalar& other) const {
    return is_whole_ == other.is_whole_ && bits() == other.bits();
  }
  constexpr std::uint64_t bits() const {
    return is_whole_ ? std::uint64_t(whole_) : std::bit_cast<std::uint64_t>(real_);
  }

 private:
  double real_ = 0;
  std::int64_t whole_ = 0;
  bool is_whole_ = false;
};

}  // namespace samegrad
