// Triangular decompositions, linear equations, inverses and determinants.
#include "ops/linalg.h"
#include "ops/partition.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

double side_of(const View& x) {
  return double(x.shape[x.shape.rank() - 1]);
}

// The cost of kTimes / 3 operations per element and column.
template <int kTimes>
double cubic_flops(const CostArgs& args) {
  return kTimes / 3.0 * double(args.in[0].size()) * side_of(args.in[0]) +
         (args.in.size() > 1 ? 2.0 * double(args.in[1].size()) * side_of(args.in[0]) : 0.0);
}

// The attributes of a solve with the matrix turned over.
template <class SomeAttrs>
Attrs adjoint_of(const Attrs& attrs) {
  SomeAttrs other = attrs.as<SomeAttrs>();
  other.adjoint = !other.adjoint;
  return other;
}

Expr solve_triangle(Expr a, Expr b, bool lower, bool adjoint = false) {
  return call("triangular_solve", a, b, TriangularAttrs{lower, adjoint});
}

// ---- cholesky ----

Inferred cholesky_rule(const InferArgs& args) {
  return by_matrix(args, {square_type(args, 0)});
}

// Murray, "Differentiation of the Cholesky decomposition", 2016: L⁻ᵀ Φ(Lᵀ ct) L⁻¹, symmetric; Φ
// takes the lower triangle and half of the diagonal.
Values cholesky_vjp(const VjpArgs& v) {
  const Expr l(v.b, v.out[0]), ct(v.b, v.ct[0]);
  const Expr inner = product(l, ct, true);
  const Expr half = (lower_triangle(inner) + lower_triangle(inner, -1)) * 0.5;
  const Expr left = solve_triangle(l, half, true, true);
  const Expr both = solve_triangle(l, turned(left), true, true);
  return cotangents((both + turned(both)) * 0.5);
}

OpDef cholesky_op() {
  OpDef op;
  op.name = "cholesky";
  op.doc =
      "The lower triangles L with L Lᵀ = a, of symmetric positive definite matrices, whose lower "
      "triangles are read.";
  op.operands = {"a"};
  op.traits = kMayRaise;
  op.infer = cholesky_rule;
  set_parts<matrices_of, run_cholesky>(op);
  op.vjp = cholesky_vjp;
  op.flops = cubic_flops<1>;
  // Random numbers that are positive definite: those of tests/unit/linalg/test_matrices.py are
  // larger.
  op.samples = {{.shapes = {{1, 1}}, .attrs = {}, .low = 0.5},
                {.shapes = {{0, 0}}, .attrs = {}},
                {.shapes = {{2, 2, 1, 1}}, .attrs = {}, .low = 0.5},
                {.shapes = {{5, 1, 1}}, .attrs = {}, .low = 0.5, .batched = {1}}};
  return op;
}

// ---- equations ----

// A matrix and columns for each.
Inferred equations_rule(const InferArgs& args) {
  check_same_dtype(args, 0, 2);
  const ValueType a = square_type(args, 0), b = matrix_type(args, 1);
  const int rank = a.shape.rank();
  bool fits = b.shape.rank() == rank && a.batch == b.batch;
  for (int axis = 0; fits && axis < rank - 1; ++axis) {
    fits = same_size(args, size_along(args, a, axis), size_along(args, b, axis));
  }
  SG_CHECK_VALUE(fits, args.op.name,
                 "each matrix must have columns of its own, as long as its rows: got ",
                 shapes_of_operands(args), "; broadcast the leading axes.");
  return by_matrix(args, {b});
}

Values triangular_solve_vjp(const VjpArgs& v) {
  const auto& attrs = v.attrs.as<TriangularAttrs>();
  const Expr a(v.b, v.in[0]), x(v.b, v.out[0]);
  const Expr of_b =
      call("triangular_solve", a, Expr(v.b, v.ct[0]), adjoint_of<TriangularAttrs>(v.attrs));
  const Expr of_a = attrs.adjoint ? product(x, of_b, false, true) : product(of_b, x, false, true);
  return cotangents(attrs.lower ? lower_triangle(-of_a) : upper_triangle(-of_a), of_b);
}

