// The sizes of a tensor's axes.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace samegrad {

inline constexpr int kMaxRank = 8;
// The size of an axis that grows with the number of examples, known when a plan runs.
inline constexpr std::int64_t kBatchDim = -1;
// Any other size that follows from the number of examples is a symbol: kSymbols + its index.
inline constexpr std::int64_t kSymbols = INT64_MIN / 2;
constexpr bool is_symbolic(std::int64_t dim) {
  return dim >= kSymbols && dim < kSymbols / 2;
}

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims);
  explicit Shape(std::span<const std::int64_t> dims);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return dims_[axis]; }
  std::int64_t& operator[](int axis) { return dims_[axis]; }
  const std::int64_t* begin() const { return dims_.data(); }
  const std::int64_t* end() const { return dims_.data() + rank_; }
  std::span<const std::int64_t> dims() const { return {dims_.data(), std::size_t(rank_)}; }

  // True if a size other than the number of examples depends on that number.
  bool symbolic() const;
  // The number of elements; kBatchDim and symbols must have been replaced.
  std::int64_t size() const { return size(0, rank_); }
  // The product of the axes first … last (not included).
  std::int64_t size(int first, int last) const {
    std::int64_t product = 1;
    for (int axis = first; axis < last; ++axis) product *= dims_[axis];
    return product;
  }
  void push_back(std::int64_t dim);
  void insert(int axis, std::int64_t dim);
  void erase(int axis);

  bool operator==(const Shape& other) const;

 private:
  int rank_ = 0;
  std::array<std::int64_t, kMaxRank> dims_{};
};

// "(2, 3)"; a size that follows from the number of examples prints as "?".
std::string to_string(const Shape& shape);

// The indices begin, begin + step, … of an axis of n elements that Python's slice chooses; a bound
// of INT64_MIN or INT64_MAX is absent.
struct SliceRange {
  std::int64_t begin, step, count;
};
SliceRange slice_range(std::int64_t begin, std::int64_t end, std::int64_t step, std::int64_t n);

// a * b and a + b; MemoryError if the result overflows.
std::int64_t size_product(std::int64_t a, std::int64_t b);
std::int64_t size_sum(std::int64_t a, std::int64_t b);

// axis in [-rank, rank) as [0, rank); ValueError otherwise.
int normalize_axis(std::int64_t axis, int rank, std::string_view op_name);

}  // namespace samegrad
