// Attributes and kernels of the ops in linalg_*.cpp. The last two axes of an operand are a matrix;
// the others are batch axes, whose matrices are computed one by one.
#pragma once

#include "ir/op_def.h"
#include "ops/expr.h"
#include "tensor/attrs.h"

namespace samegrad {

struct TriangularAttrs {
  bool lower = true;
  bool adjoint = false;

  static constexpr auto fields() {
    return std::tuple(
        defaulted("lower", &TriangularAttrs::lower, "Which triangle of the matrix is read."),
        defaulted("adjoint", &TriangularAttrs::adjoint, "Solve with the transposed matrix."));
  }
};

struct SolveAttrs {
  bool adjoint = false;

  static constexpr auto fields() {
    return std::tuple(
        defaulted("adjoint", &SolveAttrs::adjoint, "Solve with the transposed matrix."));
  }
};

struct LuAttrs {
  bool regular = true;

  static constexpr auto fields() {
    return std::tuple(
        defaulted("regular", &LuAttrs::regular, "Whether a singular matrix is an error."));
  }
};

struct OrthogonalAttrs {
  bool full = false;

  static constexpr auto fields() {
    return std::tuple(defaulted("full", &OrthogonalAttrs::full,
                                "Square orthogonal matrices, also of a matrix that is not."));
  }
};

// ---- kernels: matrices [begin, end) of the call ----

std::int64_t matrices_of(const CostArgs& args);
void run_cholesky(const KernelArgs& args, std::int64_t begin, std::int64_t end);
void run_triangular_solve(const KernelArgs& args, std::int64_t begin, std::int64_t end);
void run_solve(const KernelArgs& args, std::int64_t begin, std::int64_t end);
void run_inverse(const KernelArgs& args, std::int64_t begin, std::int64_t end);
void run_lu(const KernelArgs& args, std::int64_t begin, std::int64_t end);
void run_slogdet(const KernelArgs& args, std::int64_t begin, std::int64_t end);
void run_determinant(const KernelArgs& args, std::int64_t begin, std::int64_t end);
void run_exponential(const KernelArgs& args, std::int64_t begin, std::int64_t end);
void run_qr(const KernelArgs& args, std::int64_t begin, std::int64_t end);
void run_svd(const KernelArgs& args, std::int64_t begin, std::int64_t end);
void run_singular_values(const KernelArgs& args, std::int64_t begin, std::int64_t end);
void run_eigh(const KernelArgs& args, std::int64_t begin, std::int64_t end);
void run_eigenvalues(const KernelArgs& args, std::int64_t begin, std::int64_t end);

// ---- shape rules ----

// The operand as matrices of floats. Where examples are its rows or columns, it is one matrix of
// all of them, whose size is that of the replica.
ValueType matrix_type(const InferArgs& args, int operand);
// The operand as square matrices of floats.
ValueType square_type(const InferArgs& args, int operand);
// Vectors or numbers for each matrix: its type with other sizes instead of the last two.
ValueType with_sizes(const ValueType& type, std::initializer_list<std::int64_t> sizes);
// The smaller of the last two sizes; ValueError if replicas decide differently.
std::int64_t smaller_size(const InferArgs& args, const ValueType& type);
// Each matrix makes its part of each result.
Inferred by_matrix(const InferArgs& args, std::vector<ValueType> results);

// ---- formulas ----

inline Expr product(Expr a, Expr b, bool transpose_a = false, bool transpose_b = false) {
  return call("matmul", a, b, MatmulAttrs{transpose_a, transpose_b});
}
Expr turned(Expr x);
// Elements whose column is at most (or at least) `k` behind their row; 0 elsewhere.
Expr lower_triangle(Expr x, int k = 0);
Expr upper_triangle(Expr x, int k = 0);
Expr diagonal(Expr x);
// 1 on the diagonals of matrices as large as those of x, 0 elsewhere.
Expr identity_like(Expr x);
// An axis of size 1 behind, or before, the last one.
Expr as_column(Expr x);
Expr as_row(Expr x);
// 1 / x, and 0 where x is 0.
Expr inverse_or_zero(Expr x);

}  // namespace samegrad
