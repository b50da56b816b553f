// Random numbers: functions of (key, global row), so any split of the rows over replicas draws the
// same. The key is an operand ("stateless") or made of seed, op and step. kernels/random_key.h has
// the formula.
#include <bit>
#include <limits>

#include "kernels/random_key.h"
#include "kernels/table.h"
#include "ops/partition.h"
#include "ops/random_attributes.h"
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

RandomKey key_of_step(const KernelArgs& args) {
  const auto& attrs = args.attrs.as<DrawAttrs>();
  const auto seed = std::uint64_t(attrs.seed);
  auto ordinal = std::uint64_t(attrs.ordinal);
  std::uint64_t step = args.replica_context.step;
  if (attrs.ordinal >= kOfDataFunction && attrs.ordinal < kOutsideSteps) {
    step += ordinal - std::uint64_t(kOfDataFunction);
    ordinal += std::uint64_t(kOutsideSteps - kOfDataFunction);
  }
  return {mix(args.replica_context.seed) ^ mix(mix(seed)), mix(mix(ordinal) ^ step)};
}

RandomKey key_of_draw(const KernelArgs& args) {
  return has_key(args.in.size()) ? draw_key(args.in[0]) : key_of_step(args);
}

// The bits that the 16 of the dtype have no place for: rounded to nearest, what is just below 1
// would be 1.
void round_down(DType dtype, float* x, std::int64_t n) {
  const std::uint32_t kept = ~0u << (dtype == DType::kBFloat16 ? 16 : 13);
  for (std::int64_t i = 0; i < n; ++i) {
    x[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x[i]) & kept);
  }
}

template <Draw kDraw>
void draw(const KernelArgs& args, std::int64_t first_row, std::int64_t rows, std::int64_t n,
          void* y) {
  const RandomKey key = key_of_draw(args);
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
    if (!is_storage_dtype(dtype)) return f(key, first_row, rows, n, y);
    const Scratch::Frame frame(args.scratch);
    const DType wide = sum_type(dtype);
    void* drawn = args.scratch.take(std::size_t(rows * n) * size_of(wide));
    f(key, first_row, rows, n, drawn);
    if (kDraw == Draw::kUniform) round_down(dtype, static_cast<float*>(drawn), rows * n);
    kernels().cast(wide, dtype)(drawn, y, rows * n);
  }
}

void check_range(const InferArgs& args, DType dtype) {
  const auto& range = args.attrs.as<DrawAttrs>();
  const bool all = range.low == 0 && range.high == 0 && size_of(dtype) == sizeof(std::uint64_t);
  if (all && has_key(args.in.size())) return;
  SG_CHECK_VALUE(range.low < range.high, args.op.name,
                 "low must be below high: got low=", range.low, ", high=", range.high, ".");
  using Whole = std::numeric_limits<std::int64_t>;
  const int bits = int(8 * size_of(dtype));
  const bool is_signed = (bit_of(dtype) & kInts) != 0;
  const std::int64_t half = std::int64_t{1} << (bits - 1 - (bits == 64));
  const std::int64_t low = !is_signed ? 0 : bits == 64 ? Whole::min() : -half;
  const std::int64_t high = bits == 64 ? Whole::max() : is_signed ? half : 2 * half;
  SG_CHECK_VALUE(range.low >= low && range.high <= high, args.op.name, "numbers of ",
                 name_of(dtype), " are from ", low, " to below ", high, ": got low=", range.low,
                 ", high=", range.high, ".");
}

constexpr DTypes kUnsigned = bit_of(DType::kUInt32) | bit_of(DType::kUInt64);

template <Draw kDraw>
void check_drawn(const InferArgs& args, DType dtype) {
  const bool integers = kDraw == Draw::kIntegers, keyed = has_key(args.in.size());
  const DTypes allowed = !integers ? kFloats : keyed ? kIndices | kUnsigned : kIndices;
  SG_CHECK_TYPE(bit_of(dtype) & allowed, args.op.name, "dtype must be ", names_of(allowed),
                ": got ", name_of(dtype), ".");
  if (keyed) check_draw_key(args, args.in[0]);
  if (integers) check_range(args, dtype);
}

