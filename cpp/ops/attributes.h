// Attributes of the operations, by family. A struct that only one family uses may be in the
// family's file instead.
#pragma once

#include "kernels/table.h"
#include "tensor/attrs.h"

namespace samegrad {

// ---- elementwise ----

struct CastAttrs {
  DType dtype = DType::kFloat32;

  static constexpr auto fields() {
    return std::tuple(required("dtype", &CastAttrs::dtype, "The dtype of the result."));
  }
};

// Attributes of nodes that passes make and that explain() prints by other names.
struct NamedAttrs {
  std::string names = {};

  static constexpr auto fields() {
    return std::tuple(required("names", &NamedAttrs::names, "What it is, for people."));
  }
};

// ---- numbers and shapes ----

struct FullAttrs {
  Scalar value = 0.0;

  static constexpr auto fields() {
    return std::tuple(required("value", &FullAttrs::value, "The number."));
  }
};

struct FullSizesAttrs : FullAttrs {
  using Base = FullAttrs;
  Ints shape = {};
  DType dtype = DType::kFloat32;

  static constexpr auto fields() {
    return std::tuple(
        required("shape", &FullSizesAttrs::shape, "Sizes of the result, symbols among them."),
        defaulted("value", &FullSizesAttrs::value, "The number."),
        defaulted("dtype", &FullSizesAttrs::dtype, "Dtype of the result."));
  }
};

struct ZerosAttrs {
  Ints shape = {};
  DType dtype = DType::kFloat32;

  static constexpr auto fields() {
    return std::tuple(required("shape", &ZerosAttrs::shape, "Sizes of the axes."),
                      defaulted("dtype", &ZerosAttrs::dtype, "Dtype of the zeros."));
  }
};

// Attributes of iota and size_value.
struct SizeAttrs {
  std::int64_t size = 0;

  static constexpr auto fields() {
    return std::tuple(required("size", &SizeAttrs::size, "The size; may be a symbol."));
  }
};

// Attributes of size_of and global_size_of.
struct CountAttrs {
  Ints axes = {};

  static constexpr auto fields() {
    return std::tuple(required("axes", &CountAttrs::axes, "The axes whose sizes are multiplied."));
  }
};

struct TraceAttrs : NamedAttrs {
  using Base = NamedAttrs;
  Ints replicas;

  explicit TraceAttrs(Ints made_for = {})
      : NamedAttrs{"the number of examples"}, replicas(std::move(made_for)) {}
  static constexpr auto fields() {
    return std::tuple(required("replicas", &TraceAttrs::replicas, "Those that it was made for."),
                      defaulted("names", &TraceAttrs::names, "What differs, for people."));
  }
};

struct OfTraceAttrs {
  Ints shape = {};

  static constexpr auto fields() {
    return std::tuple(
        required("shape", &OfTraceAttrs::shape, "Sizes, equal to those of x on these replicas."));
  }
};

struct ExamplesAttrs {
  std::int64_t axis = 0;
  std::int64_t rows = 1;
  std::int64_t count = -1;

  static constexpr auto fields() {
    return std::tuple(
        defaulted("axis", &ExamplesAttrs::axis, "The axis."),
        defaulted("rows", &ExamplesAttrs::rows, "Rows per example, where there is a count."),
        defaulted("count", &ExamplesAttrs::count,
                  "Examples; may be a symbol. -1: as many as the axis is long."));
  }
};

// ---- movement ----

struct ReshapeAttrs {
  Ints shape = {};

  static constexpr auto fields() {
    return std::tuple(
        required("shape", &ReshapeAttrs::shape,
                 "Sizes of the result. -1: follows from the others; -2: the examples."));
  }
};

struct ExpandDimsAttrs {
  Ints axes = {};

  static constexpr auto fields() {
    return std::tuple(required("axes", &ExpandDimsAttrs::axes, "Where they are in the result."));
  }
};

struct SqueezeAttrs {
  Ints axes = {};

  static constexpr auto fields() {
    return std::tuple(defaulted("axes", &SqueezeAttrs::axes,
                                "Which; empty: all of size 1 but that of the examples."));
  }
};

struct BroadcastAttrs {
  Ints shape = {};

  static constexpr auto fields() {
    return std::tuple(
        required("shape", &BroadcastAttrs::shape, "Sizes of the result; -1: as in x."));
  }
};

struct TransposeAttrs {
  Ints perm = {};

  static constexpr auto fields() {
    return std::tuple(
        required("perm", &TransposeAttrs::perm, "Which axis of x each axis of the result is."));
  }
};

struct ReverseAttrs {
  Ints axes = {};

  static constexpr auto fields() {
    return std::tuple(required("axes", &ReverseAttrs::axes, "The axes to reverse."));
  }
};

struct SliceAttrs {
  Ints begin = {};
  Ints end = {};
  Ints strides = {};

