// Walks over the matrices of a call. float32 is computed in float64 and rounded once.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/dtype.h"
#include "base/error.h"
#include "kernels/scalar_functions.h"
#include "ops/linalg.h"
#include "ops/matrices.h"
#include "ops/partition.h"

namespace samegrad {
namespace {

using matrices::Int;

struct Sizes {
  Int rows = 0, columns = 0;

  Int count() const { return rows * columns; }
};

Sizes sizes_of(const View& x) {
  const int rank = x.shape.rank();
  return {x.shape[rank - 2], x.shape[rank - 1]};
}

// Memory of one matrix after the other.
class Matrices {
 public:
  Matrices(const KernelArgs& args, Int size) : args_(args), frame_(args.scratch), size_(size) {}

  double* take() { return take(size_); }
  double* take(Int size) {
    return static_cast<double*>(args_.scratch.take(std::size_t(size) * sizeof(double)));
  }
  Int* take_order(Int size) {
    return static_cast<Int*>(args_.scratch.take(std::size_t(size) * sizeof(Int)));
  }

 private:
  const KernelArgs& args_;
  Scratch::Frame frame_;
  Int size_;
};

// Elements [i · size, (i + 1) · size) of a view.
void read(const View& x, Int i, Int size, double* to) {
  visit<kFloats>("linalg", x.dtype, [&]<class T>() {
    const T* from = x.as<const T>() + i * size;
    for (Int k = 0; k < size; ++k) to[k] = double(from[k]);
  });
}

void write(const View& y, Int i, Int size, const double* from) {
  visit<kFloats>("linalg", y.dtype, [&]<class T>() {
    T* to = y.as<T>() + i * size;
    for (Int k = 0; k < size; ++k) to[k] = T(from[k]);
  });
}

template <class... What>
[[noreturn]] void fail_matrix(const KernelArgs& args, const char* op_name, Int i,
                              const What&... what) {
  View matrices = args.in[0];
  const int outer = matrices.shape.rank() - 2;
  Shape shape;
  for (int axis = 0; axis < outer; ++axis) shape.push_back(matrices.shape[axis]);
  matrices.shape = shape;
  if (matrices.example_axis >= outer) matrices.example_axis = -1;
  const std::string place = outer > 0 ? " at " + place_of(args, matrices, i) : "";
  fail(ErrorKind::kInvalidArgument, op_name, "the matrix", place, " ", what...);
}

// The permutation that `lu` made, and 0 for the sign if a pivot is 0.
double factor(double* a, Int* order, Int n) {
  double sign = matrices::lu(a, order, n, n);
  for (Int i = 0; i < n; ++i) {
    if (a[i * n + i] == 0) sign = 0;
  }
  return sign;
}

// The swaps that make the order, one after the other, of the identity.
void write_swaps(const Int* order, Int* current, Int rows, Int count, std::int32_t* swaps) {
  for (Int i = 0; i < rows; ++i) current[i] = i;
  for (Int i = 0; i < count; ++i) {
    Int* const found = std::find(current + i, current + rows, order[i]);
    swaps[i] = std::int32_t(found - current);
    std::swap(current[i], *found);
  }
}

constexpr const char* kSingular =
    "must have an inverse: its LU decomposition has a pivot of 0; add a small multiple of the "
    "identity, or use pinv or lstsq.";

}  // namespace

std::int64_t matrices_of(const CostArgs& args) {
  const Shape& shape = args.in[0].shape;
  return shape.size(0, shape.rank() - 2);
}

void run_cholesky(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const Sizes s = sizes_of(args.in[0]);
  Matrices memory(args, s.count());
  double *const a = memory.take(), *const l = memory.take();
  for (Int i = begin; i < end && s.rows > 0; ++i) {
    read(args.in[0], i, s.count(), a);
    if (!matrices::cholesky(a, l, s.rows)) {
      fail_matrix(args, "cholesky", i,
                  "must be positive definite: Cholesky decomposition was not successful, got ",
                  a[0], " as its first element; add a small multiple of the identity.");
    }
    write(args.out[0], i, s.count(), l);
  }
}

void run_triangular_solve(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const auto& attrs = args.attrs.as<TriangularAttrs>();
  const Sizes s = sizes_of(args.in[0]), right = sizes_of(args.in[1]);
  Matrices memory(args, right.count());
  double *const b = memory.take(), *const x = memory.take(), *const a = memory.take(s.count());
  for (Int i = begin; i < end && right.count() > 0; ++i) {
    read(args.in[0], i, s.count(), a);
    read(args.in[1], i, right.count(), b);
    for (Int k = 0; k < s.rows; ++k) {
      if (a[k * s.rows + k] != 0) continue;
      fail_matrix(args, "triangular_solve", i, "must have an inverse: got 0 at place ", k,
                  " of its diagonal.");
    }
    matrices::solve_triangle(a, b, x, s.rows, right.columns, attrs.lower, attrs.adjoint);
    write(args.out[0], i, right.count(), x);
  }
}

void run_solve(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const Sizes s = sizes_of(args.in[0]), right = sizes_of(args.in[1]);
  Matrices memory(args, right.count());
  double *const b = memory.take(), *const x = memory.take(), *const a = memory.take(s.count());
  Int* const order = memory.take_order(s.rows);
  for (Int i = begin; i < end && right.count() > 0; ++i) {
    read(args.in[0], i, s.count(), a);
    read(args.in[1], i, right.count(), b);
    if (factor(a, order, s.rows) == 0) fail_matrix(args, "matrix_solve", i, kSingular);
    matrices::solve_lu(a, order, b, x, s.rows, right.columns, args.attrs.as<SolveAttrs>().adjoint);
    write(args.out[0], i, right.count(), x);
  }
}

void run_inverse(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const Sizes s = sizes_of(args.in[0]);
  Matrices memory(args, s.count());
  double *const a = memory.take(), *const x = memory.take(), *const eye = memory.take();
  Int* const order = memory.take_order(s.rows);
  std::fill_n(eye, s.count(), 0.0);
  for (Int k = 0; k < s.rows; ++k) eye[k * (s.rows + 1)] = 1;
  for (Int i = begin; i < end && s.rows > 0; ++i) {
    read(args.in[0], i, s.count(), a);
    if (factor(a, order, s.rows) == 0) fail_matrix(args, "matrix_inverse", i, kSingular);
    matrices::solve_lu(a, order, eye, x, s.rows, s.rows, args.attrs.as<SolveAttrs>().adjoint);
    write(args.out[0], i, s.count(), x);
  }
}

void run_lu(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const Sizes s = sizes_of(args.in[0]);
  Matrices memory(args, s.count());
  double* const a = memory.take();
  Int* const order = memory.take_order(s.rows);
  Int* const current = memory.take_order(s.rows);
  const Int count = std::min(s.rows, s.columns);
  auto *places = args.out[1].as<std::int32_t>(), *swaps = args.out[2].as<std::int32_t>();
  for (Int i = begin; i < end && s.rows > 0; ++i) {
    read(args.in[0], i, s.count(), a);
    matrices::lu(a, order, s.rows, s.columns);
    for (Int k = 0; args.attrs.as<LuAttrs>().regular && k < count; ++k) {
      if (a[k * s.columns + k] == 0) fail_matrix(args, "lu", i, kSingular);
    }
    write(args.out[0], i, s.count(), a);
    for (Int k = 0; k < s.rows; ++k) places[i * s.rows + k] = std::int32_t(order[k]);
    write_swaps(order, current, s.rows, count, swaps + i * count);
  }
}

void run_slogdet(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const Sizes s = sizes_of(args.in[0]);
  Matrices memory(args, s.count());
  double* const a = memory.take();
  Int* const order = memory.take_order(s.rows);
  for (Int i = begin; i < end; ++i) {
    double sign = 1, logarithm = 0;
    if (s.rows > 0) {
      read(args.in[0], i, s.count(), a);
      sign = matrices::lu(a, order, s.rows, s.rows);
    }
    for (Int k = 0; k < s.rows; ++k) {
      const double pivot = a[k * (s.rows + 1)];
      sign *= pivot > 0 ? 1.0 : pivot < 0 ? -1.0 : pivot;  // 0 and NaN stay
      logarithm += scalar::log(std::abs(pivot));
    }
    write(args.out[0], i, 1, &sign);
    write(args.out[1], i, 1, &logarithm);
  }
}

void run_determinant(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const Sizes s = sizes_of(args.in[0]);
  Matrices memory(args, s.count());
  double* const a = memory.take();
  Int* const order = memory.take_order(s.rows);
  for (Int i = begin; i < end; ++i) {
    double determinant = 1;
    if (s.rows > 0) {
      read(args.in[0], i, s.count(), a);
      determinant = matrices::lu(a, order, s.rows, s.rows);
    }
    for (Int k = 0; k < s.rows; ++k) determinant *= a[k * (s.rows + 1)];
    write(args.out[0], i, 1, &determinant);
  }
}

void run_exponential(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const Sizes s = sizes_of(args.in[0]);
  Matrices memory(args, s.count());
  double *const a = memory.take(), *const y = memory.take();
  for (Int i = begin; i < end && s.rows > 0; ++i) {
    read(args.in[0], i, s.count(), a);
    matrices::exponential(a, y, s.rows);
    write(args.out[0], i, s.count(), y);
  }
}

void run_qr(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const Sizes s = sizes_of(args.in[0]), of_q = sizes_of(args.out[0]), of_r = sizes_of(args.out[1]);
  Matrices memory(args, s.count());
  double *const a = memory.take(), *const q = memory.take(of_q.count());
  double* const r = memory.take(of_r.count());
  for (Int i = begin; i < end; ++i) {
    read(args.in[0], i, s.count(), a);
    if (s.count() > 0) {
      matrices::qr(a, q, r, s.rows, s.columns, args.attrs.as<OrthogonalAttrs>().full);
    } else {  // nothing to turn: the identity
      std::fill_n(q, of_q.count(), 0.0);
      for (Int k = 0; k < of_q.columns; ++k) q[k * (of_q.columns + 1)] = 1;
      std::fill_n(r, of_r.count(), 0.0);
    }
    write(args.out[0], i, of_q.count(), q);
    write(args.out[1], i, of_r.count(), r);
  }
}

// Results: s, u, v.
void run_svd(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const Sizes s = sizes_of(args.in[0]), of_u = sizes_of(args.out[1]), of_v = sizes_of(args.out[2]);
  const Int k = std::min(s.rows, s.columns);
  Matrices memory(args, s.count());
  double *const a = memory.take(), *const values = memory.take(k);
  double *const u = memory.take(of_u.count()), *const v = memory.take(of_v.count());
  const auto identity = [](double* to, const Sizes& sizes) {
    std::fill_n(to, sizes.count(), 0.0);
    for (Int d = 0; d < sizes.columns; ++d) to[d * (sizes.columns + 1)] = 1;
  };
  for (Int i = begin; i < end; ++i) {
    read(args.in[0], i, s.count(), a);
    if (s.count() > 0) {
      matrices::svd(a, u, values, v, s.rows, s.columns, args.attrs.as<OrthogonalAttrs>().full);
    } else {
      identity(u, of_u);
      identity(v, of_v);
    }
    write(args.out[0], i, k, values);
    write(args.out[1], i, of_u.count(), u);
    write(args.out[2], i, of_v.count(), v);
  }
}

void run_singular_values(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const Sizes s = sizes_of(args.in[0]);
  const Int k = std::min(s.rows, s.columns);
  Matrices memory(args, s.count());
  double *const a = memory.take(), *const values = memory.take(k);
  for (Int i = begin; i < end && k > 0; ++i) {
    read(args.in[0], i, s.count(), a);
    matrices::svd(a, nullptr, values, nullptr, s.rows, s.columns, false);
    write(args.out[0], i, k, values);
  }
}

namespace {

void run_symmetric(const KernelArgs& args, Int begin, Int end, bool vectors) {
  const Sizes s = sizes_of(args.in[0]);
  Matrices memory(args, s.count());
  double *const a = memory.take(), *const w = memory.take(s.rows);
  double* const v = vectors ? memory.take() : nullptr;
  for (Int i = begin; i < end && s.rows > 0; ++i) {
    read(args.in[0], i, s.count(), a);
    if (!matrices::eigh(a, w, v, s.rows)) {
      fail_matrix(args, vectors ? "eigh" : "eigvalsh", i,
                  "must be of finite numbers: its eigenvalues were not found; check them with "
                  "debugging.check_numerics.");
    }
    write(args.out[0], i, s.rows, w);
    if (v) write(args.out[1], i, s.count(), v);
  }
}

}  // namespace

void run_eigh(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  run_symmetric(args, begin, end, true);
}

void run_eigenvalues(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  run_symmetric(args, begin, end, false);
}

}  // namespace samegrad
