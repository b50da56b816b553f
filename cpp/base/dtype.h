// The element types of tensors, from the lines of base/dtypes.def, and the one way from a dtype to
// its C++ type.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/half.h"

namespace samegrad {

enum class DType : std::uint8_t {
#define SAMEGRAD_DTYPE(id, name, kind, Storage, Sum) id,
#include "base/dtypes.def"
#undef SAMEGRAD_DTYPE
};

enum class DTypeKind : std::uint8_t { kFloating, kSigned, kUnsigned, kBoolean };

struct DTypeEntry {
  DType dtype;
  const char* name;
  DTypeKind kind;
  std::uint8_t bytes;
  bool widened;  // nothing is computed in it: operands become those of its sums' type
};
inline constexpr DTypeEntry kDTypes[] = {
#define SAMEGRAD_DTYPE(id, name, kind, Storage, Sum) \
  {DType::id, name, DTypeKind::kind, sizeof(Storage), !std::is_same_v<Storage, Sum>},
#include "base/dtypes.def"
#undef SAMEGRAD_DTYPE
};

constexpr const DTypeEntry& row_of(DType dtype) {
  return kDTypes[static_cast<int>(dtype)];
}
constexpr std::size_t size_of(DType dtype) {
  return row_of(dtype).bytes;
}
constexpr bool is_floating(DType dtype) {
  return row_of(dtype).kind == DTypeKind::kFloating;
}

constexpr bool is_storage_dtype(DType dtype) {
  return row_of(dtype).widened;
}

inline constexpr std::size_t kMaxElementBytes = [] {
  std::size_t most = 0;
  for (const DTypeEntry& row : kDTypes) most = row.bytes > most ? row.bytes : most;
  return most;
}();

// Sets of dtypes, one bit per DType.
using DTypes = std::uint32_t;
constexpr DTypes bit_of(DType dtype) {
  return 1u << static_cast<int>(dtype);
}
constexpr DTypes dtypes_of(DTypeKind kind) {
  DTypes found = 0;
  for (const DTypeEntry& row : kDTypes) found |= row.kind == kind ? bit_of(row.dtype) : 0;
  return found;
}
inline constexpr DTypes kFloats = dtypes_of(DTypeKind::kFloating);
inline constexpr DTypes kInts = dtypes_of(DTypeKind::kSigned);
inline constexpr DTypes kSigned = kFloats | kInts;
inline constexpr DTypes kIndices = bit_of(DType::kInt32) | bit_of(DType::kInt64);
inline constexpr DTypes kIntegers = kInts | dtypes_of(DTypeKind::kUnsigned);
inline constexpr DTypes kNumbers = kFloats | kIntegers;
inline constexpr DTypes kBools = dtypes_of(DTypeKind::kBoolean);
inline constexpr DTypes kAll = kNumbers | kBools;
// The dtypes that kernels compute in.
inline constexpr DTypes kComputed = [] {
  DTypes found = 0;
  for (const DTypeEntry& row : kDTypes) found |= row.widened ? 0 : bit_of(row.dtype);
  return found;
}();

// "float32", "int64", … : NumPy's names.
const char* name_of(DType dtype);
// "float32, float64 or int32"
std::string names_of(DTypes dtypes, std::string_view last_word = " or ");
// The dtype of a NumPy name; TypeError if there is none.
DType dtype_from_name(const std::string& name);

// ---- C++ types ----

template <class T>
struct DTypeOf;
template <DType dtype>
struct ElementOf;
#define SAMEGRAD_DTYPE(id, name, kind, Storage, Sum) \
  template <>                                        \
  struct DTypeOf<Storage> {                          \
    static constexpr DType value = DType::id;        \
    using SumType = Sum;                             \
  };                                                 \
  template <>                                        \
  struct ElementOf<DType::id> {                      \
    using Type = Storage;                            \
  };
#include "base/dtypes.def"
#undef SAMEGRAD_DTYPE

template <class T>
inline constexpr DType kDTypeOf = DTypeOf<T>::value;
template <class T, DTypes kSet>
inline constexpr bool kIsOneOf = (bit_of(kDTypeOf<T>) & kSet) != 0;
// Sums may be kept where the elements are: code that does so asserts it.
template <class T>
inline constexpr bool kSumsInPlace = std::is_same_v<typename DTypeOf<T>::SumType, T>;

// The unsigned integer as wide as T, for what moves elements and never looks at them.
template <std::size_t bytes>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using Type = std::uint8_t;
};
template <>
struct UnsignedOf<2> {
  using Type = std::uint16_t;
};
template <>
struct UnsignedOf<4> {
  using Type = std::uint32_t;
};
template <>
struct UnsignedOf<8> {
  using Type = std::uint64_t;
};
template <class T>
using BitsOf = typename UnsignedOf<sizeof(T)>::Type;

// f.operator()<T>() with the dtype's type of elements; otherwise() for what is not a dtype.
template <class F, class Otherwise>
constexpr auto visit_or(DType dtype, F&& f, Otherwise&& otherwise) {
  using Result = decltype(f.template operator()<typename ElementOf<DType(0)>::Type>());
  switch (dtype) {
#define SAMEGRAD_DTYPE(id, name, kind, Storage, Sum) \
  case DType::id:                                    \
    return f.template operator()<Storage>();
#include "base/dtypes.def"
#undef SAMEGRAD_DTYPE
  }
  return static_cast<Result>(otherwise());
}

// TypeError: "[op_name] …: got bool".
[[noreturn]] void refuse_dtype(std::string_view op_name, DType dtype, DTypes allowed);

// Calls f with the element type of a dtype of a set. Raises a TypeError that names any other dtype.
template <DTypes kAllowed, class F>
constexpr auto visit(std::string_view op_name, DType dtype, F&& f) {
  using First = typename ElementOf<DType(std::countr_zero(kAllowed))>::Type;
  using Result = decltype(f.template operator()<First>());
  const auto refuse = [&]() -> Result { refuse_dtype(op_name, dtype, kAllowed); };
  const auto apply = [&]<class T>() -> Result {
    if constexpr (kIsOneOf<T, kAllowed>) {
      return f.template operator()<T>();
    } else {
      return refuse();
    }
  };
  return visit_or(dtype, apply, refuse);
}
template <class F>
constexpr auto visit(DType dtype, F&& f) {
  return visit<kAll>("dtype", dtype, f);
}

// The dtype of computations and sums: the dtype itself, unless it is one that is widened.
constexpr DType sum_type(DType dtype) {
  return visit(dtype, []<class T>() { return kDTypeOf<typename DTypeOf<T>::SumType>; });
}

}  // namespace samegrad
