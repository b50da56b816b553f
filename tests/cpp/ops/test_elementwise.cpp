// Broadcasting kernels against the definition, element by element.
#include "ops/op_run.h"

namespace samegrad::testing {
namespace {

// The element that position `at` of a broadcast result reads.
std::int64_t source(const Shape& shape, const Shape& result, std::int64_t at) {
  std::int64_t index = 0, stride = 1;
  for (int axis = 1; axis <= result.rank(); ++axis) {
    const std::int64_t dim = result[result.rank() - axis];
    if (axis <= shape.rank()) {
      const std::int64_t own = shape[shape.rank() - axis];
      index += (own == 1 ? 0 : at % dim) * stride;
      stride *= own;
    }
    at /= dim;
  }
  return index;
}

TEST("sub broadcasts like its definition") {
  const std::vector<std::pair<Shape, Shape>> cases = {{{2, 3}, {2, 3}},
                                                      {{2, 3}, {}},
                                                      {{}, {4}},
                                                      {{}, {}},
                                                      {{4, 3}, {3}},
                                                      {{4, 1}, {3}},
                                                      {{1, 3}, {4, 1}},
                                                      {{2, 1, 4}, {3, 1}},
                                                      {{0, 3}, {3}},
                                                      {{2, 3, 4}, {2, 1, 4}},
                                                      {{2, 3, 4}, {2, 3, 1}},
                                                      {{1, 1, 1}, {1}},
                                                      {{2, 1, 3, 1, 2}, {1, 4, 1, 5, 1}}};
  for (const auto& [left, right] : cases) {
    const Array a = filled(DType::kFloat64, left), b = filled(DType::kFloat64, right, 5, 6);
    const OpRun run("sub", {{a}, {b}});
    const Array y = run.run()[0];
    for (std::int64_t i = 0; i < y.size(); ++i) {
      const double expected = a.data<double>()[source(left, y.shape(), i)] -
                              b.data<double>()[source(right, y.shape(), i)];
      CHECK(y.data<double>()[i] == expected, to_string(left), to_string(right), i);
    }
  }
}

TEST("select broadcasts three operands") {
  const Array condition = array_of<bool>({2, 1}, {true, false});
  const Array a = array_of<float>({3}, {1, 2, 3}), b = array_of<float>({}, {9});
  const Array y = OpRun("select", {{condition}, {a}, {b}}).run()[0];
  CHECK_EQ(values_of<float>(y), "1 2 3 9 9 9");
}

TEST("cast converts and cuts towards zero") {
  const Array x = array_of<float>({4}, {-1.7f, -0.2f, 0.9f, 2.5f});
  CHECK_EQ(
      values_of<std::int32_t>(OpRun("cast", {{x}}, CastAttrs{.dtype = DType::kInt32}).run()[0]),
      "-1 0 0 2");
  CHECK_EQ(values_of<bool>(OpRun("cast", {{x}}, CastAttrs{.dtype = DType::kBool}).run()[0]),
           "1 1 1 1");
}

}  // namespace
}  // namespace samegrad::testing