// Numbers in [1, 2) are triangles without a 0, and regular if they are random.
std::vector<Sample> samples_of_equations(const std::vector<Attrs>& attrs) {
  std::vector<Sample> samples{{.shapes = {{1, 1}, {1, 2}}, .attrs = attrs[0], .low = 1},
                              {.shapes = {{1, 1}, {1, 0}}, .attrs = attrs[0], .low = 1}};
  for (const Attrs& one : attrs) {
    samples.push_back({.shapes = {{2, 2}, {2, 3}}, .attrs = one, .low = 1});
    samples.push_back(
        {.shapes = {{5, 2, 2}, {5, 2, 1}}, .attrs = one, .low = 1, .batched = {1, 1}});
  }
  samples.push_back({.shapes = {{2, 0, 0}, {2, 0, 3}}, .attrs = attrs[0]});
  return samples;
}

OpDef triangular_solve_op() {
  OpDef op;
  op.name = "triangular_solve";
  op.doc = "The x with a x = b, of which only a triangle of each matrix a is read.";
  op.min_arity = op.max_arity = 2;
  op.operands = {"a", "b"};
  op.linearity = Linearity::kSum;
  op.scaled = 1u << 1;
  op.attrs = schema_of<TriangularAttrs>();
  op.traits = kMayRaise;
  op.infer = equations_rule;
  set_parts<matrices_of, run_triangular_solve>(op);
  op.vjp = triangular_solve_vjp;
  op.flops = cubic_flops<0>;
  op.samples = samples_of_equations({TriangularAttrs{}, TriangularAttrs{false, false},
                                     TriangularAttrs{true, true}, TriangularAttrs{false, true}});
  return op;
}

// Giles, "Collected matrix derivative results for forward and reverse mode", 2008.
Values solve_vjp(const VjpArgs& v) {
  const Expr a(v.b, v.in[0]), x(v.b, v.out[0]);
  const Expr of_b = call("matrix_solve", a, Expr(v.b, v.ct[0]), adjoint_of<SolveAttrs>(v.attrs));
  const bool adjoint = v.attrs.as<SolveAttrs>().adjoint;
  return cotangents(adjoint ? -product(x, of_b, false, true) : -product(of_b, x, false, true),
                    of_b);
}

OpDef solve_op() {
  OpDef op;
  op.name = "matrix_solve";
  op.doc = "The x with a x = b, of regular matrices a.";
  op.min_arity = op.max_arity = 2;
  op.operands = {"a", "b"};
  op.linearity = Linearity::kSum;
  op.scaled = 1u << 1;
  op.attrs = schema_of<SolveAttrs>();
  op.traits = kMayRaise;
  op.infer = equations_rule;
  set_parts<matrices_of, run_solve>(op);
  op.vjp = solve_vjp;
  op.flops = cubic_flops<2>;
  op.samples = samples_of_equations({SolveAttrs{}, SolveAttrs{true}});
  return op;
}

// ---- inverses and determinants ----

Inferred square_rule(const InferArgs& args) {
  return by_matrix(args, {square_type(args, 0)});
}

Values inverse_vjp(const VjpArgs& v) {
  const Expr y(v.b, v.out[0]), ct(v.b, v.ct[0]);
  const bool adjoint = v.attrs.as<SolveAttrs>().adjoint;
  const Expr of_y = adjoint ? product(product(y, ct, false, true), y)
                            : product(product(y, ct, true), y, false, true);
  return cotangents(-of_y);
}

