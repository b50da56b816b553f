#include "data/plain_image.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace samegrad {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::string_view kPngStart{"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16};

bool begins_with(Bytes file, std::string_view start) {
  return file.size() >= start.size() && std::memcmp(file.data(), start.data(), start.size()) == 0;
}

std::int64_t big_endian(Bytes bytes, std::size_t at, int count) {
  std::int64_t number = 0;
  for (int i = 0; i < count; ++i) number = number << 8 | bytes[at + std::size_t(i)];
  return number;
}

std::optional<PlainHeader> jpeg_header(Bytes file) {
  // A segment: its marker, and its length with the two bytes of it.
  for (std::size_t at = 2; at + 10 <= file.size() && file[at] == 0xFF;) {
    const int marker = file[at + 1];
    if (marker >= 0xC0 && marker <= 0xC2) {  // a frame: baseline, extended, progressive
      const int channels = file[at + 9];
      if ((channels != 1 && channels != 3) || file[at + 4] != 8) return std::nullopt;
      return PlainHeader{
          true, big_endian(file, at + 5, 2), big_endian(file, at + 7, 2), channels, {}};
    }
    if (marker < 0xC4 || marker > 0xFE || (marker >= 0xD0 && marker <= 0xD9)) return std::nullopt;
    at += std::size_t(2 + big_endian(file, at + 2, 2));
  }
  return std::nullopt;
}

// Of the polynomial of PNG and zlib, four bytes at a time.
constexpr auto kChecksums = [] {
  std::array<std::array<std::uint32_t, 256>, 4> tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
    tables[0][i] = c;
  }
  for (std::size_t t = 1; t < 4; ++t) {
    for (std::size_t i = 0; i < 256; ++i) {
      tables[t][i] = tables[0][tables[t - 1][i] & 0xFF] ^ (tables[t - 1][i] >> 8);
    }
  }
  return tables;
}();

std::uint32_t checksum(Bytes bytes) {
  std::uint32_t c = ~0u;
  std::size_t at = 0;
  for (; at + 4 <= bytes.size(); at += 4) {
    c ^= std::uint32_t(bytes[at]) | std::uint32_t(bytes[at + 1]) << 8 |
         std::uint32_t(bytes[at + 2]) << 16 | std::uint32_t(bytes[at + 3]) << 24;
    c = kChecksums[3][c & 0xFF] ^ kChecksums[2][c >> 8 & 0xFF] ^ kChecksums[1][c >> 16 & 0xFF] ^
        kChecksums[0][c >> 24];
  }
  for (; at < bytes.size(); ++at) c = kChecksums[0][(c ^ bytes[at]) & 0xFF] ^ (c >> 8);
  return ~c;
}

// By the kind of colours: grey, colours, colours with opacity.
int channels_of_kind(int kind) {
  return kind == 0 ? 1 : kind == 2 ? 3 : kind == 6 ? 4 : 0;
}

std::optional<PlainHeader> png_header(Bytes file) {
  if (file.size() < 33) return std::nullopt;
  PlainHeader header{
      false, big_endian(file, 20, 4), big_endian(file, 16, 4), channels_of_kind(file[25]), {}};
  if (file[24] != 8 || header.channels == 0 || file[26] != 0 || file[27] != 0 || file[28] != 0) {
    return std::nullopt;
  }
  for (std::size_t at = 8; file.size() - at >= 12;) {  // a chunk: length, name, bytes, checksum
    const auto length = std::size_t(big_endian(file, at, 4));
    if (length > file.size() - at - 12) return std::nullopt;
    const Bytes content = file.subspan(at + 8, length);
    const Bytes named = file.subspan(at + 4, 4 + length);
    const std::string_view name(reinterpret_cast<const char*>(named.data()), 4);
    if (name == "tRNS" || checksum(named) != big_endian(file, at + 8 + length, 4)) {
      return std::nullopt;
    }
    if (name == "IEND") return header;
    if (name == "IDAT") header.pixels.push_back(content);
    at += 12 + length;
  }
  return std::nullopt;
}

// The neighbour (left, above, above left) that is nearest to left + above - above left.
std::uint8_t paeth(int left, int above, int corner) {
  const int a = std::abs(above - corner), b = std::abs(left - corner);
  const int c = std::abs(left + above - 2 * corner);
  return std::uint8_t(a <= b && a <= c ? left : b <= c ? above : corner);
}

// A row's bytes of their differences. `above`: the row before, or zeros.
template <int kChannels>
bool unfilter_row(int way, const std::uint8_t* from, const std::uint8_t* above, std::int64_t size,
                  std::uint8_t* to) {
  const auto walk = [&](const auto& guess) {
    std::uint8_t left[kChannels] = {}, corner[kChannels] = {};
    for (std::int64_t i = 0; i < size; i += kChannels) {
      for (int c = 0; c < kChannels; ++c) {
        const std::uint8_t up = above[i + c];
        left[c] = to[i + c] = std::uint8_t(from[i + c] + guess(left[c], up, corner[c]));
        corner[c] = up;
      }
    }
  };
  switch (way) {
    case 0:
      std::copy_n(from, size, to);
      return true;
    case 1:
      walk([](int left, int, int) { return left; });
      return true;
    case 2:
      walk([](int, int up, int) { return up; });
      return true;
    case 3:
      walk([](int left, int up, int) { return (left + up) >> 1; });
      return true;
    case 4:
      walk(paeth);
      return true;
    default:
      return false;
  }
}

using UnfilterRow = bool (*)(int, const std::uint8_t*, const std::uint8_t*, std::int64_t,
                             std::uint8_t*);

UnfilterRow unfilter_of(std::int64_t channels) {
  return channels == 1 ? unfilter_row<1> : channels == 3 ? unfilter_row<3> : unfilter_row<4>;
}

}  // namespace

std::optional<PlainHeader> plain_header(Bytes file) {
  if (begins_with(file, "\xff\xd8\xff")) return jpeg_header(file);
  return begins_with(file, kPngStart) ? png_header(file) : std::nullopt;
}

std::optional<Array> unfiltered(Bytes raw, std::int64_t rows, std::int64_t columns,
                                std::int64_t channels) {
  const std::int64_t size = columns * channels;
  if (std::int64_t(raw.size()) != rows * (size + 1)) return std::nullopt;
  Array pixels(DType::kUInt8, {rows, columns, channels});
  auto* to = reinterpret_cast<std::uint8_t*>(pixels.raw());
  const std::vector<std::uint8_t> zeros(static_cast<std::size_t>(size));
  const std::uint8_t* above = zeros.data();
  const UnfilterRow unfilter = unfilter_of(channels);
  for (std::int64_t row = 0; row < rows; ++row, to += size) {
    const std::uint8_t* from = raw.data() + row * (size + 1);
    if (!unfilter(from[0], from + 1, above, size, to)) return std::nullopt;
    above = to;
  }
  return pixels;
}

}  // namespace samegrad
