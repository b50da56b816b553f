// Conversion of a value to another type with the same elements.
#pragma once

#include "ir/builder.h"

namespace samegrad {

// The type differs in the example axis, or in how the sizes follow from counts; ValueError where
// sizes differ. The joints of a program (branches, loops, arrays, variables) use it with
// joined_type.
Value as_type(Builder& b, Value value, ValueType type);

}  // namespace samegrad
