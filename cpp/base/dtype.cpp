#include "base/dtype.h"

#include "base/error.h"

namespace samegrad {
namespace {
constexpr const char* kNames[kDTypeCount] = {"float32", "float64", "int32",
                                             "int64",   "uint8",   "bool"};
}

const char* name_of(DType dtype) {
  return kNames[static_cast<int>(dtype)];
}

DType dtype_from_name(const std::string& name) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (name == kNames[i]) return static_cast<DType>(i);
  }
  fail(ErrorKind::kType, "dtype",
       "samegrad has float32, float64, int32, int64, uint8 and bool: got '", name,
       "'; convert the array first, e.g. array.astype('float32').");
}

}  // namespace samegrad
