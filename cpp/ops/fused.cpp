// Elementwise rows one after the other on blocks that stay in L1.
#include "ops/fused.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <ranges>
#include <set>

#include "base/prefetch.h"
#include "base/rounding.h"
#include "base/thresholds.h"
#include "kernels/table.h"
#include "ops/function_flops.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

struct FusedRegister {
  std::byte* data;
  std::int64_t width;
  int step;
};

void run_step(const FusedStep& step, const FusedRegister* in, const FusedRegister& out,
              std::int64_t n) {
  const DType dtype = step.dtype;
  const auto at = [&](std::size_t k) -> const FusedRegister& { return in[step.in[k]]; };
  switch (step.block.kind) {
    default:
      return;
    case BlockFn::kUnary:
      return kernels().unary(UnaryFn(step.block.fn), dtype)(at(0).data, out.data, n);
    case BlockFn::kBinary:
      return kernels().binary(BinaryFn(step.block.fn), dtype)(at(0).data, at(1).data, out.data, n,
                                                              at(0).step, at(1).step);
    case BlockFn::kSelect:
      return kernels().select(dtype)(at(0).data, at(1).data, at(2).data, out.data, n, at(0).step,
                                     at(1).step, at(2).step);
    case BlockFn::kCast:
      return kernels().cast(dtype, step.result)(at(0).data, out.data, n);
  }
}

// Asks for the next `count` elements of operands, the share of one of `steps` steps of the block
// before: all at once would be more than a processor asks memory for at a time, and its loads would
// wait behind them.
void fetch_share(std::span<const FusedRegister> operands, std::int64_t block, std::int64_t count,
                 std::int64_t step, std::int64_t steps) {
  for (const FusedRegister& operand : operands) {
    if (operand.step == 0) continue;
    const std::int64_t bytes = count * operand.width;
    const std::int64_t begin = bytes * step / steps, end = bytes * (step + 1) / steps;
    prefetch_bytes(operand.data + block * operand.width + begin, end - begin, end - begin);
  }
}

void run_range(const KernelArgs& args, std::int64_t begin, std::int64_t end, Scratch& scratch) {
  const FusedProgram& program = args.attrs.as<FusedAttrs>().program;
  const std::int64_t size = args.out[0].size(), block = thresholds().fused_block;
  const std::size_t block_bytes = std::size_t(block) * kMaxElementBytes;
  const Scratch::Frame frame(scratch);
  const std::size_t fixed = args.in.size() + args.out.size();
  const std::size_t count = fixed + std::size_t(program.temporaries);
  auto* registers = static_cast<FusedRegister*>(scratch.take(count * sizeof(FusedRegister)));
  auto* memory =
      static_cast<std::byte*>(scratch.take(std::size_t(program.temporaries) * block_bytes));
  for (std::size_t k = 0; k < fixed; ++k) {
    const View& view = k < args.in.size() ? args.in[k] : args.out[k - args.in.size()];
    const auto width = std::int64_t(size_of(view.dtype));
    const bool moves = view.size() == size;
    registers[k] = {view.as<std::byte>() + (moves ? begin * width : 0), width, moves ? 1 : 0};
  }
  for (std::size_t k = fixed; k < count; ++k) {
    registers[k] = {memory + (k - fixed) * block_bytes, 0, 1};
  }
  const auto steps = std::int64_t(program.steps.size());
  for (std::int64_t at = begin; at < end; at += block) {
    const std::int64_t n = std::min(block, end - at);
    const std::int64_t next = args.far_operands ? std::min(block, end - at - n) : 0;
    for (std::int64_t s = 0; s < steps; ++s) {
      if (next > 0) fetch_share({registers, args.in.size()}, block, next, s, steps);
      const FusedStep& step = program.steps[std::size_t(s)];
      run_step(step, registers, registers[step.out], n);
    }
    for (std::size_t k = 0; k < fixed; ++k) {
      registers[k].data += registers[k].step * registers[k].width * n;
    }
  }
}

