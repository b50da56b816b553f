#include "data/decoded_image.h"

#if SAMEGRAD_HAS_PNG

#include <png.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace samegrad {
namespace {

// A libpng reader, which reports errors by a long jump like the JPEG reader.
class PngFile {
 public:
  explicit PngFile(std::span<const std::uint8_t> file) : rest_(file) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, leave, leave);
    if (png_) info_ = png_create_info_struct(png_);
  }
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;
  ~PngFile() { png_destroy_read_struct(&png_, &info_, nullptr); }

  bool open(bool deep) {
    if (!info_ || setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_option(png_, PNG_SKIP_sRGB_CHECK_PROFILE, PNG_OPTION_ON);  // colours stay as they are
    png_set_read_fn(png_, &rest_, take);
    png_read_info(png_, info_);
    const int kind = png_get_color_type(png_, info_);
    const bool plain = kind == PNG_COLOR_TYPE_GRAY || kind == PNG_COLOR_TYPE_GRAY_ALPHA ||
                       kind == PNG_COLOR_TYPE_RGB || kind == PNG_COLOR_TYPE_RGB_ALPHA;
    const bool is_deep = depth() == 16;
    // Files have the high byte first.
    if (is_deep && std::endian::native == std::endian::little) png_set_swap(png_);
    return plain && (depth() == 8 || (deep && is_deep)) &&
           png_get_interlace_type(png_, info_) == PNG_INTERLACE_NONE &&
           png_get_valid(png_, info_, PNG_INFO_tRNS) == 0;
  }

  std::int64_t rows() const { return png_get_image_height(png_, info_); }
  std::int64_t columns() const { return png_get_image_width(png_, info_); }
  std::int64_t channels() const { return png_get_channels(png_, info_); }
  int depth() const { return png_get_bit_depth(png_, info_); }

  bool read(std::uint8_t* to) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    const std::size_t width = png_get_rowbytes(png_, info_);
    const png_uint_32 count = png_get_image_height(png_, info_);
    for (png_uint_32 row = 0; row < count; ++row) png_read_row(png_, to + row * width, nullptr);
    png_read_end(png_, nullptr);
    return true;
  }

 private:
  using Rest = std::span<const std::uint8_t>;
  [[noreturn]] static void leave(png_structp png, png_const_charp /*why*/) { png_longjmp(png, 1); }
  static void take(png_structp png, png_bytep to, std::size_t size) {
    auto& rest = *static_cast<Rest*>(png_get_io_ptr(png));
    if (size > rest.size()) png_error(png, "the file ends");
    std::memcpy(to, rest.data(), size);
    rest = rest.subspan(size);
  }

  Rest rest_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

std::optional<Array> decoded_png(std::span<const std::uint8_t> file, const ImageLimits& limits) {
  PngFile image(file);
  if (!image.open(limits.deep)) return std::nullopt;
  if (image.rows() * image.columns() > limits.most_pixels) return std::nullopt;
  if (limits.channels != 0 && limits.channels != image.channels()) return std::nullopt;
  const DType dtype = image.depth() == 16 ? DType::kUInt16 : DType::kUInt8;
  Array result(dtype, {image.rows(), image.columns(), image.channels()});
  if (!image.read(reinterpret_cast<std::uint8_t*>(result.raw()))) return std::nullopt;
  return result;
}

const char* png_library() {
  return "libpng " PNG_LIBPNG_VER_STRING;
}

}  // namespace samegrad

#else

namespace samegrad {

std::optional<Array> decoded_png(std::span<const std::uint8_t>, const ImageLimits&) {
  return std::nullopt;
}

const char* png_library() {
  return "";
}

}  // namespace samegrad

#endif
