// Arrays whose memory another process has. Here they have a dtype and a shape.
#pragma once

#include "tensor/array.h"

namespace samegrad {

Array array_elsewhere(DType dtype, const Shape& shape);
bool is_elsewhere(const Array& array);

}  // namespace samegrad
