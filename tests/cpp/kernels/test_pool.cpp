// Pooling against the plain loops over windows, for many shapes.
#include <cmath>

#include "kernels/variants.h"

namespace samegrad {
namespace {

struct Shape {
  std::int64_t height, width, channels, window, stride;
  bool same;
};

WindowGeometry geometry(const Shape& s) {
  const auto out_size = [&](std::int64_t in) {
    return s.same ? (in + s.stride - 1) / s.stride : (in - s.window) / s.stride + 1;
  };
  const auto pad = [&](std::int64_t in) {
    const std::int64_t needed = (out_size(in) - 1) * s.stride + s.window - in;
    return s.same && needed > 0 ? needed / 2 : 0;
  };
  return {.in_height = s.height,
          .in_width = s.width,
          .in_channels = s.channels,
          .out_height = out_size(s.height),
          .out_width = out_size(s.width),
          .out_channels = s.channels,
          .window_height = s.window,
          .window_width = s.window,
          .stride_height = s.stride,
          .stride_width = s.stride,
          .pad_top = pad(s.height),
          .pad_left = pad(s.width)};
}

const std::vector<Shape> kShapes = {
    {4, 4, 1, 2, 2, false},   {5, 7, 3, 2, 2, false},  {26, 26, 32, 2, 2, false},
    {6, 6, 8, 2, 2, true},    {5, 5, 8, 2, 2, true},   {7, 5, 17, 3, 2, true},
    {6, 7, 5, 3, 1, true},    {8, 8, 33, 3, 3, false}, {5, 5, 40, 5, 5, false},
    {9, 4, 12, 2, 1, false},  {3, 3, 2, 2, 3, true},   {7, 7, 16, 2, 3, false},
    {11, 13, 9, 2, 2, false}, {2, 2, 31, 2, 2, false}, {4, 6, 64, 2, 2, true},
};

// f(output element, input element, tap) in the order of windows, then taps.
template <class F>
void for_each_pair(const WindowGeometry& g, F f) {
  for (std::int64_t pixel = 0; pixel < g.out_pixels(); ++pixel) {
    const std::int64_t top = pixel / g.out_width * g.stride_height - g.pad_top;
    const std::int64_t left = pixel % g.out_width * g.stride_width - g.pad_left;
    for (std::int64_t tap = 0; tap < g.window_height * g.window_width; ++tap) {
      const std::int64_t row = top + tap / g.window_width, column = left + tap % g.window_width;
      if (row < 0 || column < 0 || row >= g.in_height || column >= g.in_width) continue;
      for (std::int64_t c = 0; c < g.in_channels; ++c) {
        const std::int64_t in = (row * g.in_width + column) * g.in_channels + c;
        f(pixel * g.in_channels + c, in, tap);
      }
    }
  }
}

template <class T>
std::vector<T> values(std::int64_t n, std::mt19937& generator) {
  std::vector<T> x(static_cast<std::size_t>(n));
  for (T& value : x) value = static_cast<T>(static_cast<int>(generator() % 19) - 9);
  return x;
}

template <class T>
void check_max(const PoolKernels& kernels, const WindowGeometry& g, std::mt19937& generator) {
  const std::vector<T> x = values<T>(g.in_size(), generator);
  const std::vector<T> dy = values<T>(g.out_size(), generator);
  std::vector<T> y(dy.size()), dx(x.size(), T(7)), expected_dx(x.size());
  std::vector<T> expected(dy.size(), -std::numeric_limits<T>::infinity());
  std::vector<std::uint8_t> index(dy.size(), 99), expected_index(dy.size(), 0);
  kernels.max_pool(g, x.data(), y.data(), index.data());
  for_each_pair(g, [&](std::int64_t out, std::int64_t in, std::int64_t tap) {
    if (x[in] > expected[out]) expected[out] = x[in], expected_index[out] = std::uint8_t(tap);
  });
  CHECK(y == expected, "max of ", g.in_height, "x", g.in_width, "x", g.in_channels);
  CHECK(index == expected_index, "places of ", g.in_height, "x", g.in_width, "x", g.in_channels);
  kernels.max_pool_grad(g, dy.data(), index.data(), dx.data());
  for_each_pair(g, [&](std::int64_t out, std::int64_t in, std::int64_t tap) {
    if (index[out] == tap) expected_dx[in] += dy[out];
  });
  CHECK(dx == expected_dx, "gradient of ", g.in_height, "x", g.in_width, "x", g.in_channels);
}

template <class T>
void check_average(const PoolKernels& kernels, const WindowGeometry& g, std::mt19937& generator) {
  const std::vector<T> x = values<T>(g.in_size(), generator);
  const std::vector<T> dy = values<T>(g.out_size(), generator);
  std::vector<T> y(dy.size()), dx(x.size(), T(7)), sum(dy.size()), count(dy.size());
  std::vector<T> expected_dx(x.size());
  for_each_pair(g, [&](std::int64_t out, std::int64_t in, std::int64_t) {
    sum[out] += x[in];
    count[out] += 1;
  });
  kernels.avg_pool(g, x.data(), y.data());
  for (std::size_t i = 0; i < y.size(); ++i) CHECK_EQ(y[i], sum[i] / count[i]);
  kernels.avg_pool_grad(g, dy.data(), dx.data());
  for_each_pair(g, [&](std::int64_t out, std::int64_t in, std::int64_t) {
    expected_dx[in] += dy[out] / count[out];
  });
  CHECK(dx == expected_dx, "average's gradient");
}

TEST("pooling and its gradients follow the windows in order, for every shape") {
  std::mt19937 generator(31);
  for_each_variant([&](const KernelTable& table) {
    for (const Shape& shape : kShapes) {
      const WindowGeometry g = geometry(shape);
      check_max<float>(table.pool(DType::kFloat32), g, generator);
      check_max<double>(table.pool(DType::kFloat64), g, generator);
      check_average<float>(table.pool(DType::kFloat32), g, generator);
      check_average<double>(table.pool(DType::kFloat64), g, generator);
    }
    CHECK(table.pool.find(DType::kInt32) == nullptr);
  });
}

TEST("the first NaN of a window is its maximum") {
  for_each_variant([](const KernelTable& table) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float x[] = {1, nan, nan, 5};
    float y;
    std::uint8_t index;
    table.pool(DType::kFloat32).max_pool(geometry({2, 2, 1, 2, 2, false}), x, &y, &index);
    CHECK(std::isnan(y));
    CHECK_EQ(int{index}, 1);
  });
}

}  // namespace
}  // namespace samegrad

CHECK_MAIN
