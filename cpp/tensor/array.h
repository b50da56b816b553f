// Concrete tensors: contiguous row-major views of ref-counted, 64-byte aligned memory.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "base/assert.h"
#include "base/dtype.h"
#include "base/rounding.h"
#include "base/scalar.h"
#include "base/shape.h"

namespace samegrad {

inline constexpr std::size_t kAlignment = 64;
constexpr auto aligned(std::integral auto bytes) {
  return round_up(bytes, decltype(bytes)(kAlignment));
}

// Elements of the dtype may be accessed as T: as their own type (of either sign), or as bytes.
template <class T>
constexpr bool is_stored_as(DType dtype) {
  using Element = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Element, char> || std::is_same_v<Element, std::byte>)
    return true;
  else if constexpr (std::is_integral_v<Element> && !std::is_same_v<Element, bool>)
    return kDTypeOf<std::make_signed_t<Element>> == dtype ||
           kDTypeOf<std::make_unsigned_t<Element>> == dtype;
  else
    return kDTypeOf<Element> == dtype;
}

class Buffer {
 public:
  explicit Buffer(std::size_t bytes);
  // Borrowed memory; release() is called when the last view is gone.
  Buffer(void* data, std::size_t bytes, std::function<void()> release);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool owns_memory() const { return release_ == nullptr; }

  // The bytes of all buffers of the process, without borrowed memory.
  static std::int64_t live_bytes();

 private:
  std::byte* data_;
  std::size_t size_;
  std::function<void()> release_;
};

// The memory of an array, kBatchDim counted as one; MemoryError where none can be that large, even
// with axes of size 0 left out: products of some axes are computed in many places.
std::int64_t size_in_bytes(DType dtype, const Shape& shape);

// The axis that counts examples, and the number of rows of each example on it. After a reshape of
// 32 sentences of 40 tokens to 1,280 rows, each has 40. axis < 0: no axis.
struct ExampleAxis {
  int axis = -1;
  std::int64_t rows_per_example = 1;
  int symbol = 0;  // which count of examples, in a graph that knows several

  bool exists() const { return axis >= 0; }
  bool operator==(const ExampleAxis&) const = default;
};

class Array;

// Examples of an argument: one count, or one per replica.
using ExampleCounts = std::vector<std::int64_t>;
ExampleCounts counts_of(const std::vector<Array>& parts, const ExampleAxis& batch);
// True if both have the same count on every replica.
bool same_counts(const ExampleCounts& a, const ExampleCounts& b);

class Array {
 public:
  Array() = default;
  // Uninitialised memory.
  Array(DType dtype, const Shape& shape);
  Array(DType dtype, const Shape& shape, std::shared_ptr<Buffer> buffer, std::size_t offset = 0);

  template <class T>
  static Array scalar(T value) {
    Array array(kDTypeOf<T>, Shape());
    *array.data<T>() = value;
    return array;
  }
  static Array zeros(DType dtype, const Shape& shape);
  // A 0-d array of any dtype.
  static Array number(DType dtype, Scalar value);

  bool defined() const { return buffer_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t size() const { return shape_.size(); }
  std::size_t bytes() const { return std::size_t(size()) * size_of(dtype_); }
  std::byte* raw() const { return buffer_->data() + offset_; }
  template <class T>
  T* data() const {
    SG_ASSERT(is_stored_as<T>(dtype_), "elements of ", name_of(dtype_));
    return reinterpret_cast<T*>(raw());
  }
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }

  Array copy() const;
  // Rows [begin, end) of axis 0, sharing memory.
  Array rows(std::int64_t begin, std::int64_t end) const;
  Array reshaped(const Shape& shape) const;

 private:
  DType dtype_ = DType::kFloat32;
  Shape shape_;
  std::shared_ptr<Buffer> buffer_;
  std::size_t offset_ = 0;
};

// One element as a double (any dtype), for attributes and messages.
double element(const Array& array, std::int64_t index);

}  // namespace samegrad
