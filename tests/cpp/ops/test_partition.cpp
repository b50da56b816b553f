// How threads share a call: any cut of its parts gives the bits of the kernel that has everything.
#include <limits>

#include "ops/op_run.h"
#include "ops/scan.h"
#include "ops/sort.h"

namespace samegrad::testing {
namespace {

// A few cuts, some of which are in the middle of rows.
std::vector<std::vector<std::int64_t>> cuts_of(std::int64_t parts) {
  std::vector<std::vector<std::int64_t>> cuts{{0}};
  for (const std::int64_t size : {std::int64_t(1), std::int64_t(3), parts / 7, parts / 2}) {
    if (size == 0 || parts / size > 100) continue;
    cuts.emplace_back();
    for (std::int64_t at = 0; at < parts; at += size) cuts.back().push_back(at);
  }
  return cuts;
}

int check_parts(const OpRun& run) {
  if (!run.op().parts.run || run.inferred().locality == Locality::kBatchReduction) return 0;
  const std::vector<Array> whole = run.run();
  for (const std::vector<std::int64_t>& begins : cuts_of(run.parts())) {
    const std::vector<Array> cut = run.run_parts(begins);
    for (std::size_t i = 0; i < cut.size(); ++i) {
      CHECK(same_bits(cut[i], whole[i]), run.op().name, " in ", begins.size(), " parts");
    }
  }
  return 1;
}

OpRun run_of(const OpDef& op, const Sample& sample, DType real) {
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < sample.shapes.size(); ++i) {
    DType dtype = i < sample.dtypes.size() ? sample.dtypes[i] : real;
    if (dtype == DType::kFloat32) dtype = real;
    const bool batched = i < sample.batched.size() && sample.batched[i];
    operands.push_back({filled(dtype, Shape(sample.shapes[i]), sample.low, sample.high,
                               std::max(sample.integer_high, 1.0)),
                        batched ? 0 : -1});
  }
  return OpRun(op.name, std::move(operands), sample.attrs);
}

OpRun run_of(const std::string& op, DType dtype, const Shape& shape, Attrs attrs) {
  return OpRun(op, {{filled(dtype, shape, -2, 2, 200)}}, std::move(attrs));
}

TEST("any parts give the same bits, for every row of the table that has them") {
  register_all_ops();
  int checked = 0;
  for (const OpDef* op : OpRegistry::instance().all()) {
    for (const Sample& sample : op->samples) {
      for (const DType real : {DType::kFloat32, DType::kFloat64}) {
        checked += check_parts(run_of(*op, sample, real));
      }
    }
  }
  CHECK(checked > 400, checked);
}

const Shape kShapes[] = {{300000}, {3, 70001}, {70001, 3}, {130, 1500}, {129, 40, 33}, {5, 700, 8}};
constexpr DType kSomeTypes[] = {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kUInt8};

TEST("a large reduction has the same bits in any parts, along any axes") {
  for (const char* name : {"reduce_sum", "reduce_prod", "reduce_max", "reduce_min"}) {
    for (const DType dtype : kSomeTypes) {
      for (const Shape& shape : kShapes) {
        for (int axes = 1; axes < 1 << shape.rank(); ++axes) {
          ReduceAttrs attrs;
          for (int axis = 0; axis < shape.rank(); ++axis) {
            if (axes >> axis & 1) attrs.axes.push_back(axis);
          }
          const OpRun run = run_of(name, dtype, shape, attrs);
          CHECK(run.parts() >= 8, run.parts(), " parts of ", to_string(shape));
          check_parts(run);
        }
      }
    }
  }
}

TEST("a large arg_max is the same in any parts, equal ones and NaN included") {
  for (const char* name : {"arg_max", "arg_min"}) {
    for (const DType dtype : kSomeTypes) {
      for (const Shape& shape : kShapes) {
        for (int axis = 0; axis < shape.rank(); ++axis) {
          const OpRun run = run_of(name, dtype, shape, ArgMaxAttrs{.axis = axis});
          CHECK(run.parts() >= 8);
          check_parts(run);
        }
      }
    }
    Array x = filled(DType::kFloat32, {200000});
    for (const std::int64_t at : {150000, 150001, 190000})
      x.data<float>()[at] = std::numeric_limits<float>::quiet_NaN();
    const OpRun run(name, {{x}}, ArgMaxAttrs{.axis = 0});
    CHECK(run.run()[0].data<std::int64_t>()[0] == 150000);
    check_parts(run);
  }
}

TEST("what moves elements has the same bits in any parts") {
  const auto perm = [](Ints axes) { return TransposeAttrs{.perm = std::move(axes)}; };
  const Shape flat{100000}, cube{70, 41, 33};
  for (const Ints& axes : {Ints{2, 1, 0}, Ints{1, 0, 2}, Ints{0, 2, 1}}) {
    check_parts(run_of("transpose", DType::kFloat32, cube, perm(axes)));
  }
  for (const std::int64_t step : {1, 3, -1, -4}) {
    check_parts(run_of(
        "slice", DType::kFloat32, flat,
        SliceAttrs{.begin = {step > 0 ? 5 : -5}, .end = {step > 0 ? -7 : 7}, .strides = {step}}));
    const Shape like{91, 11};
    const SliceAttrs attrs{.begin = {step > 0 ? 2 : -3, INT64_MIN},
                           .end = {step > 0 ? 80 : 4, INT64_MAX},
                           .strides = {step, -2}};
    const Array part = OpRun("slice", {{filled(DType::kFloat32, like)}}, attrs).run()[0];
    check_parts(OpRun("slice_grad", {{part}, {filled(DType::kFloat32, like)}}, attrs));
  }
  check_parts(
      run_of("pad", DType::kFloat32, cube, PadAttrs{.paddings = {3, 0, 0, 9, 1, 1}, .value = 0.5}));
  check_parts(run_of("reverse", DType::kFloat64, cube, ReverseAttrs{.axes = {0, 2}}));
  check_parts(run_of("tile", DType::kInt32, cube, TileAttrs{.multiples = {2, 1, 3}}));
  for (int axis = 0; axis < 3; ++axis) {
    check_parts(OpRun("concat",
                      {{filled(DType::kFloat32, cube)}, {filled(DType::kFloat32, cube, 5, 6)}},
                      ConcatAttrs{.axis = axis}));
    for (const bool back : {false, true}) {
      check_parts(run_of("cumsum", DType::kFloat32, cube,
                         ScanAttrs{.axis = axis, .exclusive = back, .reverse = back}));
    }
    check_parts(run_of("arg_sort", DType::kFloat32, cube, SortAttrs{.axis = axis}));
  }
}

TEST("a row that raises names the first place, whatever part it is in") {
  Array indices = filled(DType::kInt64, {40}, 0, 1, 3);
  indices.data<std::int64_t>()[29] = 7;
  const OpRun run("gather", {{filled(DType::kFloat32, {3, 5})}, {indices}}, IndexAttrs{.axis = 0});
  try {
    run.run_parts({0, 10, 25});
    CHECK(false, "no error");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("got 7 at position (29,)") != std::string::npos,
          error.what());
  }
}

}  // namespace
}  // namespace samegrad::testing
