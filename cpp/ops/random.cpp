// Random numbers: functions of (seed, op, step, global row), so any split of the rows over replicas
// draws the same.
#include "kernels/table.h"
#include "ops/attributes.h"
#include "ops/families.h"
#include "ops/parts.h"
#include "ops/rules.h"
#include "ops/transpose.h"

namespace samegrad {
namespace {

enum class Draw { kUniform, kNormal, kTruncatedNormal, kIntegers };

// Steele, Lea and Flood's SplitMix64 finaliser.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

RandomKey key_of(const KernelArgs& args) {
  const auto& attrs = args.attrs.as<DrawAttrs>();
  const auto seed = std::uint64_t(attrs.seed), ordinal = std::uint64_t(attrs.ordinal);
  return {mix(args.facts.seed) ^ mix(mix(seed)), mix(mix(ordinal) ^ args.facts.step)};
}

template <Draw kDraw>
void draw(const KernelArgs& args, std::int64_t first_row, std::int64_t rows, std::int64_t n,
          void* y) {
  const RandomKey key = key_of(args);
  const DType dtype = args.out[0].dtype;
  if (rows == 0 || n == 0) return;
  if constexpr (kDraw == Draw::kIntegers) {
    const auto& range = args.attrs.as<DrawAttrs>();
    kernels().random_integers(dtype)(key, first_row, rows, n, range.low, range.high, y);
  } else {
    const RandomKernels& random = kernels().random(sum_type(dtype));
    const auto f = kDraw == Draw::kUniform  ? random.uniform
                   : kDraw == Draw::kNormal ? random.normal
                                            : random.truncated_normal;
    if (!is_widened(dtype)) return f(key, first_row, rows, n, y);
    const Scratch::Frame frame(args.scratch);
    const DType wide = sum_type(dtype);
    void* drawn = args.scratch.take(std::size_t(rows * n) * size_of(wide));
    f(key, first_row, rows, n, drawn);
    kernels().cast(wide, dtype)(drawn, y, rows * n);
  }
}

template <Draw kDraw>
void check_drawn(const InferArgs& args, DType dtype) {
  const bool integers = kDraw == Draw::kIntegers;
  check_type(bit_of(dtype) & (integers ? kIndices : kFloats), args.op.name, "dtype must be ",
             names_of(integers ? kIndices : kFloats), ": got ", name_of(dtype), ".");
  if (!integers) return;
  const auto& range = args.attrs.as<DrawAttrs>();
  check_value(range.low < range.high, args.op.name, "low must be below high: got low=", range.low,
              ", high=", range.high, ".");
}

template <Draw kDraw>
Inferred shape_rule(const InferArgs& args) {
  const ValueType& source = args.in[0];
  check_type(source.dtype == DType::kInt64 && source.shape.rank() == 0, args.op.name,
             "the row source must be an int64 scalar: got ", to_string(source), ".");
  ValueType type{args.attrs.as<DrawAttrs>().dtype, {}, {}};
  check_drawn<kDraw>(args, type.dtype);
  for (std::int64_t dim : args.attrs.as<DrawAttrs>().shape) {
    check_value(dim >= 0, args.op.name, "sizes must not be negative: got shape ",
                to_string(args.attrs.as<DrawAttrs>().shape), ".");
    type.shape.push_back(dim);
  }
  return {{type}, Locality::kWhole};
}

// Rows [begin, end) of a result whose first row is the given one.
template <Draw kDraw>
void draw_rows(const KernelArgs& args, std::int64_t first, std::int64_t begin, std::int64_t end) {
  const View& y = args.out[0];
  const std::int64_t n = y.shape.rank() > 0 ? y.shape.size(1, y.shape.rank()) : 1;
  const std::int64_t row = n * std::int64_t(size_of(y.dtype));
  draw<kDraw>(args, first + begin, end - begin, n, y.as<char>() + begin * row);
}

template <Draw kDraw>
void run_shape(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t source = *args.in[0].as<const std::int64_t>();
  draw_rows<kDraw>(args, source * rows_of_result(cost_args(args)), begin, end);
}

template <Draw kDraw>
Inferred like_rule(const InferArgs& args) {
  ValueType type = args.in[0];
  type.dtype = args.attrs.as<DrawAttrs>().dtype;
  check_drawn<kDraw>(args, type.dtype);
  return one_result(args, type);
}

// Rows are those of the example axis, numbered over all replicas; where it is not the first, what
// lies before it is drawn with it.
std::int64_t rows_of_like(const CostArgs& args) {
  const bool turned = args.out[0].shape.rank() > 0 && args.in[0].example_axis > 0;
  return turned ? 1 : rows_of_result(args);
}

template <Draw kDraw>
void draw_turned(const KernelArgs& args, std::int64_t first) {
  const View& y = args.out[0];
  const int axis = args.in[0].example_axis;
  const std::int64_t before = y.shape.size(0, axis);
  const std::int64_t after = y.shape.size(axis + 1, y.shape.rank());
  const Scratch::Frame frame(args.scratch);
  void* front = args.scratch.take(size_of(y.dtype) * std::size_t(y.size()));
  draw<kDraw>(args, first, y.shape[axis], before * after, front);
  swap_axes(front, y.shape[axis], before, after, size_of(y.dtype), y.data);
}

template <Draw kDraw>
void run_like(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const View& x = args.in[0];
  if (args.out[0].shape.rank() == 0 || x.example_axis < 0) {
    // Without examples each replica has its own rows (and a value all share is drawn once).
    const std::int64_t size = args.attrs.as<DrawAttrs>().rows;
    const std::int64_t own = is_symbolic(size)
                                 ? args.facts.first_example[std::size_t(size - kSymbols)]
                                 : args.facts.replica * rows_of_result(cost_args(args));
    return draw_rows<kDraw>(args, own, begin, end);
  }
  const std::int64_t share = args.facts.first_example[std::size_t(args.symbol)];
  const std::int64_t first = (share + args.first_example) * x.rows_per_example;
  if (x.example_axis > 0) return draw_turned<kDraw>(args, first);
  draw_rows<kDraw>(args, first, begin, end);
}

template <Draw kDraw>
OpDef random_row(const char* name, const char* doc, bool like) {
  OpDef op;
  op.name = like ? text(name, "_like") : name;
  op.doc = like ? text(doc, " Shape and examples are those of x.") : doc;
  op.operands = {like ? "x" : "row_source"};
  constexpr bool kWhole = kDraw == Draw::kIntegers;
  op.attrs = like ? schema_of<DrawRow<true, kWhole>>() : schema_of<DrawRow<false, kWhole>>();
  op.traits = kRandomOp | kNoGradient;
  op.infer = like ? like_rule<kDraw> : shape_rule<kDraw>;
  if (like) {
    set_parts<rows_of_like, run_like<kDraw>>(op);
  } else {
    set_parts<rows_of_result, run_shape<kDraw>>(op);
  }
  // Ten rounds of a cipher for four numbers, and what makes draws of them.
  op.flops = [](const CostArgs& args) { return 32.0 * double(args.out[0].size()); };
  op.type_only = like ? 1 : 0;
  Sample sample;
  DrawAttrs attrs;
  if (kWhole) attrs = {.dtype = DType::kInt64, .low = -3, .high = 9};
  if (like) {
    sample.shapes = {{5, 7}};
    sample.batched = {1};
    sample.attrs = DrawRow<true, kWhole>(attrs);
  } else {
    sample.shapes = {{}};
    sample.dtypes = {DType::kInt64};
    sample.integer_high = 1;
    attrs.shape = {4, 3};
    sample.attrs = DrawRow<false, kWhole>(attrs);
  }
  op.samples = {sample};
  return op;
}

}  // namespace

std::vector<OpDef> random_ops() {
  std::vector<OpDef> ops;
  for (const bool like : {false, true}) {
    ops.push_back(random_row<Draw::kUniform>("random_uniform", "Uniform in [0, 1).", like));
    ops.push_back(
        random_row<Draw::kNormal>("random_normal", "Normal, mean 0 and deviation 1.", like));
    ops.push_back(random_row<Draw::kTruncatedNormal>(
        "random_truncated_normal", "Normal, drawn again until within 2 deviations.", like));
    ops.push_back(
        random_row<Draw::kIntegers>("random_integers", "Whole numbers in [low, high).", like));
  }
  return ops;
}

}  // namespace samegrad
