#include "ops/transpose.h"

#include <cstring>

namespace samegrad {
namespace {

template <class T>
void swap_elements(const T* x, std::int64_t a, std::int64_t b, T* y) {
  for (std::int64_t j = 0; j < b; ++j) {
    for (std::int64_t i = 0; i < a; ++i) *y++ = x[i * b + j];
  }
}

}  // namespace

void swap_axes(const void* x, std::int64_t a, std::int64_t b, std::int64_t c, std::size_t item,
               void* y) {
  if (a * b * c == 0) return;
  if (c == 1 && item == 4) {
    swap_elements(static_cast<const std::uint32_t*>(x), a, b, static_cast<std::uint32_t*>(y));
    return;
  }
  if (c == 1 && item == 8) {
    swap_elements(static_cast<const std::uint64_t*>(x), a, b, static_cast<std::uint64_t*>(y));
    return;
  }
  const std::size_t run = std::size_t(c) * item;
  char* out = static_cast<char*>(y);
  for (std::int64_t j = 0; j < b; ++j) {
    for (std::int64_t i = 0; i < a; ++i, out += run) {
      std::memcpy(out, static_cast<const char*>(x) + std::size_t(i * b + j) * run, run);
    }
  }
}

}  // namespace samegrad
