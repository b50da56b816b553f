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

// A row's softmax by its first elements alone, beside that of the whole row.
template <class T>
void check_seen(const KernelTable& table, std::int64_t n, std::int64_t seen, std::vector<T> x) {
  const SoftmaxKernels& kernels = table.softmax(kDTypeOf<T>);
  const std::int64_t rows = std::ssize(x) / n;
  const T hidden = T(-0.7L * std::numeric_limits<T>::max());
  for (std::int64_t r = 0; r < rows; ++r) {
    std::fill_n(x.data() + r * n + seen, n - seen, hidden);
  }
  std::vector<T> whole(x.size());
  kernels.softmax(x.data(), whole.data(), rows, n);
  for (std::int64_t r = 0; r < rows; ++r) {
    std::fill_n(x.data() + r * n + seen, n - seen, std::numeric_limits<T>::quiet_NaN());
  }
  kernels.softmax_of_seen(x.data(), x.data(), rows, n, seen, &hidden);
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto bytes = static_cast<std::size_t>(seen) * sizeof(T);
    CHECK(std::memcmp(x.data() + r * n, whole.data() + r * n, bytes) == 0, "n=", n, " row ", r);
  }
}

template <class T>
void check_all_seen(const KernelTable& table, std::mt19937& generator) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  for (const std::int64_t n : {2, 33, 500, 1024, 1025, 2500, 4096}) {
    for (const std::int64_t seen : {n / 5, n / 2, n - 1}) {
      if (seen == 0) continue;
      std::vector<T> x = logits<T>(6 * n, generator);
      x[0] = kInfinity;
      x[n] = std::numeric_limits<T>::quiet_NaN();
      std::fill_n(x.data() + 2 * n, n, -kInfinity);
      std::fill_n(x.data() + 3 * n, n, T(-0.7L * std::numeric_limits<T>::max()));
      check_seen(table, n, seen, x);
    }
  }
}

TEST("softmax of seen elements is that of the whole row") {
  std::mt19937 generator(22);
  for_each_variant([&](const KernelTable& table) {
    check_all_seen<float>(table, generator);
    check_all_seen<double>(table, generator);
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
