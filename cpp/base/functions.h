// Forward declarations of the elementwise functions; the enumerators come from the tables in
// kernels (kernels/elementwise_fn.h), so that a new function recompiles only the files that name
// functions.
#pragma once

#include <cstdint>

namespace samegrad {

enum class UnaryFn : std::uint8_t;
enum class BinaryFn : std::uint8_t;

}  // namespace samegrad
