// Which elementwise function is meant; the enumerators are the rows of the tables in kernels/
// (kernels/elementwise_fn.h), so that a new row is compiled where functions are named, not
// everywhere.
#pragma once

#include <cstdint>

namespace samegrad {

enum class UnaryFn : std::uint8_t;
enum class BinaryFn : std::uint8_t;

}  // namespace samegrad
