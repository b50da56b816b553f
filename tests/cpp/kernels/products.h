// What the tests of products share: operands, the chain of their contract, convolutions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string_view>
#include <utility>

#include "base/reduction_order.h"
#include "check.h"
#include "kernels/dispatch.h"
#include "kernels/tested_variants.h"
#include "reduction_spec.h"

namespace samegrad {

inline std::mt19937 generator(20240607);

inline std::int64_t any_of(std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(generator);
}

// A heap block of exactly this size, its data one element off any alignment.
template <class T>
struct Block {
  std::vector<T> store;
  explicit Block(std::int64_t n) : store(static_cast<std::size_t>(n) + 1) {
    for (T& value : store) {
      if constexpr (std::is_floating_point_v<T>) {
        value = static_cast<T>(static_cast<std::int32_t>(generator()) * 0x1p-30);
      } else {
        value = static_cast<T>(generator() * 0x9E3779B97F4A7C15u);
      }
    }
  }
  T* data() { return store.data() + 1; }
  const T* data() const { return store.data() + 1; }
  T& operator[](std::int64_t i) { return data()[i]; }
  const T& operator[](std::int64_t i) const { return data()[i]; }
  std::int64_t size() const { return static_cast<std::int64_t>(store.size()) - 1; }
};

struct Scratch {
  std::vector<std::byte> store;
  explicit Scratch(std::size_t bytes) : store(bytes) {}
  void* data() { return store.data(); }
};

template <class T>
bool same_bits(const Block<T>& a, const Block<T>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(T)) == 0;
}

// One link of the chain, as the variant does it.
struct Chain {
  bool fused;
  explicit Chain(const KernelTable& table) : fused(table.fused) {}

  // Products `0 … count`, each a pair of factors, as one chain or several; `sum` is where it goes
  // on.
  template <class T, class Factors>
  T contract(std::int64_t count, const Factors& factors, T sum = 0) const {
    const auto chain = [&](std::int64_t first, std::int64_t products, T from) {
      for (std::int64_t i = first; i < first + products; ++i) {
        add(factors(i).first, factors(i).second, from);
      }
      return from;
    };
    if (count <= 4096) return chain(0, count, sum);
    const T joined = testing::by_specification(
        0, count, 4096, 4096,
        [&](std::int64_t first, std::int64_t products) { return chain(first, products, T(0)); },
        [](T left, T right) { return left + right; });
    return goes_on(sum) ? sum + joined : joined;
  }
  template <class T>
  static bool goes_on(T sum) {
    return sum != T(0);
  }

  template <class T>
  void add(T a, T b, T& sum) const {
    if (fused) {
      sum = std::fma(a, b, sum);
    } else {
      const volatile T product = a * b;  // no contraction, whatever this file is compiled with
      sum = product + sum;
    }
  }
};

template <class T>
T finish(T sum, const Epilogue& epilogue, std::int64_t column) {
  if (epilogue.bias != nullptr) sum = sum + static_cast<const T*>(epilogue.bias)[column];
  if (epilogue.activation == Activation::kRelu && sum < 0) sum = 0;
  return sum;
}

template <class F>
void for_each_variant(F&& f) {
  for (const std::string& name : tested_variants()) f(load_kernels(name));
}

// f(table, kernels, a value of the type) for every variant and both floating types.
template <class F>
void for_each_kernel(F&& f) {
  for_each_variant([&](const KernelTable& table) {
    f(table, table.product(DType::kFloat32), float());
    f(table, table.product(DType::kFloat64), double());
  });
}

template <class T>
Scratch packed(const ProductKernels& p, const T* b, std::int64_t k, std::int64_t n,
               std::int64_t ldb, bool transposed = false) {
  Scratch result(p.packed_bytes(k, n));
  p.pack(b, k, n, ldb, transposed, result.data());
  return result;
}

// visit(input pixel, output pixel, tap) for every pair that meets, in the order (output, tap).
template <class F>
void for_each_meeting(const WindowGeometry& g, const F& visit) {
  for (std::int64_t o = 0; o < g.out_pixels(); ++o) {
    const std::int64_t row = o / g.out_width;
    for (std::int64_t tap = 0; tap < g.taps(); ++tap) {
      const std::int64_t tap_row = tap / g.window_width;
      const std::int64_t z = row / g.out_height * g.stride_depth - g.pad_front +
                             tap_row / g.window_height * g.dilation_depth;
      const std::int64_t y = row % g.out_height * g.stride_height - g.pad_top +
                             tap_row % g.window_height * g.dilation_height;
      const std::int64_t x =
          o % g.out_width * g.stride_width - g.pad_left + tap % g.window_width * g.dilation_width;
      if (z < 0 || z >= g.in_depth || y < 0 || y >= g.in_height || x < 0 || x >= g.in_width)
        continue;
      visit((z * g.in_height + y) * g.in_width + x, o, tap);
    }
  }
}

// visit(element of the input, element of the output, element of the filter) for every product of a
// convolution at such a meeting: channels of the input, then of the output.
template <class F>
void for_each_product(const WindowGeometry& g, std::int64_t i, std::int64_t o, std::int64_t tap,
                      const F& visit) {
  for (std::int64_t c = 0; c < g.in_channels; ++c) {
    const std::int64_t group = c / g.group_in();
    for (std::int64_t j = group * g.group_out(); j < (group + 1) * g.group_out(); ++j) {
      visit(i * g.in_channels + c, o * g.out_channels + j,
            (tap * g.group_in() + c % g.group_in()) * g.out_channels + j);
    }
  }
}

template <class T>
Block<T> filled(std::int64_t n, T value) {
  Block<T> block(n);
  std::fill_n(block.data(), n, value);
  return block;
}

template <class T>
void run_conv2d(const ProductKernels& p, const WindowGeometry& g, const Block<T>& x,
                const Block<T>& filter, const Epilogue& epilogue, Block<T>& y) {
  Scratch form(p.conv2d_packed_bytes(g));
  p.conv2d_pack(g, filter.data(), 0, g.group_out(), form.data());
  Scratch scratch(p.conv2d_scratch_bytes(g));
  p.conv2d(g, x.data(), form.data(), y.data(), &epilogue, scratch.data());
}

}  // namespace samegrad
