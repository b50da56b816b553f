#include "base/dtype.h"

#include "base/error.h"

namespace samegrad {

const char* name_of(DType dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  return index < std::size(kDTypes) ? kDTypes[index].name : "no dtype";
}

std::string names_of(DTypes dtypes, std::string_view last_word) {
  std::string names;
  for (const DTypeEntry& row : kDTypes) {
    if ((dtypes & bit_of(row.dtype)) == 0) continue;
    dtypes &= ~bit_of(row.dtype);
    if (!names.empty()) names += dtypes == 0 ? last_word : ", ";
    names += row.name;
  }
  return names;
}

DType dtype_from_name(const std::string& name) {
  for (const DTypeEntry& row : kDTypes) {
    if (name == row.name) return row.dtype;
  }
  fail(ErrorKind::kType, "dtype", "samegrad has ", names_of(kAll, " and "), ": got '", name,
       "'; convert the array first, e.g. array.astype('float32').");
}

void refuse_dtype(std::string_view op_name, DType dtype, DTypes allowed) {
  fail(ErrorKind::kType, op_name, "the elements must be ", names_of(allowed), ": got ",
       name_of(dtype), "; cast them first.");
}

}  // namespace samegrad
