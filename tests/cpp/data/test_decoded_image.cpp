// Files that the libraries' own encoders write, whole and damaged.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "check.h"
#include "data/host_function.h"

#if SAMEGRAD_HAS_JPEG
#include <jpeglib.h>
#endif
#if SAMEGRAD_HAS_PNG
#include <png.h>
#endif

using namespace samegrad;

namespace {

using Bytes = std::vector<std::uint8_t>;

struct Size {
  std::int64_t rows, columns, channels;
};

[[maybe_unused]] const Size kSizes[] = {{1, 1, 1}, {7, 5, 3}, {64, 33, 3}, {19, 23, 1}};
const ImageLimits kAny{0, 1 << 20};

[[maybe_unused]] Bytes pixels_of(const Size& size) {
  Bytes pixels;
  for (std::int64_t i = 0; i < size.rows * size.columns * size.channels; ++i) {
    pixels.push_back(std::uint8_t(i * 37 % 251 + i / 100));
  }
  return pixels;
}

[[maybe_unused]] std::optional<Array> decoded(const Bytes& file, ImageLimits limits = kAny) {
  return decoded_image(file, limits);
}

[[maybe_unused]] bool has(const Array& image, const Size& size) {
  return image.dtype() == DType::kUInt8 &&
         image.shape() == Shape{size.rows, size.columns, size.channels};
}

// Whatever is wrong with a file, there is an image of its size or none.
[[maybe_unused]] void check_damaged(const Bytes& file, const Size& size,
                                    const ImageLimits& limits = kAny) {
  for (std::size_t end = 0; end < file.size(); ++end) {
    CHECK(!decoded(Bytes(file.begin(), file.begin() + std::ptrdiff_t(end)), limits));
  }
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (const int change : {0x01, 0x55, 0xFF}) {
      Bytes changed = file;
      changed[at] = std::uint8_t(changed[at] ^ change);
      const auto image = decoded(changed, limits);
      CHECK(!image || image->size() <= kAny.most_pixels * 4);
      if (image && image->shape()[2] == size.channels) CHECK(image->shape().rank() == 3);
    }
  }
}

[[maybe_unused]] void check_limits(const Bytes& file, const Size& size) {
  CHECK(decoded(file, {size.channels, size.rows * size.columns}));
  CHECK(!decoded(file, {size.channels, size.rows * size.columns - 1}));
  CHECK(!decoded(file, {size.channels + 1, 1 << 20}));
}

#if SAMEGRAD_HAS_JPEG
Bytes jpeg_of(const Size& size, bool progressive) {
  jpeg_error_mgr errors;
  jpeg_compress_struct info{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* begin = nullptr;
  unsigned long count = 0;
  jpeg_mem_dest(&info, &begin, &count);
  info.image_width = JDIMENSION(size.columns);
  info.image_height = JDIMENSION(size.rows);
  info.input_components = int(size.channels);
  info.in_color_space = size.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  Bytes pixels = pixels_of(size);
  for (std::int64_t row = 0; row < size.rows; ++row) {
    JSAMPROW from = pixels.data() + row * size.columns * size.channels;
    jpeg_write_scanlines(&info, &from, 1);
  }
  jpeg_finish_compress(&info);
  Bytes file(begin, begin + count);
  jpeg_destroy_compress(&info);
  std::free(begin);
  return file;
}

TEST("a jpeg file has its pixels whole or damaged") {
  for (const bool progressive : {false, true}) {
    for (const Size& size : kSizes) {
      const Bytes file = jpeg_of(size, progressive);
      const auto image = decoded(file);
      CHECK(image && has(*image, size));
      check_limits(file, size);
    }
    check_damaged(jpeg_of({9, 12, 3}, progressive), {9, 12, 3});
  }
}
#endif

#if SAMEGRAD_HAS_PNG
Bytes png_of(const Size& size) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = png_uint_32(size.columns);
  image.height = png_uint_32(size.rows);
  image.format = size.channels == 1   ? PNG_FORMAT_GRAY
                 : size.channels == 3 ? PNG_FORMAT_RGB
                                      : PNG_FORMAT_RGBA;
  const Bytes pixels = pixels_of(size);
  png_alloc_size_t count = 0;
  CHECK(png_image_write_to_memory(&image, nullptr, &count, 0, pixels.data(), 0, nullptr));
  Bytes file(count);
  CHECK(png_image_write_to_memory(&image, file.data(), &count, 0, pixels.data(), 0, nullptr));
  return file;
}

TEST("a png file has its pixels whole or damaged") {
  for (const Size& size : kSizes) {
    const Bytes file = png_of(size), pixels = pixels_of(size);
    const auto image = decoded(file);
    CHECK(image && has(*image, size));
    CHECK(std::memcmp(image->raw(), pixels.data(), pixels.size()) == 0);
    check_limits(file, size);
  }
  check_damaged(png_of({9, 12, 3}), {9, 12, 3});
}

TEST("a png file of 16 bits is taken where it may be") {
  const ImageLimits deep{0, 1 << 20, true};
  for (const std::int64_t channels : {1, 2, 3, 4}) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = 5;
    image.height = 7;
    image.format = png_uint_32(PNG_FORMAT_FLAG_LINEAR) |
                   png_uint_32(channels > 2 ? PNG_FORMAT_FLAG_COLOR : 0) |
                   png_uint_32(channels % 2 ? 0 : PNG_FORMAT_FLAG_ALPHA);
    const std::vector<std::uint16_t> pixels(std::size_t(35 * channels), 0xFFFF);
    png_alloc_size_t count = 0;
    CHECK(png_image_write_to_memory(&image, nullptr, &count, 0, pixels.data(), 0, nullptr));
    Bytes file(count);
    CHECK(png_image_write_to_memory(&image, file.data(), &count, 0, pixels.data(), 0, nullptr));
    CHECK(!decoded(file));
    const auto found = decoded(file, deep);
    CHECK(found && found->dtype() == DType::kUInt16);
    CHECK(found->shape() == Shape({7, 5, channels}));
    CHECK(std::memcmp(found->raw(), pixels.data(), pixels.size() * 2) == 0);
    check_damaged(file, {7, 5, channels}, deep);
  }
}
#endif

TEST("functions of the host leave what they do not know") {
  const HostValue array = Array(DType::kInt32, {2, 2, 1}), text = std::string("no such file");
  CHECK(!(*read_file())(array));
  CHECK(!(*read_file())(text));
  CHECK(!(*read_file())(std::string("gs://a/b")));
  CHECK(!(*decode_image(kAny))(array));
  CHECK(!(*decode_image(kAny))(text));
  CHECK(!(*resize_bilinear(2, 2))(array));
  CHECK(!(*resize_bilinear(2, 2))(text));
  CHECK(!(*resize_bilinear(2, 2))(HostValue(Array(DType::kFloat32, {2, 0, 1}))));
  CHECK(!(*resize_bilinear(2, 2))(HostValue(Array(DType::kFloat32, {2, 2}))));
}

}  // namespace