void fused_kernel(const KernelArgs& args) {
  const std::int64_t size = args.out[0].size();
  if (size == 0) return;
  if (!args.parallel) {
    return run_range(args, 0, size, args.scratch);
  }
  const std::int64_t piece = thresholds().fused_piece;
  args.parallel->run(divide_up(size, piece), [&](std::int64_t i) {
    Scratch scratch;
    run_range(args, i * piece, std::min(size, (i + 1) * piece), scratch);
  });
}

Inferred fused_rule(const InferArgs& args) {
  Inferred inferred = broadcast_rule(args, DType::kFloat32);
  const ValueType type = inferred.types[0];
  inferred.types.clear();
  for (const DType dtype : program_of(args).results) {
    inferred.types.push_back({dtype, type.shape, type.batch});
  }
  return inferred;
}

OpDef fused_op() {
  OpDef op;
  op.name = "fused_elementwise";
  op.version = OpDef::kOfPasses;
  op.doc = "A chain of elementwise operations on blocks of elements; made by a pass.";
  op.min_arity = 1;
  op.max_arity = -1;
  op.operands = {"x"};
  op.attrs = schema_of<FusedAttrs>();
  op.traits = kElementwise | kNoGradient | kBackward;
  op.infer = fused_rule;
  op.kernel = fused_kernel;
  op.may_overwrite = fused_may_overwrite;
  op.flops = [](const CostArgs& args) {
    return double(args.out[0].size()) * flops_of_steps(args.attrs.as<FusedAttrs>().program);
  };
  return op;
}

}  // namespace

std::vector<std::size_t> operands_of_result(const Node& node, std::size_t result) {
  const auto* attrs = node.attrs.get_if<FusedAttrs>();
  std::vector<std::size_t> operands(node.inputs.size());
  std::iota(operands.begin(), operands.end(), std::size_t(0));
  if (!attrs) return operands;
  std::set<int> needed = {int(node.inputs.size() + result)};
  for (const FusedStep& step : std::views::reverse(attrs->program.steps)) {
    if (needed.erase(step.out)) needed.insert(step.in.begin(), step.in.end());
  }
  std::erase_if(operands, [&](std::size_t operand) { return !needed.contains(int(operand)); });
  return operands;
}

bool fused_may_overwrite(const Node& node, std::size_t operand, std::size_t result) {
  const std::size_t place = node.inputs.size() + result;
  bool written = false;
  for (const FusedStep& step : node.attrs.as<FusedAttrs>().program.steps) {
    if (written && std::ranges::count(step.in, int(operand)) > 0) return false;
    if (step.out == int(place)) written = true;
  }
  return true;
}

double flops_of_steps(const FusedProgram& program) {
  double flops = 0;
  for (const FusedStep& step : program.steps) flops += flops_of_function(step.block);
  return flops;
}

const FusedProgram& program_of(const InferArgs& args) {
  const FusedProgram& program = args.attrs.as<FusedAttrs>().program;
  SG_CHECK_TYPE(
      !program.results.empty(), args.op.name,
      "passes create the operation: got a call without a program; call what it consists of.");
  return program;
}

void FusedProgram::add_to(Hasher& hash) const {
  for (const std::int64_t number :
       {std::int64_t(steps.size()), std::int64_t(results.size()), std::int64_t(roles.size()),
        std::int64_t(temporaries), std::int64_t(row_temporaries), std::int64_t(axes), columns}) {
    hash.number(number);
  }
  for (const FusedStep& step : steps) {
    for (const int number : {int(step.block.kind), step.block.fn, int(step.dtype), int(step.result),
                             step.in[0], step.in[1], step.in[2], step.out}) {
      hash.number(number);
    }
  }
  hash.bytes(results.data(), results.size() * sizeof(DType));
  hash.bytes(roles.data(), roles.size() * sizeof(BroadcastKind));
}

std::vector<OpDef> fused_ops() {
  return {fused_op(), fused_rows_op()};
}

}  // namespace samegrad
