#include "base/shape.h"

#include <algorithm>

#include "base/error.h"
#include "base/rounding.h"

namespace samegrad {

Shape::Shape(std::initializer_list<std::int64_t> dims)
    : Shape(std::span<const std::int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const std::int64_t> dims) {
  for (std::int64_t dim : dims) push_back(dim);
}

bool Shape::symbolic() const {
  return std::any_of(begin(), end(), is_symbolic);
}

void Shape::push_back(std::int64_t dim) {
  insert(rank_, dim);
}

void Shape::insert(int axis, std::int64_t dim) {
  SG_CHECK_VALUE(rank_ < kMaxRank, "shape", "at most ", kMaxRank,
                 " axes are supported: one more was asked for; merge axes with reshape.");
  for (int i = rank_; i > axis; --i) dims_[i] = dims_[i - 1];
  dims_[axis] = dim;
  ++rank_;
}

void Shape::erase(int axis) {
  for (int i = axis; i + 1 < rank_; ++i) dims_[i] = dims_[i + 1];
  --rank_;
}

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ && std::equal(begin(), end(), other.begin());
}

std::string to_string(const Shape& shape) {
  std::string out = "(";
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis) out += ", ";
    out += shape[axis] == kBatchDim || is_symbolic(shape[axis]) ? "?" : std::to_string(shape[axis]);
  }
  return out + (shape.rank() == 1 ? ",)" : ")");
}

SliceRange slice_range(std::int64_t begin, std::int64_t end, std::int64_t step, std::int64_t n) {
  // A reversed pass may stop before the first element.
  const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  const auto bound = [&](std::int64_t at, std::int64_t absent) {
    if (at == INT64_MAX || at == INT64_MIN) return absent;
    return std::clamp(at < 0 ? at + n : at, low, high);
  };
  const std::int64_t first = bound(begin, step > 0 ? low : high);
  const std::int64_t last = bound(end, step > 0 ? high : low);
  const std::int64_t distance = step > 0 ? last - first : first - last;
  const std::int64_t width = step > 0 ? step : -step;
  return {first, step, distance > 0 ? divide_up(distance, width) : 0};
}

std::int64_t size_product(std::int64_t a, std::int64_t b) {
  std::int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) {
    fail(ErrorKind::kMemory, "tensor", "a size of ", a, " * ", b,
         " is larger than any memory; use smaller batches or tensors.");
  }
  return product;
}

std::int64_t size_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) {
    fail(ErrorKind::kMemory, "tensor", "a size of ", a, " + ", b,
         " is larger than any memory; use smaller batches or tensors.");
  }
  return sum;
}

int normalize_axis(std::int64_t axis, int rank, std::string_view op_name) {
  SG_CHECK_VALUE(axis >= -rank && axis < rank, op_name, "axis must lie in [", -rank, ", ", rank,
                 ") for a tensor of rank ", rank, ": got ", axis, ".");
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace samegrad
