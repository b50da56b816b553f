#include "ops/constant_propagation.h"

#include <cstring>

#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "ops/attributes.h"
#include "ops/fused.h"

namespace samegrad {
namespace {

bool is(const LatticeValue& known, double number, DType dtype) {
  return known == LatticeValue::number_of(number, dtype);
}

bool is_zero(const LatticeValue& known, double zero, DType dtype) {
  return known.kind == LatticeValue::kSome || is(known, zero, dtype);
}

// x + -0, x - 0, x * 1 and x / 1 are x, which the other operand is.
LatticeValue of_binary(BinaryFn fn, DType dtype, const LatticeValue& a, const LatticeValue& b) {
  switch (fn) {
    case BinaryFn::k_add:
      return is_zero(b, -0.0, dtype) ? a : is_zero(a, -0.0, dtype) ? b : LatticeValue{};
    case BinaryFn::k_sub:
    case BinaryFn::k_sub_flushed:
      return is_zero(b, 0.0, dtype) ? a : LatticeValue{};
    case BinaryFn::k_mul:
      return is(b, 1.0, dtype) ? a : is(a, 1.0, dtype) ? b : LatticeValue{};
    case BinaryFn::k_div:
      return is(b, 1.0, dtype) ? a : LatticeValue{};
    default:
      return {};
  }
}

LatticeValue of_select(const LatticeValue& condition, const LatticeValue& a,
                       const LatticeValue& b) {
  if (condition.kind == LatticeValue::kNumber) return *condition.bytes() != std::byte(0) ? a : b;
  if (a == b) return a;
  if (condition.kind != LatticeValue::kSome) return {};
  return a.kind == LatticeValue::kSame ? a : b;
}

bool is_elementwise(BlockFn::Kind kind) {
  return kind == BlockFn::kUnary || kind == BlockFn::kBinary || kind == BlockFn::kSelect ||
         kind == BlockFn::kCast;
}

}  // namespace

LatticeValue LatticeValue::number_at(const void* at, DType dtype) {
  LatticeValue known{kNumber, -1, {}};
  std::memcpy(known.number.data(), at, size_of(dtype));
  return known;
}

LatticeValue LatticeValue::number_of(double number, DType dtype) {
  return visit(dtype, [&]<class T>() {
    const T value = T(number);
    return number_at(&value, dtype);
  });
}

bool LatticeProgram::takes(const Node& node) {
  if (node.op->has(kWholeInnerAxes)) return false;  // its steps know rows and columns, too
  return node.op->has(kBatchwise) || is_elementwise(node.op->block.kind) ||
         node.attrs.get_if<FusedAttrs>() != nullptr;
}

std::vector<int> LatticeProgram::add(const Graph& graph, const Node& node,
                                     std::span<const int> operands) {
  const DType result = graph.type(node.outputs[0]).dtype;
  if (const auto* fused = node.attrs.get_if<FusedAttrs>()) {
    const FusedProgram& program = fused->program;
    // Its registers: the operands, then ours.
    std::vector<int> at(operands.begin(), operands.end());
    const int own = int(node.outputs.size()) + program.temporaries;
    for (int k = 0; k < own; ++k) at.push_back(registers_++);
    for (const FusedStep& step : program.steps) {
      Step made{nullptr,     step.block,   step.dtype,
                step.result, {-1, -1, -1}, at[std::size_t(step.out)]};
      for (std::size_t k = 0; k < step.in.size(); ++k) {
        if (step.in[k] >= 0) made.in[k] = at[std::size_t(step.in[k])];
      }
      steps_.push_back(made);
    }
    const auto first = at.begin() + std::ptrdiff_t(operands.size());
    return {first, first + std::ptrdiff_t(node.outputs.size())};
  }
  Step step{node.op->has(kBatchwise) ? node.op : nullptr,
            node.op->block,
            graph.type(node.inputs.back()).dtype,
            result,
            {-1, -1, -1},
            registers_++};
  for (std::size_t k = 0; k < operands.size(); ++k) step.in[k] = operands[k];
  steps_.push_back(step);
  return {step.out};
}

LatticeValue LatticeProgram::follow(const Step& step, std::span<const LatticeValue> registers) {
  const auto in = [&](std::size_t k) -> const LatticeValue& {
    return registers[std::size_t(step.in[k])];
  };
  const auto at = [&](std::size_t k) { return in(k).bytes(); };
  const BlockFn::Kind kind = step.block.kind;
  if (kind == BlockFn::kSelect) return of_select(in(0), in(1), in(2));
  bool numbers = true, known = true;
  for (std::size_t k = 0; k < 3 && step.in[k] >= 0; ++k) {
    numbers &= in(k).is_scalar();
    known &= in(k).kind == LatticeValue::kNumber;
  }
  if (!numbers) {
    if (kind == BlockFn::kCast && step.dtype == step.result) return in(0);
    if (kind != BlockFn::kBinary) return {};
    return of_binary(BinaryFn(step.block.fn), step.dtype, in(0), in(1));
  }
  if (!known) return LatticeValue::some_number();
  LatticeValue result{LatticeValue::kNumber, -1, {}};
  std::byte* to = result.number.data();
  if (step.by_row) {
    Scratch scratch;
    const ReplicaContext replica_context;
    const View x{const_cast<std::byte*>(at(0)), {1}, step.dtype}, y{to, {1}, step.result};
    step.by_row->kernel({.attrs = {},
                         .in = {&x, 1},
                         .out = {&y, 1},
                         .replica_context = replica_context,
                         .scratch = scratch});
  } else if (kind == BlockFn::kUnary) {
    kernels().unary(UnaryFn(step.block.fn), step.dtype)(at(0), to, 1);
  } else if (kind == BlockFn::kBinary) {
    kernels().binary(BinaryFn(step.block.fn), step.dtype)(at(0), at(1), to, 1, 1, 1);
  } else {
    kernels().cast(step.dtype, step.result)(at(0), to, 1);
  }
  return result;
}

void LatticeProgram::run(std::span<LatticeValue> registers) const {
  for (const Step& step : steps_) {
    registers[std::size_t(step.out)] = follow(step, registers);
  }
}

}  // namespace samegrad
