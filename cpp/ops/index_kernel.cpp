#include "ops/index_kernel.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/prefetch.h"
#include "ops/attributes.h"

namespace samegrad {
namespace {

int axis_of(const KernelArgs& args, const Shape& shape) {
  return axis_along(args.attrs, shape);
}

// Rows [begin, end) of the result: params[outer][size][bytes] at indices[count].
template <class I>
void gather(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const View& params = args.in[0];
  const int axis = axis_of(args, params.shape);
  const std::int64_t size = params.shape[axis];
  const std::int64_t bytes =
      params.shape.size(axis + 1, params.shape.rank()) * std::int64_t(size_of(params.dtype));
  constexpr std::int64_t kAhead = 8;
  const std::int64_t count = args.in[1].size();
  const I* indices = args.in[1].as<I>();
  char* y = args.out[0].as<char>() + begin * bytes;
  for (std::int64_t row = begin; row < end;) {
    const std::int64_t o = row / count, first = row - o * count;
    const std::int64_t last = std::min(count, first + end - row);
    const auto* x = params.as<std::byte>() + o * size * bytes;
    for (std::int64_t i = first; i < last; ++i, y += bytes) {
      if (i + kAhead < last) {
        const auto later = std::int64_t(indices[i + kAhead]);
        // Rows are anywhere in a table, where no processor looks for them.
        if (later >= 0 && later < size) prefetch_bytes(x + later * bytes, bytes, 1 << 10);
      }
      const std::int64_t index = index_at<I>("gather", args, args.in[1], i, size);
      if (bytes) std::memcpy(y, x + index * bytes, std::size_t(bytes));
    }
    row += last - first;
  }
}

template <class T, class I>
void one_hot(const I* indices, T on, T off, T* y, std::int64_t rows, std::int64_t depth) {
  std::fill_n(y, rows * depth, off);
  for (std::int64_t i = 0; i < rows; ++i, y += depth) {
    const auto index = std::int64_t(indices[i]);
    if (index >= 0 && index < depth) y[index] = on;
  }
}

// The lines of x along an axis: calls f(position among indices, element of x) for the positions
// [begin, end).
template <class I, class F>
void along_axis(std::string_view op_name, const KernelArgs& args, const Shape& x,
                std::int64_t begin, std::int64_t end, const F& f) {
  const int axis = axis_of(args, x);
  const Shape& shape = args.in[1].shape;
  const std::int64_t inner = shape.size(axis + 1, shape.rank()), line = shape[axis] * inner;
  const std::int64_t size = x[axis];
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t o = at / line, first = at % inner;
    const std::int64_t some = std::min(inner - first, end - at);
    for (std::int64_t i = first; i < first + some; ++i, ++at) {
      f(at, (o * size + index_at<I>(op_name, args, args.in[1], at, size)) * inner + i);
    }
  }
}

template <class F>
void along_axis_of_any(std::string_view op_name, const KernelArgs& args, const Shape& x,
                       std::int64_t begin, std::int64_t end, const F& f) {
  visit<kIndices>(op_name, args.in[1].dtype,
                  [&]<class I>() { along_axis<I>(op_name, args, x, begin, end, f); });
}

}  // namespace

void fail_index(std::string_view op_name, const KernelArgs& args, const View& indices,
                std::int64_t value, std::int64_t flat, std::int64_t size) {
  fail(ErrorKind::kInvalidArgument, op_name, "indices must lie in [0, ", size, "): got ", value,
       " at ", place_of(args, indices, flat), "; check the data, or clip the indices first.");
}

std::int64_t rows_of_gather(const CostArgs& args) {
  const Shape& params = args.in[0].shape;
  return params.size(0, axis_along(args.attrs, params)) * args.in[1].size();
}

void run_gather(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  visit<kIndices>("gather", args.in[1].dtype, [&]<class I>() { gather<I>(args, begin, end); });
}

std::int64_t rows_of_one_hot(const CostArgs& args) {
  return args.in[0].size();
}

void one_hot_rows(DType index, const void* indices, DType dtype, const void* on, const void* off,
                  void* y, std::int64_t rows, std::int64_t depth) {
  visit<kIntegers>("one_hot", index, [&]<class I>() {
    visit(dtype, [&]<class T>() {
      using B = BitsOf<T>;
      one_hot(static_cast<const I*>(indices), *static_cast<const B*>(on),
              *static_cast<const B*>(off), static_cast<B*>(y), rows, depth);
    });
  });
}

void run_one_hot(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const auto& attrs = args.attrs.as<OneHotAttrs>();
  const View &x = args.in[0], &y = args.out[0];
  const std::int64_t depth = y.shape[y.shape.rank() - 1];
  const auto first = [&](const View& view, std::int64_t element) {
    return view.as<std::byte>() + element * std::int64_t(size_of(view.dtype));
  };
  visit(y.dtype, [&]<class T>() {
    const T on = attrs.on.as<T>(), off = attrs.off.as<T>();
    one_hot_rows(x.dtype, first(x, begin), y.dtype, &on, &off, first(y, begin * depth), end - begin,
                 depth);
  });
}

void run_take_along(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const View& x = args.in[0];
  char* y = args.out[0].as<char>();
  const auto item = std::int64_t(size_of(x.dtype));
  along_axis_of_any("take_along_axis", args, x.shape, begin, end,
                    [&](std::int64_t to, std::int64_t from) {
                      std::memcpy(y + to * item, x.as<char>() + from * item, std::size_t(item));
                    });
}

std::int64_t outer_of_take_along(const CostArgs& args) {
  const Shape& x = args.out[0].shape;
  return x.size(0, axis_along(args.attrs, x));
}

// Computes positions [begin, end) of the axes before the indexed one.
void run_take_along_grad(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const View& y = args.out[0];
  const int axis = axis_of(args, y.shape), rank = y.shape.rank();
  const std::int64_t size = y.shape.size(axis, rank);
  const std::int64_t places = args.in[1].shape.size(axis, rank);
  visit<kNumbers & kComputed>("take_along_axis_grad", y.dtype, [&]<class T>() {
    std::fill(y.as<T>() + begin * size, y.as<T>() + end * size, T(0));
    along_axis_of_any("take_along_axis_grad", args, y.shape, begin * places, end * places,
                      [&](std::int64_t from, std::int64_t to) {
                        y.as<T>()[to] = T(y.as<T>()[to] + args.in[0].as<T>()[from]);
                      });
  });
}

}  // namespace samegrad
