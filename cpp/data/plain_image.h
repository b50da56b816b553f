// The usual JPEG and PNG files: what their first bytes say, and the pixels of a PNG file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tensor/array.h"

namespace samegrad {

struct PlainHeader {
  bool jpeg = false;
  std::int64_t rows = 0, columns = 0, channels = 0;
  // Of a PNG file: where its compressed pixels lie, in order.
  std::vector<std::span<const std::uint8_t>> pixels;
};

// Nothing for all but JPEG files of 8 bits, grey or in colours, and PNG files of 8 bits, not
// interlaced, without palette and transparent colour; and for a PNG file with a wrong checksum.
std::optional<PlainHeader> plain_header(std::span<const std::uint8_t> file);

// The pixels [rows, columns, channels] of a PNG file's rows, each of which says by its first byte
// how its bytes differ from their neighbours. Nothing where there is no such way, or other rows.
std::optional<Array> unfiltered(std::span<const std::uint8_t> raw, std::int64_t rows,
                                std::int64_t columns, std::int64_t channels);

}  // namespace samegrad
