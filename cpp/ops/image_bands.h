// Bands of image rows: the parts of one convolution or pool that threads may compute by themselves.
// Each result is a chain over the taps of its own window, so a band has the bits of the whole where
// the kernel takes the same path for both.
#pragma once

#include <optional>

#include "base/rounding.h"
#include "kernels/geometry.h"
#include "ops/window.h"

namespace samegrad {

// A convolution or pool of some rows, with the first row that it reads or writes on each side.
struct ImageBand {
  WindowGeometry geometry;
  std::int64_t in_row = 0, out_row = 0;
};

// Even bands of the rows of one image.
class ImageBands {
 public:
  // About `count` bands of the result's rows, with the rows of the images that they read. Only the
  // whole where rows cannot be cut: in three dimensions, or where a band would read no row.
  static ImageBands of_result(const WindowGeometry& g, std::int64_t count);
  // About `count` bands of the images' rows, with the rows of the result that depend on them.
  static ImageBands of_images(const WindowGeometry& g, std::int64_t count);

  std::int64_t count() const { return height_ == 0 ? 1 : divide_up(rows_, height_); }
  ImageBand operator[](std::int64_t i) const;

 private:
  using BandOf = std::optional<ImageBand> (*)(const WindowGeometry&, std::int64_t, std::int64_t);
  ImageBands(const WindowGeometry& g, BandOf band_of, std::int64_t rows, std::int64_t grain,
             std::int64_t count);
  std::optional<ImageBand> band(std::int64_t i) const;

  WindowGeometry whole_;
  BandOf band_of_;
  std::int64_t rows_;
  std::int64_t height_ = 0;  // 0: one band
};

// The bands of each image that all threads have enough of.
std::int64_t bands_per_image(const KernelArgs& args, std::int64_t images);

// Calls body(geometry, first element of the images, first element of the result, scratch memory)
// for all bands of all images, on the threads of the call.
template <class Body>
void for_each_band(const KernelArgs& args, const WindowGeometry& g, const ImageBands& bands,
                   std::int64_t images, std::size_t (*scratch_bytes)(const WindowGeometry&),
                   const Body& body) {
  const std::int64_t count = bands.count();
  std::size_t bytes = 0;
  for (std::int64_t i = 0; scratch_bytes && i < count; ++i) {
    bytes = std::max(bytes, scratch_bytes(bands[i].geometry));
  }
  for_each_image(args, images * count, bytes, [&](std::int64_t i, void* scratch) {
    const auto& [part, in_row, out_row] = bands[i % count];
    const std::int64_t image = i / count;
    body(part, image * g.in_size() + in_row * g.in_width * g.in_channels,
         image * g.out_size() + out_row * g.out_width * g.out_channels, scratch);
  });
}

}  // namespace samegrad
