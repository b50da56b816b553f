// The element types of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace samegrad {

enum class DType : std::uint8_t { kFloat32, kFloat64, kInt32, kInt64, kUInt8, kBool };
inline constexpr int kDTypeCount = 6;

constexpr std::size_t size_of(DType dtype) {
  constexpr std::size_t kSizes[kDTypeCount] = {4, 8, 4, 8, 1, 1};
  return kSizes[static_cast<int>(dtype)];
}

constexpr bool is_floating(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

constexpr bool is_integer(DType dtype) {
  return dtype == DType::kInt32 || dtype == DType::kInt64 || dtype == DType::kUInt8;
}

// "float32", "int64", … : NumPy's names.
const char* name_of(DType dtype);
// The dtype of a NumPy name; ValueError if there is none.
DType dtype_from_name(const std::string& name);

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kFloat64;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::kUInt8;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::kBool;
};
template <class T>
inline constexpr DType kDTypeOf = DTypeOf<T>::value;

}  // namespace samegrad
