// Softmax and cross-entropies.
#include <cmath>

#include "ops/cross_entropy.h"
#include "ops/op_run.h"

namespace samegrad::testing {
namespace {

TEST("sparse_softmax_cross_entropy is the negative log-probability of the label") {
  const Array logits = filled(DType::kFloat64, {4, 3}, -5, 5);
  const Array labels = array_of<std::uint8_t>({4}, {0, 2, 1, 2});
  const auto results = OpRun("sparse_softmax_cross_entropy", {{logits, 0}, {labels, 0}}).run();
  for (int row = 0; row < 4; ++row) {
    const double* x = logits.data<double>() + row * 3;
    const double total = std::exp(x[0]) + std::exp(x[1]) + std::exp(x[2]);
    const int label = labels.data<std::uint8_t>()[row];
    CHECK(std::abs(results[0].data<double>()[row] - (std::log(total) - x[label])) < 1e-12);
    CHECK(std::abs(results[1].data<double>()[row * 3] - std::exp(x[0]) / total) < 1e-12);
  }
}

TEST("its gradient is (probabilities - one hot) * cotangent") {
  const Array p = array_of<float>({2, 2}, {0.25f, 0.75f, 0.5f, 0.5f});
  const Array labels = array_of<std::int32_t>({2}, {1, 0});
  const Array ct = array_of<float>({2}, {2, 4});
  const Array y =
      OpRun("sparse_softmax_cross_entropy_grad", {{ct, 0}, {p, 0}, {labels, 0}}).run()[0];
  CHECK_EQ(values_of<float>(y), "0.5 -0.5 -2 2");
}

TEST("a smoothed label shares with the other classes") {
  const Array logits = array_of<double>({1, 3}, {0, 0, 0});
  const Array labels = array_of<std::int64_t>({1}, {1});
  const auto results = OpRun("sparse_softmax_cross_entropy", {{logits, 0}, {labels, 0}},
                             CrossEntropyAttrs{.smoothing = 0.5})
                           .run();
  CHECK(std::abs(results[0].data<double>()[0] - std::log(3.0)) < 1e-15);
  const Array p = array_of<float>({1, 3}, {0.25f, 0.5f, 0.25f});
  const Array ct = array_of<float>({1}, {2});
  const Array y = OpRun("sparse_softmax_cross_entropy_grad", {{ct, 0}, {p, 0}, {labels, 0}},
                        CrossEntropyAttrs{.smoothing = 0.5})
                      .run()[0];
  CHECK_EQ(values_of<float>(y), "0 0 0");
}

TEST("a label outside the classes is named") {
  const Array logits = filled(DType::kFloat32, {2, 3});
  std::string message;
  try {
    OpRun("sparse_softmax_cross_entropy", {{logits, 0}, {array_of<std::int64_t>({2}, {1, 3}), 0}})
        .run();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInvalidArgument);
    message = error.what();
  }
  CHECK_EQ(message,
           "[sparse_softmax_cross_entropy] labels must be class numbers in [0, 3): got 3 at "
           "position (1,) of the batch; check "
           "the labels, or give the logits as many columns as there are classes.");
}

TEST("labels must have the shape of the logits without classes") {
  CHECK_EQ(error_of("sparse_softmax_cross_entropy",
                    {{filled(DType::kFloat32, {2, 3})}, {filled(DType::kInt64, {2, 1})}}),
           "[sparse_softmax_cross_entropy] labels must have the shape of the logits without the "
           "last axis: got logits (2, 3) and labels (2, 1); reshape the labels.");
}

TEST("softmax_cross_entropy with one-hot labels is the sparse one") {
  const Array logits = filled(DType::kFloat64, {2, 3});
  const Array dense = array_of<double>({2, 3}, {0, 1, 0, 0, 0, 1});
  const Array sparse = array_of<std::int64_t>({2}, {1, 2});
  const Array a = OpRun("softmax_cross_entropy", {{logits, 0}, {dense, 0}}).run()[0];
  const Array b = OpRun("sparse_softmax_cross_entropy", {{logits, 0}, {sparse, 0}}).run()[0];
  for (int i = 0; i < 2; ++i) CHECK(std::abs(a.data<double>()[i] - b.data<double>()[i]) < 1e-12);
}

TEST("a softmax over the examples themselves needs all of them") {
  CHECK(OpRun("softmax", {{filled(DType::kFloat32, {5}), 0}}).inferred().locality ==
        Locality::kFullBatch);
}

}  // namespace
}  // namespace samegrad::testing