  static constexpr auto fields() {
    return std::tuple(
        required("begin", &SliceAttrs::begin,
                 "First index per axis; INT64_MIN or INT64_MAX: absent."),
        required("end", &SliceAttrs::end, "Index after the last; INT64_MIN or INT64_MAX: absent."),
        required("strides", &SliceAttrs::strides, "Steps; negative ones reverse the order."));
  }
};

struct ConcatAttrs {
  std::int64_t axis = 0;

  static constexpr auto fields() {
    return std::tuple(required("axis", &ConcatAttrs::axis, "Axis of the values."));
  }
};

struct PadAttrs {
  Ints paddings = {};
  Scalar value = 0.0;

  static constexpr auto fields() {
    return std::tuple(
        required("paddings", &PadAttrs::paddings, "How many per axis: before, after, before, …"),
        defaulted("value", &PadAttrs::value, "The number."));
  }
};

struct TileAttrs {
  Ints multiples = {};

  static constexpr auto fields() {
    return std::tuple(required("multiples", &TileAttrs::multiples, "How often, per axis."));
  }
};

struct RepeatAttrs {
  std::int64_t repeats = 1;
  std::int64_t axis = 0;

  static constexpr auto fields() {
    return std::tuple(required("repeats", &RepeatAttrs::repeats, "How often."),
                      required("axis", &RepeatAttrs::axis, "Along which axis."));
  }
};

// ---- indices ----

// Attributes of gather, take_along_axis and their gradients.
struct IndexAttrs {
  std::int64_t axis = 0;

  static constexpr auto fields() {
    return std::tuple(defaulted("axis", &IndexAttrs::axis, "The axis that is indexed."));
  }
};

struct OneHotAttrs {
  std::int64_t depth = 0;
  Scalar on = 1.0;
  Scalar off = 0.0;
  DType dtype = DType::kFloat32;

  static constexpr auto fields() {
    return std::tuple(required("depth", &OneHotAttrs::depth, "Size of the new axis."),
                      defaulted("on", &OneHotAttrs::on, "Number at the index."),
                      defaulted("off", &OneHotAttrs::off, "Number elsewhere."),
                      defaulted("dtype", &OneHotAttrs::dtype, "Dtype of the result."));
  }
};

struct ArgMaxAttrs {
  std::int64_t axis = 0;

  static constexpr auto fields() {
    return std::tuple(
        required("axis", &ArgMaxAttrs::axis, "The axis to look along; negative from the last."));
  }
};

// ---- reductions and products ----

struct ReduceAttrs {
  Ints axes = {};
  bool keepdims = false;

  static constexpr auto fields() {
    return std::tuple(
        required("axes", &ReduceAttrs::axes, "The axes to reduce; none for an empty tuple."),
        defaulted("keepdims", &ReduceAttrs::keepdims, "Whether reduced axes stay, of size 1."));
  }
};

struct MatmulAttrs {
  bool transpose_a = false;
  bool transpose_b = false;

  static constexpr auto fields() {
    return std::tuple(defaulted("transpose_a", &MatmulAttrs::transpose_a,
                                "Use a with its last two axes swapped."),
                      defaulted("transpose_b", &MatmulAttrs::transpose_b,
                                "Use b with its last two axes swapped."));
  }
};

constexpr std::array<const char*, 2> names_of(Activation) {
  return {"none", "relu"};
}

struct MatmulBiasAttrs : MatmulAttrs {
  using Base = MatmulAttrs;
  Activation activation = Activation::kNone;

  static constexpr auto fields() {
    return std::tuple(defaulted("transpose_b", &MatmulBiasAttrs::transpose_b,
                                "Use b with its last two axes swapped."),
                      defaulted("activation", &MatmulBiasAttrs::activation, "'none' or 'relu'."));
  }
};

// ---- windows over images ----

// Attributes of convolutions, their gradients and pooling. Each has a number per spatial dimension:
// rows before columns, depth before both.
struct WindowAttrs {
  Ints strides = {1, 1};
  Ints padding = {0, 0, 0, 0};
  Ints dilations = {1, 1};

  static constexpr auto fields() {
    return std::tuple(
        defaulted("strides", &WindowAttrs::strides, "Steps of the window: rows, columns."),
        defaulted("padding", &WindowAttrs::padding,
                  "Rows and columns added around an image: top, bottom, left, right."),
        defaulted("dilations", &WindowAttrs::dilations,
                  "Dilation rates of the window: height, width."));
  }
};

struct ConvBiasAttrs : WindowAttrs {
  using Base = WindowAttrs;
  Activation activation = Activation::kNone;

  static constexpr auto fields() {
    return std::tuple_cat(
        WindowAttrs::fields(),
        std::tuple(defaulted("activation", &ConvBiasAttrs::activation, "'none' or 'relu'.")));
  }
};

struct PoolAttrs : WindowAttrs {
  using Base = WindowAttrs;
  Ints window = {};

