// Products, convolutions, reductions and functions against Eigen, which knows nothing of ours.
#include <Eigen/Core>
#include <cmath>
#include <random>

#include "check.h"
#include "kernels/table.h"
#include "variants.h"

static_assert(EIGEN_WORLD_VERSION == 3 && EIGEN_MAJOR_VERSION == 4,
              "the version in pyproject.toml");

using namespace samegrad;

namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
constexpr DType kType = std::is_same_v<T, float> ? DType::kFloat32 : DType::kFloat64;

template <class T>
Matrix<T> random_matrix(std::int64_t rows, std::int64_t columns) {
  static std::mt19937 generator(11);
  std::normal_distribution<double> draw;
  Matrix<T> matrix(rows, columns);
  for (std::int64_t i = 0; i < matrix.size(); ++i) matrix.data()[i] = T(draw(generator));
  return matrix;
}

// Each side rounds a sum of `terms` products in its own order.
template <class T>
void close(const Matrix<T>& ours, const Matrix<T>& theirs, std::int64_t terms) {
  const double error = double((ours - theirs).cwiseAbs().maxCoeff());
  const double size = 1.0 + double(theirs.cwiseAbs().maxCoeff());
  const double bound = 8 * double(std::numeric_limits<T>::epsilon()) * std::sqrt(double(terms + 1));
  CHECK(error <= bound * size, "error ", error, " of ", size, ", ", terms, " terms");
}

template <class T>
Matrix<T> multiply(const KernelTable& table, const Matrix<T>& a, const Matrix<T>& b) {
  const ProductKernels& product = table.product(kType<T>);
  std::vector<std::byte> packed(product.packed_bytes(b.rows(), b.cols()) + 64);
  void* aligned =
      reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(packed.data()) + 63) / 64 * 64);
  product.pack(b.data(), b.rows(), b.cols(), b.cols(), false, aligned);
  Matrix<T> y(a.rows(), b.cols());
  product.matmul(a.data(), a.rows(), a.cols(), a.cols(), aligned, b.cols(), y.data(), b.cols(),
                 nullptr);
  return y;
}

template <class T>
void compare_products(const KernelTable& table) {
  for (const std::int64_t m : {1, 4, 7, 33}) {
    for (const std::int64_t k : {1, 9, 64, 300}) {
      for (const std::int64_t n : {1, 5, 16, 70}) {
        const Matrix<T> a = random_matrix<T>(m, k), b = random_matrix<T>(k, n);
        close<T>(multiply(table, a, b), a * b, k);
        const Matrix<T> c = random_matrix<T>(m, n);
        Matrix<T> y(k, n);
        table.product(kType<T>).matmul_transposed(a.data(), k, c.data(), n, m, k, n, y.data(), n,
                                                  false, nullptr);
        close<T>(y, a.transpose() * c, m);
      }
    }
  }
}

template <class T>
void compare_reductions(const KernelTable& table) {
  for (const std::int64_t n : {1, 3, 16, 200}) {
    const Matrix<T> x = random_matrix<T>(5, n);
    Matrix<T> sums(5, 1), columns(1, n);
    table.row_reduce(ReduceFn::kSum, kType<T>)(x.data(), sums.data(), 5, n);
    close<T>(sums, x.rowwise().sum(), n);
    table.column_reduce(ReduceFn::kSum, kType<T>)(x.data(), columns.data(), 5, n, n, false);
    close<T>(columns, x.colwise().sum(), 5);
  }
}

template <class T>
void compare_functions(const KernelTable& table) {
  const Matrix<T> x = random_matrix<T>(7, 31);
  const auto apply = [&](UnaryFn fn, const Matrix<T>& from) {
    Matrix<T> y(from.rows(), from.cols());
    table.unary(fn, kType<T>)(from.data(), y.data(), from.size());
    return y;
  };
  const Matrix<T> positive = x.cwiseAbs().array() + T(0.1);
  close<T>(apply(UnaryFn::k_exp, x), x.array().exp().matrix(), 1);
  close<T>(apply(UnaryFn::k_tanh, x), x.array().tanh().matrix(), 1);
  close<T>(apply(UnaryFn::k_log, positive), positive.array().log().matrix(), 1);
  close<T>(apply(UnaryFn::k_sqrt, positive), positive.array().sqrt().matrix(), 1);
  close<T>(apply(UnaryFn::k_sin, x), x.array().sin().matrix(), 1);
}

}  // namespace

TEST("products agree with Eigen's") {
  for_each_variant([](const KernelTable& table) {
    compare_products<float>(table);
    compare_products<double>(table);
  });
}

TEST("reductions agree with Eigen's") {
  for_each_variant([](const KernelTable& table) {
    compare_reductions<float>(table);
    compare_reductions<double>(table);
  });
}

TEST("elementwise functions agree with Eigen's") {
  for_each_variant([](const KernelTable& table) {
    compare_functions<float>(table);
    compare_functions<double>(table);
  });
}

CHECK_MAIN
