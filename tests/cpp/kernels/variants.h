// What the kernel tests share: every variant that runs here, samples, and comparison by bits.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "kernels/dispatch.h"
#include "kernels/elementwise_fn.h"
#include "kernels/tested_variants.h"

namespace samegrad {

template <class F>
void for_each_variant(F f) {
  for (const std::string& name : tested_variants()) f(load_kernels(name));
}

inline const char* name_of(UnaryFn fn) {
  static const char* const kNames[] = {
#define SAMEGRAD_UNARY(name, ...) #name,
#include "kernels/unary.def"
#undef SAMEGRAD_UNARY
  };
  return kNames[static_cast<int>(fn)];
}
inline const char* name_of(BinaryFn fn) {
  static const char* const kNames[] = {
#define SAMEGRAD_BINARY(name, ...) #name,
#include "kernels/binary.def"
#undef SAMEGRAD_BINARY
  };
  return kNames[static_cast<int>(fn)];
}

constexpr DType kAllDTypes[] = {
#define SAMEGRAD_DTYPE(id, ...) DType::id,
#include "base/dtypes.def"
#undef SAMEGRAD_DTYPE
};

// n elements of any dtype as bytes, `shift` elements after a fresh allocation's start.
class Sample {
 public:
  Sample(DType dtype, std::int64_t n, std::int64_t shift = 0)
      : dtype_(dtype), n_(n), shift_(shift), bytes_(static_cast<std::size_t>(n + shift) * size()) {}

  static Sample random(DType dtype, std::int64_t n, std::mt19937& generator) {
    Sample s(dtype, n);
    std::uniform_real_distribution<double> real(-6, 6);
    for (std::int64_t i = 0; i < n; ++i) s.set(i, special(dtype, i, generator, real(generator)));
    return s;
  }

  std::size_t size() const { return size_of(dtype_); }
  std::int64_t count() const { return n_; }
  void* data() { return bytes_.data() + static_cast<std::size_t>(shift_) * size(); }
  const void* data() const { return const_cast<Sample*>(this)->data(); }
  template <class T>
  T* as() {
    return static_cast<T*>(data());
  }
  template <class T>
  const T* as() const {
    return static_cast<const T*>(data());
  }
  const char* at(std::int64_t i) const {
    return static_cast<const char*>(data()) + static_cast<std::size_t>(i) * size();
  }
  bool same_bits(std::int64_t i, const Sample& other, std::int64_t j) const {
    return size() == other.size() && std::memcmp(at(i), other.at(j), size()) == 0;
  }
  // Elements first … first + n, at another alignment.
  Sample part(std::int64_t first, std::int64_t n, std::int64_t shift) const {
    Sample s(dtype_, n, shift);
    if (n > 0) std::memcpy(s.data(), at(first), static_cast<std::size_t>(n) * size());
    return s;
  }

  void set(std::int64_t i, double value) {
    visit(dtype_, [&]<class T>() {
      const double kept =
          kIsOneOf<T, kNumbers & ~dtypes_of(DTypeKind::kUnsigned)> ? value : std::abs(value);
      if constexpr (kIsOneOf<T, kBools>) {
        as<std::uint8_t>()[i] = static_cast<std::uint8_t>(kept) & 1;
      } else {
        as<T>()[i] = static_cast<T>(kept);
      }
    });
  }

 private:
  // Mostly the plain value, sometimes one of those that break things.
  static double special(DType dtype, std::int64_t i, std::mt19937& generator, double plain) {
    if (!is_floating(dtype) || i % 7 != 3) return plain;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double specials[] = {
        0.0,    -0.0,    kInfinity, -kInfinity,
        1e-310, -1e-41,  1e30,      700,
        -700,   88.8,    -90,       1,
        -1e30,  12345.6, 0x1p-30,   std::numeric_limits<double>::quiet_NaN()};
    return specials[generator() % std::size(specials)];
  }

  DType dtype_;
  std::int64_t n_, shift_;
  std::vector<char> bytes_;
};

}  // namespace samegrad
