// Fuzz target: the PNG decoder, with valid checksums, behind which it reads further.
#include <zlib.h>

#include "decode.h"

namespace {

constexpr std::size_t kHeader = 1 + 8;  // the limits and the signature of the format

std::uint32_t big_endian(const std::uint8_t* bytes) {
  return std::uint32_t(bytes[0]) << 24 | std::uint32_t(bytes[1]) << 16 |
         std::uint32_t(bytes[2]) << 8 | bytes[3];
}

// Recompute the checksum of each chunk: length, name, data, checksum.
void repair_checksums(std::uint8_t* data, std::size_t size) {
  for (std::size_t at = kHeader; at + 12 <= size;) {
    const std::size_t length = big_endian(data + at);
    if (length > size - at - 12) return;
    std::uint8_t* const checksum = data + at + 8 + length;
    const auto value = std::uint32_t(crc32(0, data + at + 4, uInt(length + 4)));
    for (int i = 0; i < 4; ++i) checksum[i] = std::uint8_t(value >> (24 - 8 * i));
    at += 12 + length;
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  const std::size_t changed = LLVMFuzzerMutate(data, size, most);
  if (seed % 8 != 0) repair_checksums(data, changed);
  return changed;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  samegrad::check_decoder(samegrad::decoded_png, {data, size});
  return 0;
}
