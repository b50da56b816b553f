// QR, singular values, eigenvalues of symmetric matrices.
#include "ops/linalg.h"
#include "ops/partition.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

// Rough: iterations need a few times the operations of a product.
template <int kTimes>
double iterative_flops(const CostArgs& args) {
  const Shape& shape = args.in[0].shape;
  const int rank = shape.rank();
  return kTimes * double(shape.size()) * double(std::min(shape[rank - 2], shape[rank - 1]));
}

// The cotangent of a result, zeros where nothing flows.
Expr flowing(const VjpArgs& v, std::size_t result) {
  return v.ct[result] == kNoValue ? zeros_like(Expr(v.b, v.out[result])) : Expr(v.b, v.ct[result]);
}

// The sign of rows minus columns for the trace's sizes: < 0, 0 or > 0.
int tallness(Expr x) {
  const int rank = x.type().shape.rank();
  auto& symbols = x.builder().graph().symbols;
  const Size more = size_of(symbols, x.type(), rank - 2) - size_of(symbols, x.type(), rank - 1);
  if (decide(symbols, more, [](std::int64_t size) { return size == 0; })) return 0;
  return decide(symbols, more, [](std::int64_t size) { return size > 0; }) ? 1 : -1;
}

// ---- qr ----

Inferred qr_rule(const InferArgs& args) {
  const ValueType a = matrix_type(args, 0);
  const int rank = a.shape.rank();
  const std::int64_t rows = a.shape[rank - 2], columns = a.shape[rank - 1];
  const std::int64_t k = args.attrs.as<OrthogonalAttrs>().full ? rows : smaller_size(args, a);
  return by_matrix(args, {with_sizes(a, {rows, k}), with_sizes(a, {k, columns})});
}

Expr columns_of(Expr x, std::int64_t begin, std::int64_t end) {
  const auto rank = std::size_t(x.type().shape.rank());
  SliceAttrs attrs{Ints(rank, INT64_MIN), Ints(rank, INT64_MAX), Ints(rank, 1)};
  attrs.begin.back() = begin;
  attrs.end.back() = end;
  return call("slice", x, attrs);
}

// Walter and Lehmann, "Algorithmic differentiation of linear algebra functions", 2018: of a matrix
// with at least as many rows as columns.
Expr qr_gradient(Expr q, Expr r, Expr of_q, Expr of_r) {
  const Expr inner = product(r, of_r, false, true) - product(of_q, q, true);
  const Expr mirrored = lower_triangle(inner) + turned(lower_triangle(inner, -1));
  const Expr left = of_q + product(q, mirrored);
  return turned(
      call("triangular_solve", r, turned(left), TriangularAttrs{.lower = false, .adjoint = false}));
}

Values qr_vjp(const VjpArgs& v) {
  const Expr a(v.b, v.in[0]), q(v.b, v.out[0]), r(v.b, v.out[1]);
  const Expr of_q = flowing(v, 0), of_r = flowing(v, 1);
  const int tall = tallness(a);
  if (tall > 0 && v.attrs.as<OrthogonalAttrs>().full) {
    fail(ErrorKind::kNotImplemented, "qr",
         "has no derivative with full_matrices=True of a matrix with more rows than columns, whose "
         "last columns of Q are not determined; ask for full_matrices=False.");
  }
  if (tall >= 0) return cotangents(qr_gradient(q, r, of_q, of_r));
  // a = [x y], r = [u w]: x = q u is square, and w = qᵀ y.
  const int rank = a.type().shape.rank();
  const std::int64_t rows = dim(a, rank - 2);
  const Expr y = columns_of(a, rows, INT64_MAX), of_w = columns_of(of_r, rows, INT64_MAX);
  const Expr of_x =
      qr_gradient(q, columns_of(r, INT64_MIN, rows), of_q + product(y, of_w, false, true),
                  columns_of(of_r, INT64_MIN, rows));
  return cotangents(call("concat", of_x, product(q, of_w), ConcatAttrs{.axis = rank - 1}));
}

