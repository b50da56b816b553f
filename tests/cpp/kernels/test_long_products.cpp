// Contractions that are longer than one chain.
#include "kernels/products.h"

namespace samegrad {
namespace {

// A convolution whose patches and whose output pixels are more than a chain has.
const WindowGeometry kLong{70, 66, 130, 68, 64, 6, 3, 11, 1, 1, 0, 5};

TEST("long contractions of a convolution are cut into chains, joined by halving") {
  for_each_kernel([](const KernelTable& table, const ProductKernels& p, auto zero) {
    using T = decltype(zero);
    const Chain chain(table);
    const WindowGeometry& g = kLong;
    const Block<T> x(g.in_size()), filter(g.patch_size() * g.out_channels), dy(g.out_size());
    Block<T> y(g.out_size()), dfilter = filled<T>(filter.size(), 1);
    run_conv2d(p, g, x, filter, {}, y);
    Scratch scratch(p.conv2d_filter_grad_scratch_bytes(g, whole_filter(g)));
    p.conv2d_filter_grad(g, x.data(), dy.data(), whole_filter(g), dfilter.data(), true,
                         scratch.data());
    for (int probe = 0; probe < 200; ++probe) {
      const std::int64_t o = any_of(0, g.out_pixels() - 1), j = any_of(0, g.out_channels - 1);
      const std::int64_t tap = any_of(0, g.patch_size() - 1);
      std::vector<std::pair<T, T>> forward, backward;
      for (std::int64_t t = 0; t < g.patch_size(); ++t) {
        const std::int64_t row = o / g.out_width + t / g.in_channels / g.window_width;
        const std::int64_t column = o % g.out_width - 5 + t / g.in_channels % g.window_width;
        if (column < 0 || column >= g.in_width) continue;
        const std::int64_t at = (row * g.in_width + column) * g.in_channels + t % g.in_channels;
        forward.emplace_back(x[at], filter[t * g.out_channels + j]);
      }
      for (std::int64_t i = 0; i < g.out_pixels(); ++i) {
        const std::int64_t row = i / g.out_width + tap / g.in_channels / g.window_width;
        const std::int64_t column = i % g.out_width - 5 + tap / g.in_channels % g.window_width;
        if (column < 0 || column >= g.in_width) continue;
        const std::int64_t at = (row * g.in_width + column) * g.in_channels + tap % g.in_channels;
        backward.emplace_back(x[at], dy[i * g.out_channels + j]);
      }
      const auto of = [](const auto& pairs) {
        return [&](std::int64_t i) { return pairs[std::size_t(i)]; };
      };
      const auto count = [](const auto& pairs) { return static_cast<std::int64_t>(pairs.size()); };
      CHECK_EQ(y[o * g.out_channels + j], chain.contract<T>(count(forward), of(forward)));
      CHECK_EQ(dfilter[tap * g.out_channels + j],
               chain.contract<T>(count(backward), of(backward), T(1)));
    }
  });
}

TEST("long contractions of conv2d_input_grad are cut into chains, joined by halving") {
  for_each_kernel([](const KernelTable& table, const ProductKernels& p, auto zero) {
    using T = decltype(zero);
    const Chain chain(table);
    const WindowGeometry g{9, 8, 5, 9, 8, 1000, 3, 3, 1, 1, 1, 1};
    const Block<T> dy(g.out_size()), filter(g.patch_size() * g.out_channels);
    Block<T> dx(g.in_size());
    Scratch form(p.conv2d_input_grad_packed_bytes(g));
    p.conv2d_input_grad_pack(g, filter.data(), 0, g.group_in(), form.data());
    p.conv2d_input_grad(g, dy.data(), form.data(), dx.data(), nullptr);
    for (std::int64_t i = 0; i < g.in_size(); ++i) {
      std::vector<std::int64_t> output(9, -1);
      for_each_meeting(g, [&](std::int64_t in, std::int64_t o, std::int64_t tap) {
        if (in == i / g.in_channels) output[static_cast<std::size_t>(tap)] = o;
      });
      std::vector<std::pair<T, T>> pairs;
      for (std::int64_t tap = 0; tap < 9; ++tap) {
        const std::int64_t o = output[static_cast<std::size_t>(tap)];
        for (std::int64_t j = 0; o >= 0 && j < g.out_channels; ++j) {
          const std::int64_t weight = (tap * g.in_channels + i % g.in_channels) * g.out_channels;
          pairs.emplace_back(dy[o * g.out_channels + j], filter[weight + j]);
        }
      }
      CHECK_EQ(dx[i], chain.contract<T>(static_cast<std::int64_t>(pairs.size()), [&](auto c) {
        return pairs[static_cast<std::size_t>(c)];
      }));
    }
  });
}

}  // namespace
}  // namespace samegrad

CHECK_MAIN
