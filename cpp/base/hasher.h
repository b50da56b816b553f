// A hash of bytes (FNV-1a).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace samegrad {

class Hasher {
 public:
  void bytes(const void* data, std::size_t n) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < n; ++i) state_ = (state_ ^ p[i]) * 1099511628211ull;
  }
  // Hashes megabytes, as fast as memory is read: eight columns of 64 bits side by side, each in
  // rounds of xxHash64.
  void many(const void* data, std::size_t n) {
    constexpr std::size_t kColumns = 8, kRow = kColumns * sizeof(std::uint64_t);
    std::array<std::uint64_t, kColumns> columns{1, 2, 3, 4, 5, 6, 7, 8}, row;
    const auto* p = static_cast<const unsigned char*>(data);
    for (std::size_t left = n; left >= kRow; left -= kRow, p += kRow) {
      std::memcpy(row.data(), p, kRow);
      for (std::size_t i = 0; i < kColumns; ++i) {
        const std::uint64_t mixed = columns[i] + row[i] * 14029467366897019727ull;
        columns[i] = std::rotl(mixed, 31) * 11400714785074694791ull;
      }
    }
    bytes(columns.data(), sizeof columns);
    bytes(p, n % kRow);
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
