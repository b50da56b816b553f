// Fuzz target: the JPEG decoder.
#include "decode.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  samegrad::check_decoder(samegrad::decoded_jpeg, {data, size});
  return 0;
}
