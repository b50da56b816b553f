// Elementwise rows, reductions and softmaxes along the last axes one after the other, on a few rows
// that stay in L1: what a row is reduced to goes back to its elements without leaving the cache.
#include <algorithm>
#include <cstring>

#include "base/rounding.h"
#include "base/thresholds.h"
#include "kernels/table.h"
#include "ops/example_reduction.h"
#include "ops/fused.h"
#include "ops/index_kernel.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

struct RowRegister {
  std::byte* data;
  BroadcastKind role;
};

// An operand of a step as its rows see it.
struct Line {
  const std::byte* data;
  std::int64_t advance;  // bytes to the next row
  int step;              // 0: one element for all
};

// One step, with its function found and its registers known.
class BoundStep {
 public:
  // With what adds up the rows of examples, if this is to.
  BoundStep(const FusedStep& step, const RowRegister* registers, std::int64_t columns,
            const ExampleReduction* examples)
      : examples_(examples),
        kind_(step.block.kind),
        dtype_(step.dtype),
        out_(registers + step.out),
        columns_(columns),
        result_(step.result),
        width_(std::int64_t(size_of(result_))) {
    for (std::size_t k = 0; k < step.in.size(); ++k) {
      if (step.in[k] >= 0) in_[k] = registers + step.in[k];
    }
    find(step.block.fn);
    const bool walks = kind_ == BlockFn::kBinary || kind_ == BlockFn::kSelect;
    at_once_ = !walks || is_per_row(out_->role);
    if (!at_once_) at_once_ = !goes_with_rows(0) && !goes_with_rows(1) && !goes_with_rows(2);
  }

  // Computes consecutive rows; `first` rows of the first row's example precede it.
  void run(std::int64_t rows, std::int64_t first) const {
    const std::int64_t elements = is_per_row(out_->role) ? rows : rows * columns_;
    switch (kind_) {
      case BlockFn::kNone:
        return;
      case BlockFn::kUnary:
      case BlockFn::kCast:
        return f_.unary(in_[0]->data, out_->data, elements);
      case BlockFn::kReduce:
        if (examples_) return examples_->fold(in_[0]->data, first, rows, out_->data);
        return f_.rows(in_[0]->data, out_->data, rows, columns_);
      case BlockFn::kSoftmax:
        if (columns_ > 0) f_.rows(in_[0]->data, out_->data, rows, columns_);
        return;
      case BlockFn::kRepeat:
        return repeat(rows);
      case BlockFn::kOneHot:
        return one_hot_rows(dtype_, in_[0]->data, result_, in_[1]->data, in_[2]->data, out_->data,
                            rows, columns_);
      case BlockFn::kBinary:
      case BlockFn::kSelect:
        return at_once_ ? call(line(0).data, line(1).data, line(2).data, out_->data, elements,
                               step_at_once(0), step_at_once(1), step_at_once(2))
                        : run_each(rows);
    }
  }

 private:
  void find(int fn) {
    switch (kind_) {
      case BlockFn::kUnary:
        f_.unary = kernels().unary(UnaryFn(fn), dtype_);
        break;
      case BlockFn::kCast:
        f_.unary = kernels().cast(dtype_, result_);
        break;
      case BlockFn::kBinary:
        f_.binary = kernels().binary(BinaryFn(fn), dtype_);
        break;
      case BlockFn::kSelect:
        f_.select = kernels().select(dtype_);
        break;
      case BlockFn::kReduce:
        f_.rows = kernels().row_reduce(ReduceFn(fn), dtype_);
        break;
      case BlockFn::kSoftmax: {
        const SoftmaxKernels& softmax = kernels().softmax(dtype_);
        f_.rows = fn ? softmax.log_softmax : softmax.softmax;
        break;
      }
      default:
        break;
    }
  }

  bool goes_with_rows(std::size_t k) const { return in_[k] && is_per_row(in_[k]->role); }
  int step_at_once(std::size_t k) const {
    return in_[k] && in_[k]->role == BroadcastKind::kScalar ? 0 : 1;
  }

  void call(const void* a, const void* b, const void* c, void* y, std::int64_t n, int step_a,
            int step_b, int step_c) const {
    if (kind_ == BlockFn::kBinary) return f_.binary(a, b, y, n, step_a, step_b);
    f_.select(a, b, c, y, n, step_a, step_b, step_c);
  }

  Line line(std::size_t k) const {
    if (!in_[k]) return {nullptr, 0, 0};
    const bool condition = kind_ == BlockFn::kSelect && k == 0;
    const auto width = condition ? std::int64_t(sizeof(bool)) : std::int64_t(size_of(dtype_));
    switch (in_[k]->role) {
      case BroadcastKind::kFull:
        return {in_[k]->data, columns_ * width, 1};
      case BroadcastKind::kScalar:
        return {in_[k]->data, 0, 0};
      default:
        return {in_[k]->data, width, 0};
    }
  }

