// Fuzz targets of image decoders: limits from the first byte, the file from the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "data/decoded_image.h"

namespace samegrad {

using Decoder = std::optional<Array> (*)(std::span<const std::uint8_t>, const ImageLimits&);

inline constexpr std::int64_t kMostPixels = 1 << 16;  // so that one file takes milliseconds

inline void check_decoder(Decoder decoder, std::span<const std::uint8_t> input) {
  if (input.empty()) return;
  const ImageLimits limits{input[0] % 5, kMostPixels, (input[0] & 0x80) != 0};
  const std::optional<Array> image = decoder(input.subspan(1), limits);
  if (!image) return;
  const Shape& shape = image->shape();
  const bool valid = shape.rank() == 3 && shape[0] > 0 && shape[1] > 0 &&
                     shape[0] * shape[1] <= kMostPixels &&
                     (limits.channels == 0 || shape[2] == limits.channels);
  if (!valid) __builtin_trap();
  // AddressSanitizer sees a buffer that is too small for its shape.
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < image->bytes(); ++i)
    sum += std::to_integer<unsigned>(image->raw()[i]);
  volatile std::uint64_t kept = sum;
  (void)kept;
}

}  // namespace samegrad
