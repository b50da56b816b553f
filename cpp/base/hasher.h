// A hash of bytes (FNV-1a).
#pragma once

#include <cstddef>
#include <cstdint>

namespace samegrad {

class Hasher {
 public:
  void bytes(const void* data, std::size_t n) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < n; ++i) state_ = (state_ ^ p[i]) * 1099511628211ull;
  }
  template <class T>
  void number(T value) {
    bytes(&value, sizeof value);
  }
  std::uint64_t state() const { return state_; }

 private:
  std::uint64_t state_ = 14695981039346656037ull;
};

}  // namespace samegrad
