#include "data/decoded_image.h"

#if SAMEGRAD_HAS_JPEG

#include <csetjmp>
#include <cstdio>
// After <cstdio>, which it takes for granted.
#include <jpeglib.h>

namespace samegrad {
namespace {

// libjpeg leaves by a long jump, which passes destructors over: what it works on lives in here, and
// the functions below that can be left hold nothing of their own.
class JpegFile {
 public:
  explicit JpegFile(std::span<const std::uint8_t> file) : file_(file) {
    info_.err = jpeg_std_error(&errors_.manager);
    errors_.manager.error_exit = leave;
    errors_.manager.emit_message = [](j_common_ptr info, int level) {
      if (level < 0) leave(info);  // a warning: the pixels are guessed
    };
  }
  JpegFile(const JpegFile&) = delete;
  JpegFile& operator=(const JpegFile&) = delete;
  ~JpegFile() { jpeg_destroy_decompress(&info_); }

  // Grey of colours is their luma, as the file has it.
  bool open(int channels) {
    if (setjmp(errors_.place) != 0) return false;
    jpeg_create_decompress(&info_);
    jpeg_mem_src(&info_, file_.data(), static_cast<unsigned long>(file_.size()));
    jpeg_read_header(&info_, TRUE);
    if (info_.data_precision != 8) return false;
    if (info_.num_components != 1 && info_.num_components != 3) return false;
    channels_ = channels == 0 ? info_.num_components : channels;
    if (channels_ != 1 && channels_ != 3) return false;
    info_.out_color_space = channels_ == 1 ? JCS_GRAYSCALE : JCS_RGB;
    return true;
  }

  std::int64_t rows() const { return info_.image_height; }
  std::int64_t columns() const { return info_.image_width; }
  std::int64_t channels() const { return channels_; }

  bool read(std::uint8_t* to) {
    if (setjmp(errors_.place) != 0) return false;
    jpeg_start_decompress(&info_);
    const auto width = std::size_t(columns() * channels());
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW row = to + info_.output_scanline * width;
      jpeg_read_scanlines(&info_, &row, 1);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

 private:
  struct Errors {
    jpeg_error_mgr manager;  // first: libjpeg knows its address only
    std::jmp_buf place;
  };
  [[noreturn]] static void leave(j_common_ptr info) {
    std::longjmp(reinterpret_cast<Errors*>(info->err)->place, 1);
  }

  std::span<const std::uint8_t> file_;
  jpeg_decompress_struct info_{};
  Errors errors_{};
  int channels_ = 0;
};

}  // namespace

std::optional<Array> decoded_jpeg(std::span<const std::uint8_t> file, const ImageLimits& limits) {
  JpegFile image(file);
  if (!image.open(int(limits.channels))) return std::nullopt;
  const std::int64_t pixels = image.rows() * image.columns();
  if (pixels == 0 || pixels > limits.most_pixels) return std::nullopt;
  Array result(DType::kUInt8, {image.rows(), image.columns(), image.channels()});
  if (!image.read(reinterpret_cast<std::uint8_t*>(result.raw()))) return std::nullopt;
  return result;
}

#define SAMEGRAD_TEXT_OF(number) #number
#define SAMEGRAD_TEXT(number) SAMEGRAD_TEXT_OF(number)

const char* jpeg_library() {
#ifdef LIBJPEG_TURBO_VERSION
  return "libjpeg-turbo " SAMEGRAD_TEXT(LIBJPEG_TURBO_VERSION);
#else
  return "libjpeg " SAMEGRAD_TEXT(JPEG_LIB_VERSION);
#endif
}

}  // namespace samegrad

#else

namespace samegrad {

std::optional<Array> decoded_jpeg(std::span<const std::uint8_t>, const ImageLimits&) {
  return std::nullopt;
}

const char* jpeg_library() {
  return "";
}

}  // namespace samegrad

#endif
