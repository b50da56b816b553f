// Arrays whose memory another process has. Here they have a dtype and a shape.
#pragma once

#include "tensor/array.h"

namespace samegrad {

Array non_addressable_array(DType dtype, const Shape& shape);
bool is_non_addressable(const Array& array);

}  // namespace samegrad