OpDef inverse_op() {
  OpDef op;
  op.name = "matrix_inverse";
  op.doc = "The inverses of regular matrices, or their transposes.";
  op.operands = {"a"};
  op.attrs = schema_of<SolveAttrs>();
  op.traits = kMayRaise;
  op.infer = square_rule;
  set_parts<matrices_of, run_inverse>(op);
  op.vjp = inverse_vjp;
  op.flops = cubic_flops<6>;
  op.samples = {{.shapes = {{1, 1}}, .attrs = SolveAttrs{}, .low = 1}};
  for (const bool adjoint : {false, true}) {
    op.samples.push_back({.shapes = {{2, 2}}, .attrs = SolveAttrs{adjoint}, .low = 1});
    op.samples.push_back(
        {.shapes = {{5, 1, 1}}, .attrs = SolveAttrs{adjoint}, .low = 1, .batched = {1}});
  }
  op.samples.push_back({.shapes = {{0, 0}}, .attrs = SolveAttrs{}});
  return op;
}

Inferred determinant_rule(const InferArgs& args) {
  return by_matrix(args, {with_sizes(square_type(args, 0), {})});
}

// ct for each matrix, times the derivative of the logarithm of its determinant.
Expr by_cofactors(Expr ct, Expr a) {
  return as_column(as_column(ct)) * call("matrix_inverse", a, SolveAttrs{.adjoint = true});
}

Values determinant_vjp(const VjpArgs& v) {
  return cotangents(by_cofactors(Expr(v.b, v.ct[0]) * Expr(v.b, v.out[0]), Expr(v.b, v.in[0])));
}

std::vector<Sample> samples_of_determinants() {
  return {{.shapes = {{3, 3}}, .attrs = {}, .low = 0.5},
          {.shapes = {{2, 1, 1}}, .attrs = {}, .low = 1},
          {.shapes = {{2, 0, 0}}, .attrs = {}},
          {.shapes = {{5, 2, 2}}, .attrs = {}, .batched = {1}}};
}

OpDef determinant_op() {
  OpDef op;
  op.name = "determinant";
  op.doc = "The determinants of matrices; the derivative asks for regular ones.";
  op.operands = {"a"};
  op.infer = determinant_rule;
  set_parts<matrices_of, run_determinant>(op);
  op.vjp = determinant_vjp;
  op.flops = cubic_flops<2>;
  op.samples = samples_of_determinants();
  return op;
}

Inferred slogdet_rule(const InferArgs& args) {
  const ValueType number = with_sizes(square_type(args, 0), {});
  return by_matrix(args, {number, number});
}

Values slogdet_vjp(const VjpArgs& v) {
  if (v.ct[1] == kNoValue) return {kNoValue};  // the sign has no slope
  return cotangents(by_cofactors(Expr(v.b, v.ct[1]), Expr(v.b, v.in[0])));
}

OpDef slogdet_op() {
  OpDef op;
  op.name = "slogdet";
  op.doc =
      "The signs of determinants (0 of a singular matrix), and the logarithms of their absolute "
      "values.";
  op.operands = {"a"};
  op.infer = slogdet_rule;
  set_parts<matrices_of, run_slogdet>(op);
  op.vjp = slogdet_vjp;
  op.flops = cubic_flops<2>;
  op.samples = samples_of_determinants();
  return op;
}

// ---- exponential ----

Expr part(Expr x, int axis, std::int64_t begin, std::int64_t end) {
  const auto rank = std::size_t(x.type().shape.rank());
  SliceAttrs attrs{Ints(rank, INT64_MIN), Ints(rank, INT64_MAX), Ints(rank, 1)};
  attrs.begin[std::size_t(axis)] = begin;
  attrs.end[std::size_t(axis)] = end;
  return call("slice", x, attrs);
}

// Mathias, "A chain rule for matrix functions and applications", 1996: it is in the corner of
// the exponential of [aᵀ ct; 0 aᵀ].
Values exponential_vjp(const VjpArgs& v) {
  const Expr ct(v.b, v.ct[0]), back = turned(Expr(v.b, v.in[0]));
  const int rank = back.type().shape.rank();
  const auto joined = [](Expr x, Expr y, int axis) {
    return call("concat", x, y, ConcatAttrs{.axis = axis});
  };
  const Expr upper = joined(back, ct, rank - 1), lower = joined(zeros_like(back), back, rank - 1);
  const Expr whole = call("matrix_exponential", joined(upper, lower, rank - 2));
  const std::int64_t n = dim(back, rank - 1);
  return cotangents(part(part(whole, rank - 2, INT64_MIN, n), rank - 1, n, INT64_MAX));
}

