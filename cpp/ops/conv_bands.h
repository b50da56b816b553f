// Bands of image rows: the parts of one convolution that threads may compute by themselves. Each
// result is a chain over the taps of its own window, so a band has the bits of the whole.
#pragma once

#include <optional>

#include "kernels/geometry.h"

namespace samegrad {

// A convolution of some rows, with the first row that it reads or writes on each side.
struct ConvBand {
  WindowGeometry geometry;
  std::int64_t in_row = 0, out_row = 0;
};

// Even bands of the rows of one image.
class ConvBands {
 public:
  // About `count` bands of the result's rows, with the rows of the images that they read. Only the
  // whole where rows cannot be cut: in three dimensions, or where a band would read no row.
  static ConvBands of_result(const WindowGeometry& g, std::int64_t count);
  // The same of the images' rows, with the rows of the result that depend on them.
  static ConvBands of_images(const WindowGeometry& g, std::int64_t count);

  std::int64_t count() const { return height_ == 0 ? 1 : (rows_ + height_ - 1) / height_; }
  ConvBand operator[](std::int64_t i) const;

 private:
  using BandOf = std::optional<ConvBand> (*)(const WindowGeometry&, std::int64_t, std::int64_t);
  ConvBands(const WindowGeometry& g, BandOf band_of, std::int64_t rows, std::int64_t grain,
            std::int64_t count);
  std::optional<ConvBand> band(std::int64_t i) const;

  WindowGeometry whole_;
  BandOf band_of_;
  std::int64_t rows_;
  std::int64_t height_ = 0;  // 0: one band
};

}  // namespace samegrad
