#include "data/resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/float_environment.h"

namespace samegrad {
namespace {

// The old places around the centre of a new one, and the share of the one behind.
struct Interpolation {
  std::int64_t before, behind;
  float share;
};

std::vector<Interpolation> between(std::int64_t old, std::int64_t fresh) {
  std::vector<Interpolation> found(static_cast<std::size_t>(fresh));
  const double step = double(old) / double(fresh);
  for (std::int64_t i = 0; i < fresh; ++i) {
    const double place = (double(i) + 0.5) * step - 0.5, before = std::floor(place);
    found[std::size_t(i)] = {std::max(std::int64_t(before), std::int64_t(0)),
                             std::min(std::int64_t(std::ceil(place)), old - 1),
                             float(place - before)};
  }
  return found;
}

struct ImageSize {
  std::int64_t rows, columns, channels;
};

// The number of channels is known at compile time for grey images and colours.
template <int kChannels, class T>
void resize_columns(const T* from, const std::vector<Interpolation>& columns, std::int64_t channels,
                    float* to) {
  const std::int64_t count = kChannels > 0 ? kChannels : channels;
  for (const Interpolation& column : columns) {
    const T* low = from + column.before * count;
    const T* high = from + column.behind * count;
    for (std::int64_t c = 0; c < count; ++c) {
      const auto a = float(low[c]), b = float(high[c]);
      to[c] = a + (b - a) * column.share;
    }
    to += count;
  }
}

// One row at its new columns.
template <class T>
void resize_row(const T* from, std::int64_t old_columns, const std::vector<Interpolation>& columns,
                std::int64_t channels, float* to) {
  if (old_columns == std::ssize(columns)) {
    std::copy(from, from + old_columns * channels, to);
  } else if (channels == 1) {
    resize_columns<1>(from, columns, channels, to);
  } else if (channels == 3) {
    resize_columns<3>(from, columns, channels, to);
  } else {
    resize_columns<0>(from, columns, channels, to);
  }
}

// The last two rows at their new columns: neighbours of one new row are often those of the next.
template <class T>
class ResizedLines {
 public:
  ResizedLines(const T* image, ImageSize old, const std::vector<Interpolation>& columns)
      : image_(image), old_(old), columns_(columns) {
    for (auto& row : kept_) row.resize(columns.size() * std::size_t(old.channels));
  }
  const float* operator[](std::int64_t row) {
    const std::size_t slot = std::size_t(row % 2);
    if (numbers_[slot] != row) {
      resize_row(image_ + row * old_.columns * old_.channels, old_.columns, columns_, old_.channels,
                 kept_[slot].data());
      numbers_[slot] = row;
    }
    return kept_[slot].data();
  }

 private:
  const T* image_;
  ImageSize old_;
  const std::vector<Interpolation>& columns_;
  std::vector<float> kept_[2];
  std::int64_t numbers_[2] = {-1, -1};
};

template <class T>
void resize_image(const T* image, ImageSize old, const std::vector<Interpolation>& rows,
                  const std::vector<Interpolation>& columns, float* to) {
  const std::int64_t width = std::ssize(columns) * old.channels;
  ResizedLines<T> at(image, old, columns);
  const bool same_rows = old.rows == std::ssize(rows);
  for (std::int64_t i = 0; i < std::ssize(rows); ++i, to += width) {
    const Interpolation& row = rows[std::size_t(i)];
    if (same_rows) {
      std::copy_n(at[i], width, to);
      continue;
    }
    // Neighbours differ by one at most, so that each has its slot.
    const float* low = at[row.before];
    const float* high = at[row.behind];
    for (std::int64_t j = 0; j < width; ++j) to[j] = low[j] + (high[j] - low[j]) * row.share;
  }
}

template <class T>
void resize_all(const Array& images, ImageSize old, std::int64_t rows, std::int64_t columns,
                float* to) {
  const auto at_rows = between(old.rows, rows), at_columns = between(old.columns, columns);
  const std::int64_t size = old.rows * old.columns * old.channels;
  const T* from = images.data<T>();
  const std::int64_t count = size > 0 ? images.size() / size : 0;
  for (std::int64_t n = 0; n < count; ++n) {
    resize_image(from + n * size, old, at_rows, at_columns, to);
    to += rows * columns * old.channels;
  }
}

}  // namespace

bool has_images(const Array& array) {
  const bool known = array.dtype() == DType::kUInt8 || array.dtype() == DType::kFloat32;
  return known && array.shape().rank() >= 3;
}

Array resized_bilinear(const Array& images, std::int64_t rows, std::int64_t columns) {
  const FloatEnvironment environment;
  const Shape& shape = images.shape();
  const int axis = shape.rank() - 3;
  const ImageSize old{shape[axis], shape[axis + 1], shape[axis + 2]};
  Shape fresh = shape;
  fresh[axis] = rows;
  fresh[axis + 1] = columns;
  Array result(DType::kFloat32, fresh);
  if (images.dtype() == DType::kUInt8) {
    resize_all<std::uint8_t>(images, old, rows, columns, result.data<float>());
  } else {
    resize_all<float>(images, old, rows, columns, result.data<float>());
  }
  return result;
}

}  // namespace samegrad