OpDef qr_op() {
  OpDef op;
  op.name = "qr";
  op.doc = "Q, whose columns are orthogonal and of length 1, and upper triangles R with Q R = a.";
  op.operands = {"a"};
  op.attrs = schema_of<OrthogonalAttrs>();
  op.traits = 0;
  op.infer = qr_rule;
  set_parts<matrices_of, run_qr>(op);
  op.vjp = qr_vjp;
  op.flops = iterative_flops<4>;
  const Attrs thin = OrthogonalAttrs{}, full = OrthogonalAttrs{true};
  op.samples = {{.shapes = {{3, 3}}, .attrs = full},
                {.shapes = {{4, 2}}, .attrs = thin},
                {.shapes = {{2, 4}}, .attrs = thin},
                {.shapes = {{1, 1}}, .attrs = thin, .low = 1},
                {.shapes = {{2, 0}}, .attrs = thin},
                {.shapes = {{5, 3, 2}}, .attrs = thin, .batched = {1}},
                {.shapes = {{5, 2, 3}}, .attrs = full, .batched = {1}}};
  return op;
}

// ---- singular values ----

Inferred svd_rule(const InferArgs& args) {
  const ValueType a = matrix_type(args, 0);
  const int rank = a.shape.rank();
  const std::int64_t rows = a.shape[rank - 2], columns = a.shape[rank - 1];
  const std::int64_t k = smaller_size(args, a);
  const bool full = args.attrs.as<OrthogonalAttrs>().full;
  return by_matrix(args, {with_sizes(a, {k}), with_sizes(a, {rows, full ? rows : k}),
                          with_sizes(a, {columns, full ? columns : k})});
}

// The part of y outside the span of x, whose columns are orthonormal.
Expr outside(Expr x, Expr y) {
  return y - product(x, product(x, y, true));
}

// Townsend, "Differentiating the singular value decomposition", 2016.
Values svd_vjp(const VjpArgs& v) {
  if (v.attrs.as<OrthogonalAttrs>().full && tallness(Expr(v.b, v.in[0])) != 0) {
    fail(ErrorKind::kNotImplemented, "svd",
         "has no derivative with full_matrices=True of a matrix that is not square, as its last "
         "vectors are not determined; ask for full_matrices=False.");
  }
  const Expr s(v.b, v.out[0]), left(v.b, v.out[1]), right(v.b, v.out[2]);
  const Expr squares = square(s), row = as_row(s), column = as_column(s);
  const Expr gaps = inverse_or_zero(as_row(squares) - as_column(squares));
  const Expr like = product(left, left, true);  // k × k
  Expr middle = identity_like(like) * as_column(flowing(v, 0));
  const auto both = [](Expr x) { return x + turned(x); };
  if (v.ct[1] != kNoValue) {
    middle = middle + both(product(left, flowing(v, 1), true) * gaps) * row;
  }
  if (v.ct[2] != kNoValue) {
    middle = middle + column * both(product(right, flowing(v, 2), true) * gaps);
  }
  Expr to_right = product(left, middle);
  if (v.ct[1] != kNoValue) {
    to_right = to_right + outside(left, flowing(v, 1)) * inverse_or_zero(row);
  }
  Expr gradient = product(to_right, right, false, true);
  if (v.ct[2] != kNoValue) {
    const Expr rest = outside(right, flowing(v, 2)) * inverse_or_zero(row);
    gradient = gradient + product(left, rest, false, true);
  }
  return cotangents(gradient);
}

OpDef svd_op() {
  OpDef op;
  op.name = "svd";
  op.doc =
      "Singular values, descending, and u and v with u diag(s) vᵀ = a; NaN where a matrix has "
      "numbers that are not finite.";
  op.operands = {"a"};
  op.attrs = schema_of<OrthogonalAttrs>();
  op.infer = svd_rule;
  set_parts<matrices_of, run_svd>(op);
  op.vjp = svd_vjp;
  op.flops = iterative_flops<20>;
  const Attrs thin = OrthogonalAttrs{}, full = OrthogonalAttrs{true};
  op.samples = {
      {.shapes = {{3, 3}}, .attrs = full}, {.shapes = {{4, 2}}, .attrs = thin},
      {.shapes = {{2, 3}}, .attrs = thin}, {.shapes = {{1, 1}}, .attrs = thin, .low = 1},
      {.shapes = {{2, 0}}, .attrs = thin}, {.shapes = {{5, 3, 2}}, .attrs = thin, .batched = {1}}};
  return op;
}

