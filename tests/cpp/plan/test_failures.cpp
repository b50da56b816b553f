// Steps for which there is no memory change nothing, wherever it runs out.
#include <new>

#include "allocation.h"
#include "check.h"
#include "kernels/table.h"
#include "ops/attributes.h"
#include "ops/op_run.h"
#include "ops/registry.h"
#include "programs.h"

using namespace samegrad;
using samegrad::testing::filled;

namespace {

// Whether a call of the row, at once and in parts, takes no memory but what it says.
bool keeps_its_word(const OpDef& op, const std::vector<Array>& operands, const Attrs& some_attrs) {
  const Attrs attrs = complete_attrs(op, some_attrs);
  std::vector<ValueType> types;
  for (const Array& x : operands) types.push_back({x.dtype(), x.shape(), {}});
  Symbols symbols;
  const Inferred inferred = op.infer({op, types, attrs, symbols});
  if (inferred.locality == Locality::kBatchReduction) return true;
  std::vector<View> in, out;
  std::vector<Array> results;
  for (const Array& x : operands) in.push_back({x.raw(), x.shape(), x.dtype()});
  for (const ValueType& type : inferred.types) {
    results.emplace_back(type.dtype, concrete_shape(type, {}));
    out.push_back({results.back().raw(), results.back().shape(), type.dtype});
  }
  const CostArgs shapes{attrs, in, out};
  const std::size_t bytes = op.scratch_bytes(shapes);
  if (bytes == OpDef::kUnknownBytes) return true;
  const ReplicaContext replica_context;
  kernels();  // are loaded
  Scratch scratch, none;
  const auto args_with = [&](Scratch& memory, std::byte* state) {
    return KernelArgs{.attrs = attrs,
                      .in = in,
                      .out = out,
                      .replica_context = replica_context,
                      .scratch = memory,
                      .state = state};
  };
  const std::size_t left = op.parts.state_bytes ? op.parts.state_bytes(shapes) : 0;
  std::byte* state = left ? static_cast<std::byte*>(scratch.take(left)) : nullptr;
  {
    const Scratch::Frame frame(scratch);
    scratch.take(bytes);
  }
  return !fails_at_allocation(0, [&] {
    if (op.kernel) op.kernel(args_with(scratch, nullptr));
    if (!op.parts.run) return;
    const std::int64_t units = op.parts.count(shapes);
    op.parts.run(args_with(none, state), 0, units / 2);
    op.parts.run(args_with(none, state), units / 2, units);
    if (op.parts.finish) op.parts.finish(args_with(scratch, state));
  });
}

}  // namespace

TEST("a row that says what memory its calls take takes no other") {
  register_all_ops();
  int rows = 0;
  for (const OpDef* op : OpRegistry::instance().all()) {
    if (!op->scratch_bytes) continue;
    ++rows;
    for (const Sample& sample : op->samples) {
      std::vector<Array> operands;
      for (std::size_t i = 0; i < sample.shapes.size(); ++i) {
        const DType dtype = i < sample.dtypes.size() ? sample.dtypes[i] : DType::kFloat32;
        operands.push_back(filled(dtype, Shape(sample.shapes[i]), sample.low, sample.high,
                                  std::max(sample.integer_high, 1.0)));
      }
      CHECK(keeps_its_word(*op, operands, sample.attrs), op->name);
    }
  }
  CHECK(rows > 20, rows);
}

TEST("a large reduction or choice takes no memory but what it says") {
  register_all_ops();
  const auto row = [](const char* name) -> const OpDef& {
    return OpRegistry::instance().get(name);
  };
  for (const Shape& shape : {Shape{300000}, Shape{3, 70001}, Shape{130, 1500}, Shape{129, 40, 33},
                             Shape{5, 700, 8}, Shape{4, 0, 3}}) {
    const std::vector<Array> x{filled(DType::kFloat32, shape)};
    for (int axes = 1; axes < 1 << shape.rank(); ++axes) {
      ReduceAttrs attrs;
      for (int axis = 0; axis < shape.rank(); ++axis) {
        if (axes >> axis & 1) attrs.axes.push_back(axis);
      }
      CHECK(keeps_its_word(row("reduce_sum"), x, attrs), to_string(shape), axes);
      CHECK(keeps_its_word(row("reduce_max"), x, attrs), to_string(shape), axes);
    }
    if (shape.size() == 0) continue;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      CHECK(keeps_its_word(row("arg_max"), x, ArgMaxAttrs{.axis = axis}), to_string(shape), axis);
    }
  }
}

TEST("a step that finds no memory, at whatever point, leaves all variables as they were") {
  int failures = 0;
  for (int k = 0; k < 400; ++k) {
    Fake f(5);
    f.write(0, f.sum({f.old(0), f.old(0)}));        // in place
    f.write(1, f.sum({f.old(1), f.old(0)}));        // in place, in a later step
    f.write(2, f.apply(alias_op(), {f.old(3)}));    // copied
    f.write(3, f.apply(reverse_op(), {f.old(3)}));  // replaced, as the old value is stored
    f.write(4, f.sum({f.old(4), f.old(4)}));        // in place, but somebody holds it
    f.output(f.sum({f.old(4), f.old(1)}));
    Executable executable(f.plan());
    const Array held = f.cell(4).components()[0];
    const bool failed = fails_at_allocation(k, [&] { f.run(executable); });
    failures += failed;
    const float expected[] = {2, 12, 31, 33, 82};
    for (int v = 0; v < 5; ++v) {
      const float old = 10.f * float(v) + 1;
      CHECK_EQ(f.cell(v).data()[1], failed ? old : expected[v]);
    }
    CHECK_EQ(held.data<float>()[1], 41.f);
    if (!failed) break;
  }
  CHECK(failures > 5, failures);
}

TEST("steps that fail leave nothing behind, however many they are") {
  OpDef raises = reverse_op();
  raises.kernel = [](const KernelArgs&) { fail(ErrorKind::kValue, "test", "no."); };
  Fake f(1);
  f.output(f.apply(raises, {f.old(0)}));
  Executable executable(f.plan());
  const auto largest = [&] {
    largest_object = 0;
    CHECK_THROWS(f.run(executable), Error);
    return largest_object.load();
  };
  const std::size_t first = largest();
  for (int i = 0; i < 20000; ++i) CHECK_THROWS(f.run(executable), Error);
  CHECK_EQ(largest(), first);
}

TEST("a step that reads its new values finds the memory for it before it writes any") {
  register_all_ops();
  int failures = 0;
  for (int k = 0; k < 400; ++k) {
    Fake f(2);
    Builder b(f.graph());
    const Value first = f.sum({f.old(0), f.old(0)});
    const Value second = f.sum({f.old(1), first});
    f.write(0, first);
    f.write(1, second);
    f.output(b("reduce_sum", {second}, ReduceAttrs{.axes = {0}}));
    f.output(b("arg_max", {first}, ArgMaxAttrs{.axis = 0}));
    f.output(b("transpose", {first}, TransposeAttrs{.perm = {0}}));
    const Plan plan = f.plan();
    CHECK(plan.stores[0] == Aliasing::kInPlace);
    CHECK(plan.stores[1] == Aliasing::kInPlace);
    Executable executable(plan);
    const bool failed = fails_at_allocation(k, [&] { f.run(executable); });
    failures += failed;
    CHECK_EQ(f.cell(0).data()[1], failed ? 1.f : 2.f);
    CHECK_EQ(f.cell(1).data()[1], failed ? 11.f : 13.f);
    if (!failed) break;
  }
  CHECK(failures > 5, failures);
}
