#include "ops/image_bands.h"

#include <algorithm>

#include "base/rounding.h"

namespace samegrad {
namespace {

// Rows of a band at least. Narrower ones of large windows would read most of their rows twice.
std::int64_t least_rows(const WindowGeometry& g) {
  return std::min<std::int64_t>(g.window_height, 4);
}

bool has_planes(const WindowGeometry& g) {
  return g.in_depth > 1 || g.out_depth > 1 || g.window_depth > 1;
}

// Rows from the first to the last tap of a window.
std::int64_t reach(const WindowGeometry& g) {
  return (g.window_height - 1) * g.dilation_height;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return a >= 0 ? divide_up(a, b) : -(-a / b);
}
std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -divide_up(-a, b);
}

// Rows [begin, end) of the result.
std::optional<ImageBand> band_of_result(const WindowGeometry& g, std::int64_t begin,
                                        std::int64_t end) {
  const std::int64_t first = begin * g.stride_height - g.pad_top;
  const std::int64_t last = (end - 1) * g.stride_height - g.pad_top + reach(g);
  const std::int64_t from = std::max<std::int64_t>(first, 0);
  const std::int64_t to = std::min(last + 1, g.in_height);
  if (from >= to) return {};
  ImageBand band{g, from, begin};
  band.geometry.in_height = to - from;
  band.geometry.out_height = end - begin;
  band.geometry.pad_top = from - first;
  return band;
}

// Rows [begin, end) of the images.
std::optional<ImageBand> band_of_images(const WindowGeometry& g, std::int64_t begin,
                                        std::int64_t end) {
  const std::int64_t first = ceil_div(begin + g.pad_top - reach(g), g.stride_height);
  const std::int64_t last = floor_div(end - 1 + g.pad_top, g.stride_height);
  const std::int64_t from = std::max<std::int64_t>(first, 0);
  const std::int64_t to = std::min(last + 1, g.out_height);
  const std::int64_t pad = g.pad_top + begin - from * g.stride_height;
  if (from >= to || pad < 0) return {};
  ImageBand band{g, begin, from};
  band.geometry.in_height = end - begin;
  band.geometry.out_height = to - from;
  band.geometry.pad_top = pad;
  return band;
}

}  // namespace

// Bands begin at multiples of the grain.
ImageBands::ImageBands(const WindowGeometry& g, BandOf band_of, std::int64_t rows,
                       std::int64_t grain, std::int64_t count)
    : whole_(g), band_of_(band_of), rows_(rows) {
  const std::int64_t most = std::min(count, rows / std::max(least_rows(g), grain));
  if (most < 2 || has_planes(g)) return;
  height_ = ceil_div(ceil_div(rows, most), grain) * grain;
  for (std::int64_t i = 0; height_ > 0 && i < this->count(); ++i) {
    if (!band(i)) height_ = 0;
  }
}

ImageBands ImageBands::of_result(const WindowGeometry& g, std::int64_t count) {
  return {g, band_of_result, g.out_height, 1, count};
}

ImageBands ImageBands::of_images(const WindowGeometry& g, std::int64_t count) {
  return {g, band_of_images, g.in_height, g.stride_height, count};
}

std::optional<ImageBand> ImageBands::band(std::int64_t i) const {
  return band_of_(whole_, i * height_, std::min((i + 1) * height_, rows_));
}

ImageBand ImageBands::operator[](std::int64_t i) const {
  return height_ == 0 ? ImageBand{whole_} : *band(i);
}

std::int64_t bands_per_image(const KernelArgs& args, std::int64_t images) {
  if (!args.parallel || args.parallel->threads() == 1 || images == 0) return 1;
  return divide_up(thresholds().parts_per_thread * args.parallel->threads(), images);
}

}  // namespace samegrad
