#include "ops/index_kernel.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ops/attributes.h"

namespace samegrad {
namespace {

int axis_of(const KernelArgs& args, const Shape& shape) {
  return axis_along(args.attrs, shape);
}

// Rows lie anywhere in a table, where no processor looks for them.
void prefetch_row(const char* row, std::int64_t bytes) {
  constexpr std::int64_t kLine = 64, kMost = 1 << 10;
  for (std::int64_t at = 0; at < std::min(bytes, kMost); at += kLine) __builtin_prefetch(row + at);
}

template <class I>
void gather(const KernelArgs& args) {
  const View& params = args.in[0];
  const int axis = axis_of(args, params.shape);
  const std::int64_t outer = params.shape.size(0, axis);
  const std::int64_t size = params.shape[axis];
  const std::int64_t bytes =
      params.shape.size(axis + 1, params.shape.rank()) * std::int64_t(size_of(params.dtype));
  constexpr std::int64_t kAhead = 8;
  const std::int64_t count = args.in[1].size();
  const I* indices = args.in[1].as<I>();
  const char* x = params.as<char>();
  char* y = args.out[0].as<char>();
  for (std::int64_t o = 0; o < outer; ++o, x += size * bytes) {
    for (std::int64_t i = 0; i < count; ++i, y += bytes) {
      if (i + kAhead < count) {
        const auto later = std::int64_t(indices[i + kAhead]);
        if (later >= 0 && later < size) prefetch_row(x + later * bytes, bytes);
      }
      const std::int64_t index = index_at<I>("gather", args, args.in[1], i, size);
      if (bytes) std::memcpy(y, x + index * bytes, std::size_t(bytes));
    }
  }
}

template <class T, class I>
void one_hot(const KernelArgs& args, T on, T off) {
  const View& y = args.out[0];
  const std::int64_t depth = y.shape[y.shape.rank() - 1];
  const std::int64_t count = args.in[0].size();
  const I* indices = args.in[0].as<I>();
  std::fill_n(y.as<T>(), count * depth, off);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto index = std::int64_t(indices[i]);
    if (index >= 0 && index < depth) y.as<T>()[i * depth + index] = on;
  }
}

template <class I>
void one_hot_of(const KernelArgs& args) {
  const auto& attrs = args.attrs.as<OneHotAttrs>();
  visit(args.out[0].dtype, [&]<class T>() {
    using B = BitsOf<T>;
    one_hot<B, I>(args, std::bit_cast<B>(attrs.on.as<T>()), std::bit_cast<B>(attrs.off.as<T>()));
  });
}

// The lines of x along an axis: calls f(position among indices, element of x).
template <class I, class F>
void along_axis(std::string_view who, const KernelArgs& args, const Shape& x, const F& f) {
  const int axis = axis_of(args, x);
  const Shape& shape = args.in[1].shape;
  const std::int64_t outer = shape.size(0, axis), inner = shape.size(axis + 1, shape.rank());
  const std::int64_t size = x[axis];
  std::int64_t at = 0;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t k = 0; k < shape[axis]; ++k) {
      for (std::int64_t i = 0; i < inner; ++i, ++at) {
        f(at, (o * size + index_at<I>(who, args, args.in[1], at, size)) * inner + i);
      }
    }
  }
}

template <class F>
void along_axis_of_any(std::string_view who, const KernelArgs& args, const Shape& x, const F& f) {
  visit<kIndices>(who, args.in[1].dtype, [&]<class I>() { along_axis<I>(who, args, x, f); });
}

}  // namespace

void fail_index(std::string_view who, const KernelArgs& args, const View& indices,
                std::int64_t value, std::int64_t flat, std::int64_t size) {
  fail(ErrorKind::kInvalidArgument, who, "indices must lie in [0, ", size, "): got ", value, " at ",
       place_of(args, indices, flat), "; check the data, or clip the indices first.");
}

void gather_kernel(const KernelArgs& args) {
  visit<kIndices>("gather", args.in[1].dtype, [&]<class I>() { gather<I>(args); });
}

void one_hot_kernel(const KernelArgs& args) {
  visit<kIntegers>("one_hot", args.in[0].dtype, [&]<class I>() { one_hot_of<I>(args); });
}

void take_along_kernel(const KernelArgs& args) {
  const View& x = args.in[0];
  const View& y = args.out[0];
  const std::size_t item = size_of(x.dtype);
  along_axis_of_any("take_along_axis", args, x.shape, [&](std::int64_t to, std::int64_t from) {
    std::memcpy(y.as<char>() + to * std::int64_t(item), x.as<char>() + from * std::int64_t(item),
                item);
  });
}

void take_along_grad_kernel(const KernelArgs& args) {
  const View& y = args.out[0];
  visit<kNumbers & kComputed>("take_along_axis_grad", y.dtype, [&]<class T>() {
    std::fill_n(y.as<T>(), y.size(), T(0));
    along_axis_of_any("take_along_axis_grad", args, y.shape,
                      [&](std::int64_t from, std::int64_t to) {
                        y.as<T>()[to] = T(y.as<T>()[to] + args.in[0].as<T>()[from]);
                      });
  });
}

}  // namespace samegrad