template <Draw kDraw>
Inferred shape_rule(const InferArgs& args) {
  const ValueType& source = args.in.back();
  SG_CHECK_TYPE(source.dtype == DType::kInt64 && source.shape.rank() == 0, args.op.name,
                "the row source must be an int64 scalar: got ", to_string(source), ".");
  ValueType type{args.attrs.as<DrawAttrs>().dtype, {}, {}};
  check_drawn<kDraw>(args, type.dtype);
  for (std::int64_t dim : args.attrs.as<DrawAttrs>().shape) {
    SG_CHECK_VALUE(dim >= 0 || follows_lengths(args.symbols, dim), args.op.name,
                   "sizes must not be negative: got shape ",
                   to_string(args.attrs.as<DrawAttrs>().shape), ".");
    type.shape.push_back(dim);
  }
  return {{type}, Locality::kFullBatch};
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
  const std::int64_t source = *args.in.back().as<const std::int64_t>();
  draw_rows<kDraw>(args, source * rows_of_result(cost_args(args)), begin, end);
}

template <Draw kDraw>
Inferred like_rule(const InferArgs& args) {
  ValueType type = args.in.back();
  type.dtype = args.attrs.as<DrawAttrs>().dtype;
  check_drawn<kDraw>(args, type.dtype);
  return one_result(args, type);
}

// Rows are those of the example axis, numbered over all replicas; where it is not the first, what
// is before it is drawn with it.
std::int64_t rows_of_like(const CostArgs& args) {
  const bool turned = args.out[0].shape.rank() > 0 && args.in.back().example_axis > 0;
  return turned ? 1 : rows_of_result(args);
}

template <Draw kDraw>
void draw_turned(const KernelArgs& args, std::int64_t first) {
  const View& y = args.out[0];
  const int axis = args.in.back().example_axis;
  const std::int64_t before = y.shape.size(0, axis);
  const std::int64_t after = y.shape.size(axis + 1, y.shape.rank());
  const Scratch::Frame frame(args.scratch);
  void* front = args.scratch.take(size_of(y.dtype) * std::size_t(y.size()));
  draw<kDraw>(args, first, y.shape[axis], before * after, front);
  swap_axes(front, y.shape[axis], before, after, size_of(y.dtype), y.data);
}

template <Draw kDraw>
void run_like(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const View& x = args.in.back();
  if (args.out[0].shape.rank() == 0 || x.example_axis < 0) {
    // Without examples each replica has its own rows (and a value all share is drawn once).
    const std::int64_t size = args.attrs.as<DrawAttrs>().rows;
    const std::int64_t own = is_symbolic(size)
                                 ? args.replica_context.first_example[std::size_t(size - kSymbols)]
                                 : args.replica_context.replica * rows_of_result(cost_args(args));
    return draw_rows<kDraw>(args, own, begin, end);
  }
  const std::int64_t share = args.replica_context.first_example[std::size_t(args.symbol)];
  const std::int64_t first = (share + args.first_example) * x.rows_per_example;
  if (x.example_axis > 0) return draw_turned<kDraw>(args, first);
  draw_rows<kDraw>(args, first, begin, end);
}

struct Form {
  bool like = false, keyed = false;
};

// The attributes, and how generated tests call the row.
template <template <bool, bool> class Row, Draw kDraw>
void set_attrs(OpDef& op, Form form) {
  constexpr bool kWhole = kDraw == Draw::kIntegers;
  DrawAttrs attrs;
  if (kWhole) attrs = {.dtype = DType::kInt64, .low = -3, .high = 9};
  Sample sample;
  if (form.like) {
    op.attrs = schema_of<Row<true, kWhole>>();
    sample.shapes = {{5, 7}};
    sample.batched = {1};
    sample.attrs = Row<true, kWhole>(attrs);
  } else {
    op.attrs = schema_of<Row<false, kWhole>>();
    sample.shapes = {{}};
    sample.dtypes = {DType::kInt64};
    sample.integer_high = 1;
    attrs.shape = {4, 3};
    sample.attrs = Row<false, kWhole>(attrs);
  }
  if (form.keyed) {
    sample.shapes.insert(sample.shapes.begin(), {2});
    sample.batched.insert(sample.batched.begin(), 0);
    sample.dtypes = {DType::kUInt32, form.like ? DType::kFloat32 : DType::kInt64};
    if (form.like) sample.integer_high = 99;
  }
  op.samples = {sample};
}