  void run_each(std::int64_t rows) const {
    Line a = line(0), b = line(1), c = line(2);
    std::byte* y = out_->data;
    for (std::int64_t r = 0; r < rows; ++r, y += columns_ * width_) {
      call(a.data, b.data, c.data, y, columns_, a.step, b.step, c.step);
      a.data += a.advance;
      b.data += b.advance;
      c.data += c.advance;
    }
  }

  // An element for each row, for all elements of the row; or what is a whole block already.
  void repeat(std::int64_t rows) const {
    if (in_[0]->role == out_->role || is_per_row(out_->role)) {
      const std::int64_t elements = is_per_row(out_->role) ? rows : rows * columns_;
      if (elements > 0) std::memcpy(out_->data, in_[0]->data, std::size_t(elements * width_));
      return;
    }
    visit(dtype_, [&]<class T>() {
      const auto* x = reinterpret_cast<const T*>(in_[0]->data);
      auto* y = reinterpret_cast<T*>(out_->data);
      for (std::int64_t r = 0; r < rows; ++r, y += columns_) std::fill_n(y, columns_, x[r]);
    });
  }

  const ExampleReduction* examples_;
  BlockFn::Kind kind_;
  DType dtype_;  // of the last operand
  const RowRegister* in_[3] = {};
  const RowRegister* out_;
  std::int64_t columns_;
  DType result_;
  std::int64_t width_;  // bytes of an element of the result
  bool at_once_ = false;
  union {
    UnaryKernel unary = nullptr;
    BinaryKernel binary;
    SelectKernel select;
    RowReduceKernel rows;
  } f_;
};

const View& view_at(const KernelArgs& args, std::size_t k) {
  return k < args.in.size() ? args.in[k] : args.out[k - args.in.size()];
}

std::int64_t bytes_per_row(const View& view, BroadcastKind role, std::int64_t columns) {
  const auto width = std::int64_t(size_of(view.dtype));
  if (role == BroadcastKind::kFull) return width * columns;
  return is_per_row(role) ? width : 0;
}

std::int64_t rows_of(const KernelArgs& args, const FusedProgram& program) {
  for (std::size_t k = 0; k < program.roles.size(); ++k) {
    const BroadcastKind role = program.roles[k];
    const Shape& shape = view_at(args, k).shape;
    if (role == BroadcastKind::kFull) return shape.size(0, shape.rank() - int(program.axes));
    if (is_per_row(role)) return shape.size();
  }
  return 0;
}

// The rows of an example, where examples are reduced to one row; else 0.
std::int64_t rows_of_example(const KernelArgs& args, const FusedProgram& program) {
  if (std::ranges::count(program.roles, BroadcastKind::kPerExample) == 0) return 0;
  for (std::size_t k = 0; k < program.roles.size(); ++k) {
    const BroadcastKind role = program.roles[k];
    const Shape& shape = view_at(args, k).shape;
    if (role == BroadcastKind::kFull) return shape.size(1, shape.rank() - int(program.axes));
    if (is_per_row(role)) return shape.size(1, shape.rank());
  }
  return 0;
}

// Calls f(reduction, operand or result) for the results that are a row for each example.
template <class F>
void for_each_reduction(const FusedProgram& program, const F& f) {
  for (const FusedStep& step : program.steps) {
    const auto k = std::size_t(step.out);
    if (k < program.roles.size() && program.roles[k] == BroadcastKind::kPerExample) f(step, k);
  }
}

// The rows [begin, end) of one call, some at a time. With `blocks`, the sums of blocks of an
// example go to this memory, for each of its results.
class RowsRun {
 public:
  RowsRun(const KernelArgs& args, std::int64_t begin, std::int64_t end, Scratch& scratch,
          std::byte* const* blocks = nullptr)
      : args_(args),
        program_(args.attrs.as<FusedAttrs>().program),
        begin_(begin),
        end_(end),
        most_(std::clamp<std::int64_t>(
            thresholds().fused_block / std::max<std::int64_t>(program_.columns, 1), 1,
            std::max<std::int64_t>(end - begin, 1))),
        of_example_(rows_of_example(args, program_)),
        blocks_(blocks),
        scratch_(scratch) {}

