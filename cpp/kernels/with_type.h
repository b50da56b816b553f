// From a dtype to its C++ type.
#pragma once

#include "kernels/variant.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {

// f.operator()<T>() for the type of the dtype.
template <class F>
inline auto with_type(DType dtype, F f) {
  switch (dtype) {
    case DType::kFloat32:
      return f.template operator()<float>();
    case DType::kFloat64:
      return f.template operator()<double>();
    case DType::kInt32:
      return f.template operator()<std::int32_t>();
    case DType::kInt64:
      return f.template operator()<std::int64_t>();
    case DType::kUInt8:
      return f.template operator()<std::uint8_t>();
    case DType::kBool:
      break;
  }
  return f.template operator()<bool>();
}

}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE
