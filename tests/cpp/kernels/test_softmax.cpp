// Softmax and its relatives: right, and a row's bits are its own.
#include <cmath>

#include "kernels/variants.h"

namespace samegrad {
namespace {

template <class T>
std::vector<T> logits(std::int64_t n, std::mt19937& generator) {
  std::uniform_real_distribution<double> real(-20, 20);
  std::vector<T> x(static_cast<std::size_t>(n));
  for (T& value : x) value = static_cast<T>(real(generator));
  return x;
}

template <class T>
long double log_sum_exp(const T* x, std::int64_t n) {
  long double largest = x[0], sum = 0;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max<long double>(largest, x[i]);
  for (std::int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - largest);
  return largest + std::log(sum);
}

template <class T>
bool close(T y, long double exact) {
  const long double scale = std::fabs(exact) + 1e-30L;
  return std::fabs(y - exact) <= 64 * std::numeric_limits<T>::epsilon() * scale;
}

template <class T>
void check_rows(const KernelTable& table, std::int64_t n, std::mt19937& generator) {
  constexpr std::int64_t kRows = 6;
  const SoftmaxKernels& kernels = table.softmax(kDTypeOf<T>);
  const std::vector<T> x = logits<T>(kRows * n, generator);
  std::vector<T> y(x.size()), logs(x.size()), p(x.size()), one(x.size()), loss(kRows);
  std::vector<std::int64_t> labels;
  for (std::int64_t r = 0; r < kRows; ++r) labels.push_back(static_cast<std::int64_t>(r % n));
  kernels.softmax(x.data(), y.data(), kRows, n);
  kernels.log_softmax(x.data(), logs.data(), kRows, n);
  kernels.sparse_cross_entropy(x.data(), labels.data(), loss.data(), p.data(), kRows, n);
  const std::size_t row_bytes = static_cast<std::size_t>(n) * sizeof(T);
  for (std::int64_t r = 0; r < kRows; ++r) {
    const T* row = x.data() + r * n;
    const long double total = log_sum_exp(row, n);
    for (std::int64_t i = 0; i < n; ++i) {
      CHECK(close(y[r * n + i], std::exp(row[i] - total)), "softmax n=", n);
      CHECK(std::fabs(logs[r * n + i] - (row[i] - total)) <
            100 * std::numeric_limits<T>::epsilon());
    }
    CHECK(std::fabs(loss[r] - (total - row[labels[r]])) < 100 * std::numeric_limits<T>::epsilon());
    kernels.softmax(row, one.data(), 1, n);
    CHECK(std::memcmp(one.data(), y.data() + r * n, row_bytes) == 0, "a row by itself, n=", n);
    CHECK(std::memcmp(one.data(), p.data() + r * n, row_bytes) == 0, "cross entropy's, n=", n);
    kernels.log_softmax(row, one.data(), 1, n);
    CHECK(std::memcmp(one.data(), logs.data() + r * n, row_bytes) == 0, "log, n=", n);
  }
  std::vector<T> in_place = x;
  kernels.softmax(in_place.data(), in_place.data(), kRows, n);
  CHECK(in_place == y, "in place, n=", n);
}

TEST("softmax, its logarithm and cross entropy are right, and each row is independent") {
  std::mt19937 generator(21);
  for_each_variant([&](const KernelTable& table) {
    for (std::int64_t n = 1; n <= 40; ++n) {
      check_rows<float>(table, n, generator);
      check_rows<double>(table, n, generator);
    }
    check_rows<float>(table, 1000, generator);
  });
}

TEST("masked classes get probability 0, and a label that names no class a loss of NaN") {
  for_each_variant([](const KernelTable& table) {
    const float x[] = {1, -std::numeric_limits<float>::infinity(), 1};
    float p[3], loss;
    for (const std::int64_t label : {std::int64_t{-1}, std::int64_t{3}}) {
      table.softmax(DType::kFloat32).sparse_cross_entropy(x, &label, &loss, p, 1, 3);
      CHECK(std::isnan(loss));
      CHECK(p[0] == 0.5f && p[1] == 0 && p[2] == 0.5f);
    }
    CHECK(table.softmax.find(DType::kInt32) == nullptr);
  });
}

}  // namespace
}  // namespace samegrad

CHECK_MAIN