  void run() {
    const Scratch::Frame frame(scratch_);
    open_registers();
    const std::size_t count = program_.steps.size();
    auto* steps = static_cast<BoundStep*>(scratch_.take(count * sizeof(BoundStep)));
    for (std::size_t s = 0; s < count; ++s) {
      const FusedStep& step = program_.steps[s];
      new (steps + s) BoundStep(step, registers_, program_.columns, examples(step));
    }
    for (std::int64_t at = begin_; at < end_;) {
      const std::int64_t first = of_example_ > 0 ? at % of_example_ : 0;
      std::int64_t rows = std::min(most_, end_ - at);
      if (of_example_ > 0) rows = ExampleReduction::rows_at_once(of_example_, first, rows);
      for (std::size_t s = 0; s < count; ++s) steps[s].run(rows, first);
      at += rows;
      for (std::size_t k = 0; k < program_.roles.size(); ++k) {
        const bool begins = role(k) == BroadcastKind::kPerExample && at % of_example_ == 0;
        const std::int64_t width = bytes_per_row(view_at(args_, k), role(k), program_.columns);
        registers_[k].data += begins ? example_row_bytes(k) : rows * width;
      }
    }
  }

 private:
  BroadcastKind role(std::size_t k) const { return program_.roles[k]; }

  std::int64_t example_row_bytes(std::size_t k) const {
    return ExampleReduction::rows_of_result(of_example_, blocks_ != nullptr) * program_.columns *
           std::int64_t(size_of(view_at(args_, k).dtype));
  }

  const ExampleReduction* examples(const FusedStep& step) {
    if (registers_[step.out].role != BroadcastKind::kPerExample) return nullptr;
    void* memory = scratch_.take(sizeof(ExampleReduction));
    return new (memory) ExampleReduction(ReduceFn(step.block.fn), step.dtype, of_example_,
                                         program_.columns, blocks_ != nullptr, scratch_);
  }

  void open_registers() {
    const std::size_t fixed = program_.roles.size();
    const std::size_t full = fixed + std::size_t(program_.temporaries);
    const std::size_t count = full + std::size_t(program_.row_temporaries);
    registers_ = static_cast<RowRegister*>(scratch_.take(count * sizeof(RowRegister)));
    for (std::size_t k = 0; k < fixed; ++k) {
      const View& view = view_at(args_, k);
      auto* data = view.as<std::byte>() + begin_ * bytes_per_row(view, role(k), program_.columns);
      if (role(k) == BroadcastKind::kPerExample) {
        if (blocks_) data = blocks_[k - args_.in.size()];
        data += begin_ / of_example_ * example_row_bytes(k);
      }
      const bool column = role(k) == BroadcastKind::kInner;
      registers_[k] = column ? repeated(view) : RowRegister{data, role(k)};
    }
    for (std::size_t k = fixed; k < count; ++k) {
      const std::int64_t elements = k < full ? most_ * program_.columns : most_;
      auto* memory = scratch_.take(std::size_t(elements) * kMaxElementBytes);
      const BroadcastKind role = k < full ? BroadcastKind::kFull : BroadcastKind::kReduced;
      registers_[k] = {static_cast<std::byte*>(memory), role};
    }
  }

  // A row that is there once, as often as a block has rows: one call for all of them then.
  RowRegister repeated(const View& view) const {
    if (most_ == 1) return {view.as<std::byte>(), BroadcastKind::kFull};
    const std::size_t bytes = std::size_t(program_.columns) * size_of(view.dtype);
    auto* memory = static_cast<std::byte*>(scratch_.take(std::size_t(most_) * bytes));
    for (std::int64_t r = 0; bytes > 0 && r < most_; ++r) {
      std::memcpy(memory + std::size_t(r) * bytes, view.data, bytes);
    }
    return {memory, BroadcastKind::kFull};
  }

  const KernelArgs& args_;
  const FusedProgram& program_;
  std::int64_t begin_, end_;
  std::int64_t most_;        // rows at a time
  std::int64_t of_example_;  // rows
  std::byte* const* blocks_;
  Scratch& scratch_;
  RowRegister* registers_ = nullptr;
};

