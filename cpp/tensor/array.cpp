#include "tensor/array.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "base/error.h"

namespace samegrad {
namespace {

std::atomic<std::int64_t> live{0};

// Asks for large pages, where the system leaves them to programs: the rows of a wide matrix are a
// page or more apart, and so many small pages are more than a processor remembers. Only for those
// that are in the array as a whole, so that they take no more memory.
void prefer_large_pages([[maybe_unused]] std::byte* data, [[maybe_unused]] std::size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr std::size_t kPage = 2 << 20;
  if (bytes < 2 * kPage) return;  // may hold no large one
  const std::size_t skipped = (kPage - reinterpret_cast<std::uintptr_t>(data) % kPage) % kPage;
  madvise(data + skipped, (bytes - skipped) / kPage * kPage, MADV_HUGEPAGE);  // or is refused
#endif
}

}  // namespace

std::int64_t Buffer::live_bytes() {
  return live.load(std::memory_order_relaxed);
}

Buffer::Buffer(std::size_t bytes) : size_(bytes) {
  const std::size_t rounded = aligned(bytes);
  data_ = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded ? rounded : kAlignment));
  if (!data_) {
    fail(ErrorKind::kMemory, "tensor", "the system gives no memory for ", bytes,
         " bytes; use smaller batches or tensors.");
  }
  prefer_large_pages(data_, rounded);
  live.fetch_add(std::int64_t(bytes), std::memory_order_relaxed);
}

Buffer::Buffer(void* data, std::size_t bytes, std::function<void()> release)
    : data_(static_cast<std::byte*>(data)), size_(bytes), release_(std::move(release)) {}

Buffer::~Buffer() {
  if (release_) {
    release_();
  } else {
    live.fetch_sub(std::int64_t(size_), std::memory_order_relaxed);
    std::free(data_);
  }
}

std::int64_t size_in_bytes(DType dtype, const Shape& shape) {
  constexpr auto kMaxBytes = std::int64_t(1) << 52;  // no machine has that much
  auto bytes = std::int64_t(size_of(dtype));
  bool empty = false;
  for (const std::int64_t size : shape) {
    empty = empty || size == 0;
    if (size == 0 || size == kBatchDim || is_symbolic(size)) continue;
    if (size < 0 || size > kMaxBytes / bytes) {
      fail(ErrorKind::kMemory, "tensor", "the shape ", to_string(shape), " of ", name_of(dtype),
           " is larger than any memory; use smaller batches or tensors.");
    }
    bytes *= size;
  }
  return empty ? 0 : bytes;
}

Array::Array(DType dtype, const Shape& shape)
    : Array(dtype, shape, std::make_shared<Buffer>(std::size_t(size_in_bytes(dtype, shape)))) {}

Array::Array(DType dtype, const Shape& shape, std::shared_ptr<Buffer> buffer, std::size_t offset)
    : dtype_(dtype), shape_(shape), buffer_(std::move(buffer)), offset_(offset) {}

Array Array::zeros(DType dtype, const Shape& shape) {
  Array array(dtype, shape);
  std::memset(array.raw(), 0, array.bytes());
  return array;
}

Array Array::number(DType dtype, Scalar value) {
  return visit(dtype, [&]<class T>() { return scalar(value.as<T>()); });
}

Array Array::copy() const {
  Array result(dtype_, shape_);
  std::memcpy(result.raw(), raw(), bytes());
  return result;
}

Array Array::rows(std::int64_t begin, std::int64_t end) const {
  Shape shape = shape_;
  shape[0] = end - begin;
  const std::size_t row = std::size_t(shape_.size(1, shape_.rank())) * size_of(dtype_);
  return Array(dtype_, shape, buffer_, offset_ + std::size_t(begin) * row);
}

Array Array::reshaped(const Shape& shape) const {
  return Array(dtype_, shape, buffer_, offset_);
}

double element(const Array& array, std::int64_t index) {
  return visit(array.dtype(), [&]<class T>() { return double(array.data<T>()[index]); });
}

ExampleCounts counts_of(const std::vector<Array>& parts, const ExampleAxis& batch) {
  ExampleCounts counts;
  for (const Array& part : parts) {
    counts.push_back(part.shape()[batch.axis] / std::max<std::int64_t>(batch.rows_per_example, 1));
  }
  return counts;
}

bool same_counts(const ExampleCounts& a, const ExampleCounts& b) {
  if (a.size() > b.size()) return same_counts(b, a);
  if (a.size() != 1) return a == b;
  return std::ranges::all_of(b, [&](std::int64_t count) { return count == a[0]; });
}

}  // namespace samegrad
