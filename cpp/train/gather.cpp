#include "train/gather.h"

#include <cstring>

namespace samegrad {
namespace {

// The size is known at compile time for rows of one element.
template <std::size_t kBytes>
void copy_small_rows(const std::byte* from, std::byte* to, const std::int64_t* numbers,
                     std::int64_t rows, int columns) {
  for (std::int64_t i = 0; i < rows; ++i) {
    std::memcpy(to + std::size_t(i) * kBytes, from + std::size_t(numbers[i * columns]) * kBytes,
                kBytes);
  }
}

void copy_rows(const std::byte* from, std::byte* to, std::size_t bytes, const std::int64_t* numbers,
               std::int64_t rows, int columns) {
  if (bytes == 1) return copy_small_rows<1>(from, to, numbers, rows, columns);
  if (bytes == 4) return copy_small_rows<4>(from, to, numbers, rows, columns);
  if (bytes == 8) return copy_small_rows<8>(from, to, numbers, rows, columns);
  for (std::int64_t i = 0; i < rows; ++i) {
    std::memcpy(to + std::size_t(i) * bytes, from + std::size_t(numbers[i * columns]) * bytes,
                bytes);
  }
}

}  // namespace

Array gather_rows(const FeedSource& source, const std::int64_t* numbers, std::int64_t rows,
                  int columns, bool single) {
  numbers += source.column;
  Shape shape;
  if (!single) shape.push_back(rows);
  if (!source.array.defined()) {
    Array result(DType::kInt64, shape);
    auto* to = result.data<std::int64_t>();
    for (std::int64_t i = 0; i < rows; ++i)
      to[i] = source.first + numbers[i * columns] * source.step;
    return result;
  }
  const Shape& whole = source.array.shape();
  for (int axis = 1; axis < whole.rank(); ++axis) shape.push_back(whole[axis]);
  const DType dtype = source.array.dtype();
  Array result(dtype, shape);
  const std::size_t bytes = std::size_t(whole.size(1, whole.rank())) * size_of(dtype);
  copy_rows(source.array.raw(), result.raw(), bytes, numbers, rows, columns);
  return result;
}

}  // namespace samegrad
