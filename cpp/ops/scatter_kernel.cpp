#include "ops/scatter_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/dtype.h"
#include "ops/index_kernel.h"
#include "ops/scatter.h"

namespace samegrad {
namespace {

// Operand 1 as indices below `size`.
template <class I>
struct Indices {
  const char* op_name;
  const KernelArgs& args;
  std::int64_t size;

  std::int64_t operator[](std::int64_t flat) const {
    return index_at<I>(op_name, args, args.in[1], flat, size);
  }
};

template <class F>
void with_indices(const char* op_name, const KernelArgs& args, std::int64_t size, const F& f) {
  visit<kIndices>(op_name, args.in[1].dtype, [&]<class I>() {
    f(Indices<I>{op_name, args, size});
  });
}

template <class I>
void ravel(const KernelArgs& args) {
  const auto& attrs = args.attrs.as<RavelAttrs>();
  const View &indices = args.in[0], &like = args.in[1];
  const std::int64_t parts = indices.shape[indices.shape.rank() - 1];
  const int first = int(attrs.batch_dims);
  const std::int64_t behind = like.shape.size(first, first + int(parts));
  std::int64_t* y = args.out[0].as<std::int64_t>();
  for (std::int64_t row = 0; row < args.out[0].size(); ++row) {
    std::int64_t place = 0;
    for (std::int64_t k = 0; k < parts; ++k) {
      const std::int64_t at = row * parts + k, size = like.shape[first + int(k)];
      if (attrs.absent && indices.as<I>()[at] < 0) {
        place = behind;
        break;
      }
      place = place * size + index_at<I>("ravel_index", args, indices, at, size);
    }
    y[row] = place;
  }
}

// x[batch][size][width] and its elements at indices[batch][count].
struct BatchSizes {
  std::int64_t batch, size, width, count;

  BatchSizes(const KernelArgs& args, const Shape& x) {
    const int dims = int(args.attrs.as<BatchIndexAttrs>().batch_dims);
    const Shape& indices = args.in[1].shape;
    batch = x.size(0, dims);
    size = x[dims];
    width = x.size(dims + 1, x.rank());
    count = indices.size(dims, indices.rank());
  }
};

// y[size][width] of values[count][width] at indices[count].
struct Segments {
  std::int64_t size, width, count;

  explicit Segments(const KernelArgs& args)
      : size(args.out[0].shape[0]),
        width(args.out[0].shape.size(1, args.out[0].shape.rank())),
        count(args.in[1].size()) {}
};

template <class T>
T lowest() {
  using Limits = std::numeric_limits<T>;
  return Limits::has_infinity ? T(-Limits::infinity()) : Limits::lowest();
}
template <class T>
T highest() {
  using Limits = std::numeric_limits<T>;
  return Limits::has_infinity ? Limits::infinity() : Limits::max();
}

template <class T>
bool is_nan(T x) {
  return is_floating(kDTypeOf<T>) && std::isnan(double(x));
}

// NaN wins, as in reduce_max.
template <class T, bool kMax>
void segment_extreme(const KernelArgs& args, const char* op_name) {
  const Segments s(args);
  T* y = args.out[0].as<T>();
  std::fill_n(y, s.size * s.width, kMax ? lowest<T>() : highest<T>());
  with_indices(op_name, args, s.size, [&](const auto& indices) {
    const T* x = args.in[0].as<T>();
    for (std::int64_t i = 0; i < s.count; ++i, x += s.width) {
      T* best = y + indices[i] * s.width;
      for (std::int64_t j = 0; j < s.width; ++j) {
        if (is_nan(x[j]) || (kMax ? x[j] > best[j] : x[j] < best[j])) best[j] = x[j];
      }
    }
  });
}

}  // namespace

void ravel_index_kernel(const KernelArgs& args) {
  visit<kIndices>("ravel_index", args.in[0].dtype, [&]<class I>() { ravel<I>(args); });
}

std::int64_t rows_of_batch_gather(const CostArgs& args) {
  return args.in[1].size();
}

void run_batch_gather(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const View& x = args.in[0];
  const BatchSizes s(args, x.shape);
  const std::int64_t bytes = s.width * std::int64_t(size_of(x.dtype));
  char* y = args.out[0].as<char>() + begin * bytes;
  with_indices("batch_gather", args, s.size, [&](const auto& indices) {
    for (std::int64_t i = begin; i < end; ++i, y += bytes) {
      const std::int64_t row = i / s.count * s.size + indices[i];
      if (bytes) std::memcpy(y, x.as<char>() + row * bytes, std::size_t(bytes));
    }
  });
}

void batch_segment_sum_kernel(const KernelArgs& args) {
  const View& y = args.out[0];
  const BatchSizes s(args, y.shape);
  visit<kNumbers & kComputed>("batch_segment_sum", y.dtype, [&]<class T>() {
    static_assert(kSumsInPlace<T>);
    std::fill_n(y.as<T>(), y.size(), T(0));
    const T* x = args.in[0].as<T>();
    with_indices("batch_segment_sum", args, s.size, [&](const auto& indices) {
      for (std::int64_t i = 0; i < s.batch * s.count; ++i, x += s.width) {
        T* sum = y.as<T>() + (i / s.count * s.size + indices[i]) * s.width;
        for (std::int64_t j = 0; j < s.width; ++j) sum[j] = T(sum[j] + x[j]);
      }
    });
  });
}

void segment_max_kernel(const KernelArgs& args) {
  visit<kNumbers & kComputed>("segment_max", args.out[0].dtype,
                              [&]<class T>() { segment_extreme<T, true>(args, "segment_max"); });
}

void segment_min_kernel(const KernelArgs& args) {
  visit<kNumbers & kComputed>("segment_min", args.out[0].dtype,
                              [&]<class T>() { segment_extreme<T, false>(args, "segment_min"); });
}

void segment_last_kernel(const KernelArgs& args) {
  const View& y = args.out[0];
  std::fill_n(y.as<std::int64_t>(), y.size(), -1);
  const auto mark = [&]<class I>() {
    for (std::int64_t i = 0; i < args.in[0].size(); ++i) {
      y.as<std::int64_t>()[index_at<I>("segment_last", args, args.in[0], i, y.size())] = i;
    }
  };
  visit<kIndices>("segment_last", args.in[0].dtype, mark);
}

}  // namespace samegrad