Inferred singular_values_rule(const InferArgs& args) {
  const ValueType a = matrix_type(args, 0);
  return by_matrix(args, {with_sizes(a, {smaller_size(args, a)})});
}

OpDef singular_values_op() {
  OpDef op;
  op.name = "singular_values";
  op.doc = "Singular values of matrices, descending.";
  op.operands = {"a"};
  op.infer = singular_values_rule;
  set_parts<matrices_of, run_singular_values>(op);
  op.vjp = [](const VjpArgs& v) {
    const Values parts = v.b.many("svd", {v.in[0]}, OrthogonalAttrs{});
    const Expr left(v.b, parts[1]), right(v.b, parts[2]);
    return cotangents(product(left * as_row(Expr(v.b, v.ct[0])), right, false, true));
  };
  op.flops = iterative_flops<10>;
  op.samples = {{.shapes = {{3, 3}}, .attrs = {}},
                {.shapes = {{4, 2}}, .attrs = {}},
                {.shapes = {{0, 2}}, .attrs = {}},
                {.shapes = {{5, 2, 3}}, .attrs = {}, .batched = {1}}};
  return op;
}

// ---- eigenvalues of symmetric matrices ----

Inferred eigh_rule(const InferArgs& args) {
  const ValueType a = square_type(args, 0);
  return by_matrix(args, {with_sizes(a, {a.shape[a.shape.rank() - 1]}), a});
}

// The lower triangle is what is read, so it has all of the derivative.
Expr of_lower_triangle(Expr of_matrix) {
  return lower_triangle(of_matrix) + lower_triangle(turned(of_matrix), -1);
}

// Giles, "Collected matrix derivative results for forward and reverse mode", 2008.
Values eigh_vjp(const VjpArgs& v) {
  const Expr w(v.b, v.out[0]), vectors(v.b, v.out[1]);
  Expr inner = identity_like(vectors) * as_column(flowing(v, 0));
  if (v.ct[1] != kNoValue) {
    const Expr gaps = inverse_or_zero(as_row(w) - as_column(w));
    inner = inner + gaps * product(vectors, flowing(v, 1), true);
  }
  return cotangents(of_lower_triangle(product(product(vectors, inner), vectors, false, true)));
}

// Larger ones, which are symmetric, have tests/unit/linalg/test_matrices.py.
std::vector<Sample> symmetric_samples() {
  return {{.shapes = {{1, 1}}, .attrs = {}},
          {.shapes = {{0, 0}}, .attrs = {}},
          {.shapes = {{2, 2, 1, 1}}, .attrs = {}},
          {.shapes = {{5, 1, 1}}, .attrs = {}, .batched = {1}}};
}

OpDef eigh_op() {
  OpDef op;
  op.name = "eigh";
  op.doc =
      "Eigenvalues, ascending, and eigenvectors (columns) of symmetric matrices, whose lower "
      "triangles are read.";
  op.operands = {"a"};
  op.traits = kMayRaise;
  op.infer = eigh_rule;
  set_parts<matrices_of, run_eigh>(op);
  op.vjp = eigh_vjp;
  op.flops = iterative_flops<9>;
  op.samples = symmetric_samples();
  return op;
}

OpDef eigvalsh_op() {
  OpDef op;
  op.name = "eigvalsh";
  op.doc = "Eigenvalues, ascending, of symmetric matrices, whose lower triangles are read.";
  op.operands = {"a"};
  op.traits = kMayRaise;
  op.infer = [](const InferArgs& args) {
    const ValueType a = square_type(args, 0);
    return by_matrix(args, {with_sizes(a, {a.shape[a.shape.rank() - 1]})});
  };
  set_parts<matrices_of, run_eigenvalues>(op);
  op.vjp = [](const VjpArgs& v) {
    const Expr vectors(v.b, v.b.many("eigh", {v.in[0]})[1]);
    const Expr weighted = vectors * as_row(Expr(v.b, v.ct[0]));
    return cotangents(of_lower_triangle(product(weighted, vectors, false, true)));
  };
  op.flops = iterative_flops<3>;
  op.samples = symmetric_samples();
  return op;
}

}  // namespace

std::vector<OpDef> linalg_spectral_ops() {
  return {qr_op(), svd_op(), singular_values_op(), eigh_op(), eigvalsh_op()};
}

}  // namespace samegrad
