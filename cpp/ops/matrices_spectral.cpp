// Orthogonal decompositions.
#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <limits>

#include "ops/matrices.h"

namespace samegrad::matrices {
namespace {

using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Read = Eigen::Map<const Rows, Eigen::Aligned16>;
using Write = Eigen::Map<Rows, Eigen::Aligned16>;

}  // namespace

void qr(const double* a, double* q, double* r, Int rows, Int columns, bool full) {
  const Int k = full ? rows : std::min(rows, columns);
  const Eigen::HouseholderQR<Eigen::MatrixXd> made{Read(a, rows, columns)};
  Write(q, rows, k) = Eigen::MatrixXd(made.householderQ() * Eigen::MatrixXd::Identity(rows, k));
  Write to(r, k, columns);
  to.setZero();
  const Int filled = std::min(k, std::min(rows, columns));
  to.topRows(filled) = made.matrixQR().topRows(filled).triangularView<Eigen::Upper>();
}

void svd(const double* a, double* u, double* s, double* v, Int rows, Int columns, bool full) {
  const Read matrix(a, rows, columns);
  const Int k = std::min(rows, columns);
  Write values(s, k, 1);
  if (!matrix.allFinite()) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    values.setConstant(nan);
    if (u) Write(u, rows, full ? rows : k).setConstant(nan);
    if (v) Write(v, columns, full ? columns : k).setConstant(nan);
    return;
  }
  unsigned options = 0;
  if (u)
    options = full ? Eigen::ComputeFullU | Eigen::ComputeFullV
                   : Eigen::ComputeThinU | Eigen::ComputeThinV;
  const Eigen::BDCSVD<Eigen::MatrixXd> made(matrix, options);
  values = made.singularValues();
  if (u) Write(u, rows, full ? rows : k) = made.matrixU();
  if (v) Write(v, columns, full ? columns : k) = made.matrixV();
}

bool eigh(const double* a, double* w, double* v, Int n) {
  const int options = v ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly;
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> made(Read(a, n, n), options);
  if (made.info() != Eigen::Success) return false;
  Write(w, n, 1) = made.eigenvalues();
  if (v) Write(v, n, n) = made.eigenvectors();
  return true;
}

}  // namespace samegrad::matrices
