// The pixels of JPEG and PNG files, by libjpeg and libpng where they were there at the build.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tensor/array.h"

namespace samegrad {

struct ImageLimits {
  std::int64_t channels = 0;  // that the file must have; 0: any number
  std::int64_t most_pixels = 0;
  bool deep = false;  // PNG files of 16 bits, too: they become uint16
};

// uint8 [rows, columns, channels]. Decodes 8-bit JPEG files, grey or in colours, and 8-bit PNG
// files without interlacing, palette and transparent colour. Absent for other files, for files
// beyond the limits, and where the library reports an error or a warning.
std::optional<Array> decoded_image(std::span<const std::uint8_t> file, const ImageLimits& limits);

// By format; they are given files of their format.
std::optional<Array> decoded_jpeg(std::span<const std::uint8_t> file, const ImageLimits& limits);
std::optional<Array> decoded_png(std::span<const std::uint8_t> file, const ImageLimits& limits);

// Their versions; empty: there was none.
const char* jpeg_library();
const char* png_library();

}  // namespace samegrad
