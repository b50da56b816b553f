// One row of an array, at an index that a step computes: read, written, or alone among zeros. Loops
// write and add such rows where the array is (plan/element_writes.h).
#include "ops/tensor_array.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ops/as_type.h"
#include "ops/expr.h"
#include "ops/rules.h"
#include "ops/stacked_iterations.h"

namespace samegrad {
namespace {

// ---- shapes ----

void check_array(const InferArgs& args, int x, int index) {
  check_min_rank(args, x, 1);
  check_dtype(args, index, kIndices);
  const ValueType& type = args.in[std::size_t(x)];
  SG_CHECK_VALUE(!type.batched() || type.batch.axis > 0, args.op.name,
                 "the rows of the array must be no examples: got ", to_string(type), ".");
  const ValueType& at = args.in[std::size_t(index)];
  SG_CHECK_VALUE(at.shape.rank() == 0 && !at.batched(), args.op.name,
                 "the index must be one integer: got ", to_string(at), ".");
}

// The type of an array whose rows are what they were and one more row.
ValueType array_with(const InferArgs& args, int x, int row) {
  ValueType array = args.in[std::size_t(x)], given = args.in[std::size_t(row)];
  given.dtype = array.dtype;
  const ValueType wanted = entry_type(array);
  const auto joined = joined_type(args.symbols, wanted, given);
  SG_CHECK_VALUE(joined.has_value(), args.op.name,
                 "the row must have the shape of the array's: got ", to_string(given), " for ",
                 to_string(wanted), ".");
  for (int axis = 1; axis < array.shape.rank(); ++axis) array.shape[axis] = joined->shape[axis - 1];
  array.batch = joined->batch;
  if (array.batched()) ++array.batch.axis;
  return array;
}

Inferred read_rule(const InferArgs& args) {
  check_array(args, 0, 1);
  return one_result(args, entry_type(args.in[0]));
}

Inferred write_rule(const InferArgs& args) {
  check_array(args, 0, 1);
  SG_CHECK_VALUE(args.in[0].dtype == args.in[2].dtype, args.op.name,
                 "the row must have the dtype of the array: got ", dtypes_of_operands(args, 2, 3),
                 " for ", dtypes_of_operands(args, 0, 1), ".");
  return one_result(args, array_with(args, 0, 2));
}

Inferred place_rule(const InferArgs& args) {
  check_dtype(args, 0, kFloats);
  check_array(args, 2, 1);
  ValueType y = array_with(args, 2, 0);
  y.dtype = args.in[0].dtype;
  return one_result(args, y);
}

// ---- kernels ----

std::int64_t row_of(const View& index, std::int64_t rows) {
  return row_at(index.dtype, index.data, rows);
}
std::size_t bytes_of(const View& x) {
  return std::size_t(x.size()) * size_of(x.dtype);
}

void read_kernel(const KernelArgs& args) {
  const View &x = args.in[0], &y = args.out[0];
  const auto row = std::size_t(row_of(args.in[1], x.shape[0]));
  const std::size_t bytes = bytes_of(y);
  if (bytes) std::memcpy(y.data, x.as<char>() + row * bytes, bytes);
}

void write_kernel(const KernelArgs& args) {
  const View &x = args.in[0], &y = args.out[0], &row = args.in[2];
  const auto at = std::size_t(row_of(args.in[1], x.shape[0]));
  const std::size_t bytes = bytes_of(row);
  if (!bytes) return;
  std::memcpy(y.data, x.data, bytes_of(y));
  std::memcpy(y.as<char>() + at * bytes, row.data, bytes);
}

void place_kernel(const KernelArgs& args) {
  const View &y = args.out[0], &row = args.in[0];
  const std::int64_t at = row_of(args.in[1], y.shape[0]), size = row.size();
  visit<kFloats>("place_row", y.dtype, [&]<class T>() {
    std::fill_n(y.as<T>(), y.size(), T(-0.0));
    std::copy_n(row.as<T>(), size, y.as<T>() + at * size);
  });
}

// ---- rows of the table ----

OpDef op_of(const char* name, const char* doc, std::vector<std::string> operands,
            std::uint32_t scaled) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.min_arity = op.max_arity = int(operands.size());
  op.operands = std::move(operands);
  op.linearity = Linearity::kSum;
  op.scaled = scaled;
  op.traits = kMayRaise;
  return op;
}

Sample sample_of(std::vector<std::vector<std::int64_t>> shapes) {
  Sample s{.shapes = std::move(shapes), .attrs = {}};
  s.dtypes.assign(s.shapes.size(), DType::kFloat32);
  s.dtypes[1] = DType::kInt64;
  s.integer_high = 3;
  return s;
}

OpDef read_op() {
  OpDef op = op_of("read_row", "The row of an array at an index.", {"x", "index"}, 1u);
  op.traits |= kAnyType;
  op.infer = read_rule;
  op.kernel = read_kernel;
  op.vjp = [](const VjpArgs& v) {
    const Expr ct(v.b, v.ct[0]), x(v.b, v.in[0]), index(v.b, v.in[1]);
    const Value placed = call("place_row", ct, index, x).value();
    return cotangents(as_type(v.b, placed, x.type()), none());
  };
  op.samples = {sample_of({{3, 2}, {}}), sample_of({{4, 2, 3}, {}})};
  return op;
}

OpDef write_op() {
  OpDef op =
      op_of("write_row", "An array with another row at an index.", {"x", "index", "row"}, 5u);
  op.traits |= kAnyType;
  op.infer = write_rule;
  op.kernel = write_kernel;
  op.vjp = [](const VjpArgs& v) {
    const Expr ct(v.b, v.ct[0]), index(v.b, v.in[1]), row(v.b, v.in[2]);
    const Value others = call("write_row", ct, index, full_like(row, -0.0)).value();
    const Value own = call("read_row", ct, index).value();
    return cotangents(as_type(v.b, others, v.b.type(v.in[0])), none(),
                      as_type(v.b, own, v.b.type(v.in[2])));
  };
  op.samples = {sample_of({{3, 2}, {}, {2}}), sample_of({{4}, {}, {}})};
  return op;
}

// x + -0.0 is x: adding it changes no bit of other rows.
OpDef place_op() {
  OpDef op = op_of("place_row", "A row at its index among those of another array, which are -0.0.",
                   {"row", "index", "like"}, 1u);
  op.traits |= kScatters;
  op.type_only = 1u << 2;
  op.infer = place_rule;
  op.kernel = place_kernel;
  op.vjp = [](const VjpArgs& v) {
    return cotangents(call("read_row", Expr(v.b, v.ct[0]), Expr(v.b, v.in[1])), none(), none());
  };
  op.samples = {sample_of({{2}, {}, {3, 2}}), sample_of({{}, {}, {4}})};
  return op;
}

}  // namespace

std::int64_t row_at(DType dtype, const void* index, std::int64_t rows) {
  return visit<kIndices>("TensorArray", dtype, [&]<class I>() {
    const auto at = std::int64_t(*static_cast<const I*>(index));
    if (at < 0 || at >= rows) {
      fail(ErrorKind::kInvalidArgument, "TensorArray", "an index must lie in [0, ", rows,
           "), as the array has ", rows, " elements: got ", at, ".");
    }
    return at;
  });
}

std::vector<OpDef> tensor_array_ops() {
  return {read_op(), write_op(), place_op()};
}

}  // namespace samegrad
