// Positions of the largest and the smallest elements along an axis.
#include <algorithm>
#include <cstring>

#include "kernels/table.h"
#include "ops/attributes.h"
#include "ops/partition.h"
#include "ops/rules.h"
#include "ops/strided.h"

namespace samegrad {
namespace {

Inferred arg_rule(const InferArgs& args) {
  check_dtype(args, 0, kNumbers);
  check_min_rank(args, 0, 1);
  const ValueType& x = args.in[0];
  const int axis = normalize_axis(args.attrs.as<ArgMaxAttrs>().axis, x.shape.rank(), args.op.name);
  SG_CHECK_VALUE(x.shape[axis] != 0, args.op.name, "axis ", axis, " of shape ", args.shape_of(0),
                 " has no elements to choose from; leave empty tensors out.");
  ValueType y = x;
  y.dtype = DType::kInt64;
  y.shape.erase(axis);
  if (axis == x.batch.axis) y.batch = {};
  if (axis < x.batch.axis) --y.batch.axis;
  return one_result(args, y);
}

Lines lines_of(const CostArgs& args) {
  const Shape& shape = args.in[0].shape;
  return {shape, normalize_axis(args.attrs.as<ArgMaxAttrs>().axis, shape.rank(), "arg_max")};
}

constexpr std::int64_t kTurnedElements = 1 << 16;

// Limits the columns of one transposition, so that they stay in cache.
std::int64_t columns_at_once(const Lines& lines) {
  constexpr std::int64_t kLeast = 16;
  return std::max(kLeast, kTurnedElements / std::max<std::int64_t>(lines.n, 1));
}

// Positions in x[n][stride], for `width` columns of it.
void choose_columns(ArgReduceKernel choice, DType dtype, const char* x, const Lines& lines,
                    std::int64_t width, Scratch& scratch, std::int64_t* y) {
  const auto item = std::int64_t(size_of(dtype));
  const std::int64_t most = columns_at_once(lines);
  const Scratch::Frame frame(scratch);
  void* turned = scratch.take(std::size_t(std::min(most, width) * lines.n * item));
  for (std::int64_t c = 0; c < width; c += most) {
    const std::int64_t some = std::min(most, width - c);
    StridedCopy copy;
    copy.add_axis(some, lines.n, 1);
    copy.add_axis(lines.n, 1, lines.columns);
    copy.run(turned, x + c * item, dtype);
    choice(turned, y + c, some, lines.n);
  }
}

// Reduces `width` columns from `column` on of each outer index.
void choose_lines(ArgReduceKernel choice, DType dtype, const char* x, const Lines& lines,
                  std::int64_t column, std::int64_t width, Scratch& scratch, std::int64_t* y) {
  if (lines.columns == 1) return choice(x, y, lines.outer, lines.n);
  const auto item = std::int64_t(size_of(dtype));
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    choose_columns(choice, dtype, x + (o * lines.n * lines.columns + column) * item, lines, width,
                   scratch, y + o * lines.columns + column);
  }
}

// Lines that are few are cut in pieces, each of which has its best.
struct SharedChoice {
  Lines lines;
  int levels;

  explicit SharedChoice(const CostArgs& args)
      : lines(lines_of(args)), levels(levels_of(lines, lines.n / kPiece)) {}

  static constexpr std::int64_t kPiece = 1024;  // elements of a line, at least
  std::int64_t pieces() const { return std::int64_t(1) << levels; }
  std::int64_t count() const { return levels > 0 ? lines.outer * pieces() : lines.count(); }
  std::int64_t begin_of(std::int64_t piece) const { return lines.n * piece / pieces(); }
};

void run_pieces(ArgReduceKernel choice, const KernelArgs& args, std::int64_t begin,
                std::int64_t end) {
  const View& x = args.in[0];
  const SharedChoice shared(cost_args(args));
  const Lines& lines = shared.lines;
  auto* places = reinterpret_cast<std::int64_t*>(args.state);
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t o = unit / shared.pieces(), piece = unit % shared.pieces();
    const std::int64_t first = shared.begin_of(piece);
    Lines part = lines;
    part.outer = 1;
    part.n = shared.begin_of(piece + 1) - first;
    std::int64_t* y = places + unit * lines.columns;
    const std::int64_t at = (o * lines.n + first) * lines.columns;
    choose_lines(choice, x.dtype, x.as<char>() + at * std::int64_t(size_of(x.dtype)), part, 0,
                 lines.columns, args.scratch, y);
    for (std::int64_t c = 0; c < lines.columns; ++c) y[c] += first;
  }
}

