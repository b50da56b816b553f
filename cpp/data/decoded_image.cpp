#include "data/decoded_image.h"

#include <cstring>
#include <string_view>

namespace samegrad {
namespace {

bool begins_with(std::span<const std::uint8_t> file, std::string_view start) {
  return file.size() >= start.size() && std::memcmp(file.data(), start.data(), start.size()) == 0;
}

}  // namespace

std::optional<Array> decoded_image(std::span<const std::uint8_t> file, const ImageLimits& limits) {
  if (begins_with(file, "\xff\xd8\xff")) return decoded_jpeg(file, limits);
  return begins_with(file, "\x89PNG\r\n\x1a\n") ? decoded_png(file, limits) : std::nullopt;
}

}  // namespace samegrad
