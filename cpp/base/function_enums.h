// Forward declarations of the elementwise functions. The tables in kernels
// (kernels/elementwise_fn.h) define the enumerators, so that a new function recompiles only the
// files that name functions.
#pragma once

#include <cstdint>

namespace samegrad {

enum class UnaryFn : std::uint8_t;
enum class BinaryFn : std::uint8_t;

}  // namespace samegrad