template <Draw kDraw>
OpDef random_op(const char* name, const char* doc, Form form) {
  OpDef op;
  op.name = text(form.keyed ? "stateless_" : "", name, form.like ? "_like" : "");
  op.doc = text(doc, form.like ? " Shape and examples are those of x." : "",
                form.keyed && kDraw == Draw::kIntegers
                    ? " With 64 bits, low = high = 0 draws all numbers of the dtype."
                    : "",
                form.keyed ? " An element is a function of the key (two numbers modulo 2^32), its "
                             "global row and its place in the row."
                           : "");
  if (form.keyed) op.operands = {"key"};
  op.operands.push_back(form.like ? "x" : "row_source");
  op.min_arity = op.max_arity = int(op.operands.size());
  op.traits = kRandomOp | kNoGradient;
  op.infer = form.like ? like_rule<kDraw> : shape_rule<kDraw>;
  if (form.like) {
    set_parts<rows_of_like, run_like<kDraw>>(op);
  } else {
    set_parts<rows_of_result, run_shape<kDraw>>(op);
  }
  // Ten rounds of a cipher for four numbers, and what makes draws of them.
  op.flops = [](const CostArgs& args) { return 32.0 * double(args.out[0].size()); };
  op.type_only = form.like ? 1u << (op.max_arity - 1) : 0;
  form.keyed ? set_attrs<KeyedDraw, kDraw>(op, form) : set_attrs<DrawRow, kDraw>(op, form);
  return op;
}

// The key that a random row of the same attributes draws by, for rows that draw inside.
void run_key(const KernelArgs& args) {
  const RandomKey key = key_of_step(args);
  const std::uint64_t words[] = {key.seed, key.stream};
  for (int i = 0; i < 4; ++i) {
    args.out[0].as<std::uint32_t>()[i] = std::uint32_t(words[i / 2] >> (i % 2 * 32));
  }
}

OpDef key_op() {
  OpDef op;
  op.name = "random_key";
  op.doc = "What random operations of this seed and number draw by in this step: four words.";
  op.min_arity = op.max_arity = 0;
  op.attrs = schema_of<KeyAttrs>();
  op.traits = kRandomOp | kNoGradient;
  op.infer = [](const InferArgs& args) {
    return one_result(args, ValueType{DType::kUInt32, {4}, {}});
  };
  op.kernel = run_key;
  op.samples = {{.shapes = {}, .attrs = KeyAttrs()}};
  return op;
}

}  // namespace

RandomKey draw_key(const View& key) {
  const bool wide = size_of(key.dtype) == sizeof(std::uint64_t);
  const auto word = [&](int i) {
    return std::uint32_t(wide ? key.as<const std::uint64_t>()[i]
                              : key.as<const std::uint32_t>()[i]);
  };
  if (key.size() == 2) return given_key(word(0), word(1));
  const auto both = [&](int i) { return word(i) | std::uint64_t{word(i + 1)} << 32; };
  return {both(0), both(2)};
}

void check_draw_key(const InferArgs& args, const ValueType& key) {
  SG_CHECK_TYPE(bit_of(key.dtype) & (kIndices | kUnsigned), args.op.name, "the key must be ",
                names_of(kIndices | kUnsigned), ": got ", name_of(key.dtype), "; cast it.");
  const bool made = key.dtype == DType::kUInt32 && key.shape == Shape{4};
  SG_CHECK_VALUE((made || key.shape == Shape{2}) && !key.batched(), args.op.name,
                 "the key must have the shape (2,) and no examples: got ", to_string(key), ".");
}

std::vector<OpDef> random_ops() {
  std::vector<OpDef> ops{key_op()};
  for (const Form form : {Form{}, {.like = true}, {.keyed = true}, {true, true}}) {
    ops.push_back(random_op<Draw::kUniform>("random_uniform", "Uniform in [0, 1).", form));
    ops.push_back(
        random_op<Draw::kNormal>("random_normal", "Normal, mean 0 and deviation 1.", form));
    ops.push_back(random_op<Draw::kTruncatedNormal>(
        "random_truncated_normal", "Normal, drawn again until within 2 deviations.", form));
    ops.push_back(
        random_op<Draw::kIntegers>("random_integers", "Whole numbers in [low, high).", form));
  }
  return ops;
}

}  // namespace samegrad
