// One enumerator per row of the tables beside this file.
#pragma once

#include "base/function_enums.h"

namespace samegrad {

enum class UnaryFn : std::uint8_t {
#define SAMEGRAD_UNARY(name, ...) k_##name,
#include "kernels/unary.def"
#undef SAMEGRAD_UNARY
  kCount
};
enum class BinaryFn : std::uint8_t {
#define SAMEGRAD_BINARY(name, ...) k_##name,
#include "kernels/binary.def"
#undef SAMEGRAD_BINARY
  kCount
};

}  // namespace samegrad
