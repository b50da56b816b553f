// Images of another size, for what prepares data: one pass over the pixels.
#pragma once

#include "tensor/array.h"

namespace samegrad {

// True if resized_bilinear accepts the array: uint8 or float32 of [..., rows, columns, channels].
bool has_images(const Array& array);
// Images [..., rows, columns, channels] of uint8 or float32 as float32 of other rows and columns,
// each pixel between the four around its centre. Along columns first, then along rows, each time
// low + (high - low) * share: the bits of these operations one after the other.
Array resized_bilinear(const Array& images, std::int64_t rows, std::int64_t columns);

}  // namespace samegrad
