// Decompositions of one matrix at a time, by Eigen, which only matrices_*.cpp include.
//
// Matrices are float64 and row-major, and are at aligned addresses: what Eigen does then depends on
// their sizes and numbers alone. float32 is computed in float64 and rounded once. Eigen cuts
// products into blocks by the sizes of caches; these are constants here, as a block is a reduction
// order.
#pragma once

#include <cstdint>

namespace samegrad::matrices {

using Int = std::int64_t;

// Eigen's single-threaded products take these for the sizes of the caches, on every machine.
inline constexpr std::int64_t kL1 = 32 << 10, kL2 = 256 << 10, kL3 = 2 << 20;

// The lower triangle L with L Lᵀ = a, whose lower triangle is read; zeros above. False if a is not
// positive definite.
bool cholesky(const double* a, double* l, Int n);
// The x with op(a) x = b (b: n × k), a being a lower or upper triangle and op its transpose or not.
void solve_triangle(const double* a, const double* b, double* x, Int n, Int k, bool lower,
                    bool adjoint);
// In place: L below the diagonal, whose own is 1, and U. `order` says for each row which one of a
// it is. The result is 1 or -1: the sign of that permutation.
double lu(double* a, Int* order, Int rows, Int columns);
// The x with op(P⁻¹ L U) x = b, of what `lu` made.
void solve_lu(const double* lu, const Int* order, const double* b, double* x, Int n, Int k,
              bool adjoint);
// q (rows × k) r (k × columns) = a; k is the smaller size, or `rows` where q is to be square.
void qr(const double* a, double* q, double* r, Int rows, Int columns, bool full);
// Singular values, descending; u (rows × p) and v (columns × q) unless they are null.
void svd(const double* a, double* u, double* s, double* v, Int rows, Int columns, bool full);
// Eigenvalues, ascending, of the symmetric matrix whose lower triangle is read, and eigenvectors
// (columns) unless they are null. False if the iteration does not end (NaN, infinite numbers).
bool eigh(const double* a, double* w, double* v, Int n);

// The exponential, by scaling and squaring. NaN if a number is not finite.
void exponential(const double* a, double* y, Int n);

}  // namespace samegrad::matrices
