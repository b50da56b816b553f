#include "data/gather.h"

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

void count_rows(const FeedSource& source, std::byte* to, const std::int64_t* numbers,
                std::int64_t rows, int columns) {
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t value = source.first + numbers[i * columns] * source.step;
    std::memcpy(to + std::size_t(i) * sizeof(value), &value, sizeof(value));
  }
}

}  // namespace

std::vector<Array> gather_groups(const FeedSource& source, const RowIndices& indices, int columns,
                                 std::span<const std::int64_t> ends, bool single) {
  const bool copies = source.array.defined();
  const DType dtype = copies ? source.array.dtype() : DType::kInt64;
  Shape shape = copies ? source.array.shape() : Shape{0};
  const std::size_t row_bytes = std::size_t(shape.size(1, shape.rank())) * size_of(dtype);
  std::size_t bytes = 0;
  std::int64_t begin = 0;
  for (const std::int64_t end : ends)
    bytes += aligned(std::size_t(end - begin) * row_bytes), begin = end;
  const auto buffer = std::make_shared<Buffer>(bytes);
  if (single) shape.erase(0);
  std::vector<Array> groups;
  std::size_t offset = 0;
  begin = 0;
  for (const std::int64_t end : ends) {
    const std::int64_t* numbers = indices.numbers.data() + begin * columns + source.column;
    std::byte* to = buffer->data() + offset;
    if (copies) {
      copy_rows(source.array.raw(), to, row_bytes, numbers, end - begin, columns);
    } else {
      count_rows(source, to, numbers, end - begin, columns);
    }
    if (!single) shape[0] = end - begin;
    groups.emplace_back(dtype, shape, buffer, offset);
    offset += aligned(std::size_t(end - begin) * row_bytes);
    begin = end;
  }
  return groups;
}

}  // namespace samegrad
