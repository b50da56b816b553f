// Triangular decompositions.
#include <Eigen/Cholesky>
#include <Eigen/LU>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/matrices.h"

namespace samegrad::matrices {
namespace {

using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Read = Eigen::Map<const Rows, Eigen::Aligned16>;
using Write = Eigen::Map<Rows, Eigen::Aligned16>;

// The bits of decompositions are those of this version.
static_assert(EIGEN_WORLD_VERSION == 3 && EIGEN_MAJOR_VERSION == 4, "Eigen 3.4 is needed");

// Before any kernel runs: static objects are made when the library is loaded.
[[maybe_unused]] const bool kFixedBlocks = (Eigen::setCpuCacheSizes(kL1, kL2, kL3), true);

// The other triangle.
constexpr unsigned turned(unsigned triangle) {
  return triangle ^ (Eigen::Lower | Eigen::Upper);
}

template <unsigned kTriangle, class X>
void solve_in(const double* a, X& x, Int n, bool adjoint) {
  const Read matrix(a, n, n);
  if (adjoint)
    matrix.transpose().triangularView<turned(kTriangle)>().solveInPlace(x);
  else
    matrix.triangularView<kTriangle>().solveInPlace(x);
}

}  // namespace

bool cholesky(const double* a, double* l, Int n) {
  const Eigen::LLT<Eigen::MatrixXd> made{Read(a, n, n)};
  Write(l, n, n) = Eigen::MatrixXd(made.matrixL());
  return made.info() == Eigen::Success;
}

void solve_triangle(const double* a, const double* b, double* x, Int n, Int k, bool lower,
                    bool adjoint) {
  Write to(x, n, k);
  to = Read(b, n, k);
  if (lower)
    solve_in<Eigen::Lower>(a, to, n, adjoint);
  else
    solve_in<Eigen::Upper>(a, to, n, adjoint);
}

// Eigen decomposes squares: zeros fill up the others, which no pivot comes from while there is
// another number.
double lu(double* a, Int* order, Int rows, Int columns) {
  const Int size = std::max(rows, columns);
  Eigen::MatrixXd square = Eigen::MatrixXd::Zero(size, size);
  square.topLeftCorner(rows, columns) = Read(a, rows, columns);
  const Eigen::PartialPivLU<Eigen::MatrixXd> made(square);
  Write(a, rows, columns) = made.matrixLU().topLeftCorner(rows, columns);
  for (Int i = 0; i < size; ++i) {
    const Int to = made.permutationP().indices()[i];
    if (to < rows) order[to] = i;
  }
  return double(made.permutationP().determinant());
}

void solve_lu(const double* lu, const Int* order, const double* b, double* x, Int n, Int k,
              bool adjoint) {
  const Read given(b, n, k);
  Write to(x, n, k);
  Rows y(n, k);
  if (!adjoint) {
    for (Int i = 0; i < n; ++i) y.row(i) = given.row(order[i]);
    solve_in<Eigen::UnitLower>(lu, y, n, false);
    solve_in<Eigen::Upper>(lu, y, n, false);
    to = y;
    return;
  }
  y = given;
  solve_in<Eigen::Upper>(lu, y, n, true);
  solve_in<Eigen::UnitLower>(lu, y, n, true);
  for (Int i = 0; i < n; ++i) to.row(order[i]) = y.row(i);
}

// Higham, "The scaling and squaring method for the matrix exponential revisited", 2005: the
// approximant of degree 13 up to a norm of 5.37, which halvings reach.
void exponential(const double* a, double* y, Int n) {
  using Matrix = Eigen::MatrixXd;
  Write to(y, n, n);
  Matrix x = Read(a, n, n);
  if (!x.allFinite()) {
    to.setConstant(std::numeric_limits<double>::quiet_NaN());
    return;
  }
  int halvings = 0;
  const double norm = x.cwiseAbs().colwise().sum().maxCoeff();
  if (norm > 5.371920351148152) halvings = std::ilogb(norm / 5.371920351148152) + 1;
  x *= std::ldexp(1.0, -halvings);
  constexpr double b[] = {64764752532480000.0,
                          32382376266240000.0,
                          7771770303897600.0,
                          1187353796428800.0,
                          129060195264000.0,
                          10559470521600.0,
                          670442572800.0,
                          33522128640.0,
                          1323241920.0,
                          40840800.0,
                          960960.0,
                          16380.0,
                          182.0,
                          1.0};
  const Matrix eye = Matrix::Identity(n, n), x2 = x * x, x4 = x2 * x2, x6 = x4 * x2;
  const Matrix odd_inner = b[13] * x6 + b[11] * x4 + b[9] * x2;
  const Matrix odd = x6 * odd_inner + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * eye;
  const Matrix even_inner = b[12] * x6 + b[10] * x4 + b[8] * x2;
  const Matrix even = x6 * even_inner + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * eye;
  const Matrix u = x * odd;
  Matrix power = Eigen::PartialPivLU<Matrix>(even - u).solve(even + u);
  for (int i = 0; i < halvings; ++i) power = Matrix(power * power);
  to = power;
}

}  // namespace samegrad::matrices
