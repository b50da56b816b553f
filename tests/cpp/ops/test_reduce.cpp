// Reductions: values, the order of the tree, and examples on other axes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/op_run.h"
#include "reduction_spec.h"

namespace samegrad::testing {
namespace {

using Axes = std::vector<std::int64_t>;

Attrs over(Axes axes, bool keepdims = false) {
  return ReduceAttrs{.axes = std::move(axes), .keepdims = keepdims};
}

// The position in the result (keepdims) that element `at` belongs to.
std::int64_t target(const Shape& shape, const Axes& axes, std::int64_t at) {
  std::int64_t index = 0, stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) {
      index += at % shape[axis] * stride;
      stride *= shape[axis];
    }
    at /= shape[axis];
  }
  return index;
}

TEST("reduce_sum and reduce_max agree with their definition over any axes") {
  const Shape shape{2, 3, 4, 5};
  const Array x = filled(DType::kFloat64, shape);
  for (unsigned mask = 0; mask < 16; ++mask) {
    Axes axes;
    for (int axis = 0; axis < 4; ++axis) {
      if (mask >> axis & 1u) axes.push_back(axis);
    }
    const Array sum = OpRun("reduce_sum", {{x}}, over(axes)).run()[0];
    const Array max = OpRun("reduce_max", {{x}}, over(axes, true)).run()[0];
    std::vector<double> sums(std::size_t(sum.size()), 0.0);
    std::vector<double> maxima(sums.size(), -std::numeric_limits<double>::infinity());
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const auto at = std::size_t(target(shape, axes, i));
      sums[at] += x.data<double>()[i];
      maxima[at] = std::max(maxima[at], x.data<double>()[i]);
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
      CHECK(std::abs(sum.data<double>()[i] - sums[i]) < 1e-12, mask, " ", i);
      CHECK(max.data<double>()[i] == maxima[i], mask, " ", i);
    }
  }
}

TEST("a sum over examples is the tree over leaves of four") {
  for (std::int64_t n = 1; n <= 40; ++n) {
    const Array x = filled(DType::kFloat32, {n, 3});
    const Array y = OpRun("reduce_sum", {{x, 0}}, over({0})).run()[0];
    for (int column = 0; column < 3; ++column) {
      const float expected = testing::by_specification(
          0, n, 4, 1,
          [&](std::int64_t first, std::int64_t count) {
            float sum = x.data<float>()[first * 3 + column];
            for (std::int64_t i = 1; i < count; ++i) {
              sum += x.data<float>()[(first + i) * 3 + column];
            }
            return sum;
          },
          [](float left, float right) { return left + right; });
      CHECK(y.data<float>()[column] == expected, n, " ", column);
    }
  }
}

TEST("examples on another axis are summed in the same order") {
  for (const std::int64_t n : {1, 5, 13}) {
    const Array x = filled(DType::kFloat32, {n * 2, 3, 4});
    Array moved(DType::kFloat32, {3, n * 2, 4});
    for (std::int64_t i = 0; i < n * 2; ++i) {
      for (std::int64_t j = 0; j < 3; ++j) {
        std::copy_n(x.data<float>() + (i * 3 + j) * 4, 4,
                    moved.data<float>() + (j * n * 2 + i) * 4);
      }
    }
    const auto same = [&](Axes first, Axes second) {
      const Array a = OpRun("reduce_sum", {{x, 0, 2}}, over(first)).run()[0];
      const Array b = OpRun("reduce_sum", {{moved, 1, 2}}, over(second)).run()[0];
      return std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
    };
    CHECK(same({0}, {1}), n);
    CHECK(same({0, 1}, {0, 1}), n);
    CHECK(same({0, 2}, {1, 2}), n);
    CHECK(same({0, 1, 2}, {0, 1, 2}), n);
  }
}

TEST("one number per example goes down to single examples") {
  const std::vector<float> v = {1e8f, 1, -1e8f, 1, 3};
  const Array y = OpRun("reduce_sum", {{array_of<float>({5}, v), 0}}, over({0})).run()[0];
  CHECK(y.data<float>()[0] == ((v[0] + v[1]) + v[2]) + (v[3] + v[4]));
}

TEST("nothing to reduce gives the neutral element") {
  const Operand empty{Array(DType::kFloat32, {0, 2}), 0};
  CHECK_EQ(values_of<float>(OpRun("reduce_sum", {empty}, over({0})).run()[0]), "0 0");
  CHECK_EQ(values_of<float>(OpRun("reduce_max", {empty}, over({0})).run()[0]), "-inf -inf");
  CHECK_EQ(values_of<float>(OpRun("reduce_prod", {empty}, over({0, 1})).run()[0]), "1");
  const Operand ints{Array(DType::kInt32, {0}), -1};
  CHECK_EQ(OpRun("reduce_min", {ints}, over({0})).run()[0].data<std::int32_t>()[0],
           std::numeric_limits<std::int32_t>::max());
  const Operand bools{Array(DType::kBool, {0}), 0};
  CHECK_EQ(values_of<bool>(OpRun("reduce_all", {bools}, over({0})).run()[0]), "1");
}

TEST("arg_max finds the first largest along any axis") {
  const Array x = array_of<float>({2, 3}, {1, 5, 5, 7, 0, 2});
  CHECK_EQ(values_of<std::int64_t>(OpRun("arg_max", {{x}}, ArgMaxAttrs{.axis = 1}).run()[0]),
           "1 0");
  CHECK_EQ(values_of<std::int64_t>(OpRun("arg_max", {{x}}, ArgMaxAttrs{.axis = 0}).run()[0]),
           "1 0 0");
  CHECK_EQ(values_of<std::int64_t>(OpRun("arg_min", {{x}}, ArgMaxAttrs{.axis = -1}).run()[0]),
           "0 1");
}

}  // namespace
}  // namespace samegrad::testing