  static constexpr auto fields() {
    return std::tuple_cat(
        std::tuple(required("window", &PoolAttrs::window, "Size of the window: rows, columns.")),
        WindowAttrs::fields());
  }
};

// ---- random numbers ----

// Each row lists those that it has.
struct DrawAttrs {
  Ints shape = {};
  DType dtype = DType::kFloat32;
  std::int64_t seed = 0;
  std::int64_t ordinal = 0;
  std::int64_t rows = 0;
  std::int64_t low = 0;
  std::int64_t high = 0;

  static constexpr auto fields() {
    return std::tuple(
        defaulted("dtype", &DrawAttrs::dtype, "The dtype of the result."),
        defaulted("seed", &DrawAttrs::seed, "The op's own seed."),
        defaulted("ordinal", &DrawAttrs::ordinal, "Which random op of the trace this is."));
  }
};

// Attributes of a random op with its own shape, or with the shape and examples of another value.
// Samples are floats, or integers in a range.
template <bool kLike, bool kWhole>
struct DrawRow : DrawAttrs {
  using Base = DrawAttrs;
  explicit DrawRow(DrawAttrs draw = {.dtype = kWhole ? DType::kInt64 : DType::kFloat32})
      : DrawAttrs(std::move(draw)) {}

  static constexpr auto fields() {
    const auto range = [] {
      if constexpr (!kWhole)
        return std::tuple();
      else
        return std::tuple(required("low", &DrawAttrs::low, "The smallest number drawn."),
                          required("high", &DrawAttrs::high, "All numbers drawn are below it."));
    };
    if constexpr (kLike) {
      return std::tuple_cat(
          DrawAttrs::fields(),
          std::tuple(defaulted("rows", &DrawAttrs::rows,
                               "Size of axis 0 where it differs between replicas without being "
                               "that of the examples.")),
          range());
    } else {
      return std::tuple_cat(
          std::tuple(required("shape", &DrawAttrs::shape, "The shape of the result.")),
          DrawAttrs::fields(), range());
    }
  }
};

using RandomAttrs = DrawRow<false, false>;
using RandomLikeAttrs = DrawRow<true, false>;
using RandomIntegersAttrs = DrawRow<false, true>;
using RandomIntegersLikeAttrs = DrawRow<true, true>;

// ---- collectives ----

enum class ReduceOp : std::uint8_t { kSum, kMean };
constexpr std::array<const char*, 2> names_of(ReduceOp) {
  return {"sum", "mean"};
}

struct AllReduceAttrs {
  ReduceOp op = ReduceOp::kSum;

  static constexpr auto fields() {
    return std::tuple(defaulted("op", &AllReduceAttrs::op, "'sum' or 'mean'."));
  }
};

// Attributes of all_gather and its adjoint, reduce_scatter.
struct AllGatherAttrs {
  std::int64_t axis = 0;
  std::int64_t replicas = 1;

  static constexpr auto fields() {
    return std::tuple(required("axis", &AllGatherAttrs::axis, "Along which they are joined."),
                      required("replicas", &AllGatherAttrs::replicas, "How many there are."));
  }
};

// ---- control flow ----

struct ControlAttrs {
  bool varying = false;

  static constexpr auto fields() {
    return std::tuple(
        required("varying", &ControlAttrs::varying, "The condition may differ between replicas."));
  }
};

struct CondAttrs : ControlAttrs {
  using Base = ControlAttrs;
};

// Attributes of ops that run a body in iterations.
struct RoundsAttrs : ControlAttrs {
  using Base = ControlAttrs;
  std::int64_t variables = 0;

  static constexpr auto fields() {
    return std::tuple_cat(std::tuple(required("variables", &RoundsAttrs::variables,
                                              "How many operands are variables.")),
                          ControlAttrs::fields());
  }
};

struct WhileAttrs : RoundsAttrs {
  using Base = RoundsAttrs;
  std::int64_t maximum = -1;

  static constexpr auto fields() {
    return std::tuple_cat(
        std::tuple(
            required("variables", &WhileAttrs::variables, "How many operands are variables."),
            required("maximum", &WhileAttrs::maximum, "Rounds at most; -1: any number.")),
        ControlAttrs::fields());
  }
};

struct ReplayAttrs : RoundsAttrs {
  using Base = RoundsAttrs;
  Ints entries = {};
  Ints yields = {};
  bool forward = false;

  static constexpr auto fields() {
    return std::tuple_cat(
        std::tuple(
            required("variables", &ReplayAttrs::variables, "How many operands are variables."),
            required("entries", &ReplayAttrs::entries, "Values in a round's entry, per history."),
            required("yields", &ReplayAttrs::yields, "The same of the histories it makes."),
            required("forward", &ReplayAttrs::forward, "From the first round to the last.")),
        ControlAttrs::fields());
  }
};

// ---- effects ----

struct PrintAttrs {
  std::string text = {};
  std::int64_t edge = -1;

  static constexpr auto fields() {
    return std::tuple(
        required("text", &PrintAttrs::text,
                 "What stands around the operands, each a zero character."),
        required("edge", &PrintAttrs::edge, "Elements shown at each end of an axis; -1: all."));
  }
};

}  // namespace samegrad