// Runs examples that threads share: blocks of their rows are summed first, and joined afterwards.
void run_blocks_of_examples(const KernelArgs& args, std::int64_t rows, std::int64_t of_example,
                            std::int64_t piece) {
  const FusedProgram& program = args.attrs.as<FusedAttrs>().program;
  const std::int64_t examples = rows / of_example;
  const std::int64_t blocks = ExampleReduction::rows_of_result(of_example, true);
  const Scratch::Frame frame(args.scratch);
  auto** sums = static_cast<std::byte**>(args.scratch.take(args.out.size() * sizeof(std::byte*)));
  const auto bytes_of_blocks = [&](const View& result) {
    return blocks * program.columns * std::int64_t(size_of(result.dtype));
  };
  for_each_reduction(program, [&](const FusedStep&, std::size_t k) {
    const std::int64_t bytes = examples * bytes_of_blocks(view_at(args, k));
    sums[k - args.in.size()] = static_cast<std::byte*>(args.scratch.take(std::size_t(bytes)));
  });
  const std::int64_t some = std::max<std::int64_t>(piece / kColumnBlock, 1);
  const std::int64_t of_each = divide_up(blocks, some);  // pieces
  args.parallel->run(examples * of_each, [&](std::int64_t i) {
    Scratch scratch;
    const std::int64_t first = i / of_each * of_example;
    const std::int64_t begin = i % of_each * some * kColumnBlock;
    const std::int64_t end = std::min(of_example, begin + some * kColumnBlock);
    RowsRun(args, first + begin, first + end, scratch, sums).run();
  });
  for_each_reduction(program, [&](const FusedStep& step, std::size_t k) {
    const ExampleReduction reduction(ReduceFn(step.block.fn), step.dtype, of_example,
                                     program.columns, true, args.scratch);
    const View& result = view_at(args, k);
    const std::int64_t row = program.columns * std::int64_t(size_of(result.dtype));
    for (std::int64_t e = 0; e < examples; ++e) {
      reduction.join(sums[k - args.in.size()] + e * bytes_of_blocks(result),
                     result.as<std::byte>() + e * row);
    }
  });
}

void fused_rows_kernel(const KernelArgs& args) {
  const FusedProgram& program = args.attrs.as<FusedAttrs>().program;
  const std::int64_t rows = rows_of(args, program);
  const std::int64_t columns = std::max<std::int64_t>(program.columns, 1);
  if (!args.parallel) {
    return RowsRun(args, 0, rows, args.scratch).run();
  }
  const std::int64_t piece = std::max<std::int64_t>(thresholds().fused_piece / columns, 1);
  if (const std::int64_t of_example = rows_of_example(args, program)) {
    return run_blocks_of_examples(args, rows, of_example, piece);
  }
  args.parallel->run(divide_up(rows, piece), [&](std::int64_t i) {
    Scratch scratch;
    RowsRun(args, i * piece, std::min(rows, (i + 1) * piece), scratch).run();
  });
}

// The type that all operands broadcast to, those apart whose axes tell nothing of it.
Inferred fused_rows_rule(const InferArgs& args) {
  const FusedProgram& program = program_of(args);
  std::vector<ValueType> in;
  for (std::size_t k = 0; k < args.in.size(); ++k) {
    if (program.roles[k] != BroadcastKind::kReducedDropped) in.push_back(args.in[k]);
  }
  Inferred inferred = broadcast_rule({args.op, in, args.attrs, args.symbols}, DType::kFloat32);
  const ValueType full = inferred.types[0];
  const int kept = full.shape.rank() - int(program.axes);
  inferred.types.clear();
  for (std::size_t r = 0; r < program.results.size(); ++r) {
    ValueType type{program.results[r], full.shape, full.batch};
    const BroadcastKind role = program.roles[args.in.size() + r];
    for (int axis = full.shape.rank() - 1; axis >= kept; --axis) {
      if (role == BroadcastKind::kReduced) type.shape[axis] = 1;
      if (role == BroadcastKind::kReducedDropped) type.shape.erase(axis);
    }
    for (int axis = 1; role == BroadcastKind::kPerExample && axis < kept; ++axis)
      type.shape[axis] = 1;
    inferred.types.push_back(type);
  }
  return inferred;
}

bool rows_may_overwrite(const Node& node, std::size_t operand, std::size_t result) {
  const std::vector<BroadcastKind>& roles = node.attrs.as<FusedAttrs>().program.roles;
  const BroadcastKind role = roles[operand], made = roles[node.inputs.size() + result];
  const bool moves_alike = role == made || (is_per_row(role) && is_per_row(made));
  return moves_alike && fused_may_overwrite(node, operand, result);
}

}  // namespace

OpDef fused_rows_op() {
  OpDef op;
  op.name = "fused_rows";
  op.version = OpDef::kOfPasses;
  op.doc = "Elementwise operations and reductions along the last axes, row by row; made by a pass.";
  op.min_arity = 1;
  op.max_arity = -1;
  op.operands = {"x"};
  op.attrs = schema_of<FusedAttrs>();
  op.traits = kElementwise | kWholeInnerAxes | kNoGradient | kBackward;
  op.infer = fused_rows_rule;
  op.kernel = fused_rows_kernel;
  op.may_overwrite = rows_may_overwrite;
  op.flops = [](const CostArgs& args) {
    return double(args.in[0].size()) * flops_of_steps(args.attrs.as<FusedAttrs>().program);
  };
  return op;
}

}  // namespace samegrad