OpDef exponential_op() {
  OpDef op;
  op.name = "matrix_exponential";
  op.doc = "The exponentials of matrices: the sums of aⁿ / n!.";
  op.operands = {"a"};
  op.infer = square_rule;
  set_parts<matrices_of, run_exponential>(op);
  op.vjp = exponential_vjp;
  op.flops = cubic_flops<60>;
  op.samples = {{.shapes = {{3, 3}}, .attrs = {}},
                {.shapes = {{0, 0}}, .attrs = {}},
                {.shapes = {{5, 2, 2}}, .attrs = {}, .batched = {1}}};
  return op;
}

// ---- lu ----

Inferred lu_rule(const InferArgs& args) {
  const ValueType a = matrix_type(args, 0);
  ValueType order = with_sizes(a, {a.shape[a.shape.rank() - 2]});
  order.dtype = DType::kInt32;
  ValueType swaps = with_sizes(a, {smaller_size(args, a)});
  swaps.dtype = DType::kInt32;
  return by_matrix(args, {a, order, swaps});
}

// de Hoog, Anderssen and Lukas, "Differentiation of matrix functionals using triangular
// factorization", 2011: P L⁻ᵀ (the strict lower triangle of Lᵀ ct_L + the upper one of ct_U Uᵀ)
// U⁻ᵀ.
Values lu_vjp(const VjpArgs& v) {
  if (v.ct[0] == kNoValue) return {kNoValue};
  const Expr lu(v.b, v.out[0]), order(v.b, v.out[1]), ct(v.b, v.ct[0]);
  const int rank = lu.type().shape.rank();
  auto& symbols = v.b.graph().symbols;
  if (size_of(symbols, lu.type(), rank - 2) != size_of(symbols, lu.type(), rank - 1)) {
    fail(ErrorKind::kNotImplemented, "lu",
         "has a derivative of square matrices only; stop the gradient with stop_gradient.");
  }
  const Expr l = lower_triangle(lu, -1) + identity_like(lu), u = upper_triangle(lu);
  const Expr inner = lower_triangle(product(l, lower_triangle(ct, -1), true), -1) +
                     upper_triangle(product(upper_triangle(ct), u, false, true));
  const Expr left = solve_triangle(l, inner, true, true);
  const Expr rows = turned(solve_triangle(u, turned(left), false));
  const Expr place = call("arg_sort", order);
  return cotangents(call("take_along_axis", rows, broadcast_like(as_column(place), rows),
                         IndexAttrs{.axis = rank - 2}));
}

OpDef lu_op() {
  OpDef op;
  op.name = "lu";
  op.doc =
      "Matrices that hold L (below the diagonal, whose own is 1) and U; which row of a each row of "
      "L U is (int32); and the swaps that lead there (row i with row swaps[i], for i = 0, 1, …).";
  op.operands = {"a"};
  op.attrs = schema_of<LuAttrs>();
  op.traits = kMayRaise;
  op.infer = lu_rule;
  set_parts<matrices_of, run_lu>(op);
  op.vjp = lu_vjp;
  op.flops = cubic_flops<2>;
  op.samples = {{.shapes = {{1, 1}}, .attrs = LuAttrs{}, .low = 1},
                {.shapes = {{4, 4}}, .attrs = LuAttrs{}},
                {.shapes = {{5, 3, 3}}, .attrs = LuAttrs{}, .batched = {1}},
                {.shapes = {{0, 0}}, .attrs = LuAttrs{}}};
  return op;
}

}  // namespace

std::vector<OpDef> linalg_solve_ops() {
  return {cholesky_op(),    triangular_solve_op(), solve_op(), inverse_op(),
          determinant_op(), slogdet_op(),          lu_op(),    exponential_op()};
}

}  // namespace samegrad