// The best of the pieces' bests: the first of equals, as they are in order.
void choose_piece(ArgReduceKernel choice, const KernelArgs& args) {
  if (!args.state) return;
  const View& x = args.in[0];
  const SharedChoice shared(cost_args(args));
  const Lines& lines = shared.lines;
  const std::size_t item = size_of(x.dtype);
  const auto* places = reinterpret_cast<const std::int64_t*>(args.state);
  const Scratch::Frame frame(args.scratch);
  auto* bests = static_cast<char*>(args.scratch.take(std::size_t(shared.pieces()) * item));
  for (std::int64_t line = 0; line < lines.count(); ++line) {
    const std::int64_t o = line / lines.columns, c = line % lines.columns;
    const auto place_in = [&](std::int64_t piece) {
      return places[(o * shared.pieces() + piece) * lines.columns + c];
    };
    for (std::int64_t piece = 0; piece < shared.pieces(); ++piece) {
      const std::int64_t at = (o * lines.n + place_in(piece)) * lines.columns + c;
      std::memcpy(bests + std::size_t(piece) * item, x.as<char>() + std::size_t(at) * item, item);
    }
    std::int64_t best = 0;
    choice(bests, &best, 1, shared.pieces());
    args.out[0].as<std::int64_t>()[line] = place_in(best);
  }
}

void run_lines(ArgReduceKernel choice, const KernelArgs& args, std::int64_t begin,
               std::int64_t end) {
  const View& x = args.in[0];
  const Lines lines = lines_of(cost_args(args));
  auto* y = args.out[0].as<std::int64_t>();
  if (lines.n == 0) {  // no examples to choose from
    std::fill(y + begin, y + end, 0);
    return;
  }
  const auto item = std::int64_t(size_of(x.dtype));
  lines.for_each(begin, end,
                 [&](std::int64_t o, std::int64_t outer, std::int64_t column, std::int64_t width) {
                   Lines part = lines;
                   part.outer = outer;
                   choose_lines(choice, x.dtype, x.as<char>() + o * lines.n * lines.columns * item,
                                part, column, width, args.scratch, y + o * lines.columns);
                 });
}

template <bool kMax>
ArgReduceKernel choice_of(const KernelArgs& args) {
  const DType dtype = args.in[0].dtype;
  return kMax ? kernels().arg_max(dtype) : kernels().arg_min(dtype);
}

template <bool kMax>
void arg_kernel(const KernelArgs& args) {
  run_lines(choice_of<kMax>(args), args, 0, lines_of(cost_args(args)).count());
}

// Parts of lines that have to be turned take scratch of their own.
std::size_t scratch_of_choice(const CostArgs& args) {
  const SharedChoice shared(args);
  if (shared.lines.columns > 1) return OpDef::kUnknownBytes;
  return std::size_t(shared.pieces()) * size_of(args.in[0].dtype);
}

template <bool kMax>
ParallelPartition arg_parts() {
  return {.count = [](const CostArgs& args) { return SharedChoice(args).count(); },
          .run =
              [](const KernelArgs& args, std::int64_t begin, std::int64_t end) {
                (args.state ? run_pieces : run_lines)(choice_of<kMax>(args), args, begin, end);
              },
          .state_bytes =
              [](const CostArgs& args) {
                const SharedChoice shared(args);
                const std::int64_t places = shared.count() * shared.lines.columns;
                return shared.levels > 0 ? std::size_t(places) * sizeof(std::int64_t) : 0;
              },
          .finish = [](const KernelArgs& args) { choose_piece(choice_of<kMax>(args), args); }};
}

template <bool kMax>
OpDef arg_op(const char* name, const char* doc) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.operands = {"x"};
  op.attrs = schema_of<ArgMaxAttrs>();
  op.traits = kNoGradient;
  op.infer = arg_rule;
  op.kernel = arg_kernel<kMax>;
  op.parts = arg_parts<kMax>();
  op.scratch_bytes = scratch_of_choice;
  op.samples = {{.shapes = {{2, 3}}, .attrs = ArgMaxAttrs{.axis = 0}},
                {.shapes = {{5, 7}}, .attrs = ArgMaxAttrs{.axis = -1}, .batched = {1}},
                {.shapes = {{5, 4, 3}}, .attrs = ArgMaxAttrs{.axis = 1}, .batched = {1}}};
  return op;
}

}  // namespace

std::vector<OpDef> arg_reduce_ops() {
  return {
      arg_op<true>("arg_max", "Position (int64) of the first largest element along an axis."),
      arg_op<false>("arg_min", "Position (int64) of the first smallest element along an axis.")};
}

}  // namespace samegrad
