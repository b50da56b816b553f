// Random ops with a key operand, which precedes the operand that gives the shape and rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "ir/op_def.h"
#include "kernels/table.h"
#include "ops/attributes.h"
#include "ops/rules.h"

namespace samegrad {

inline bool has_key(std::size_t operands) {
  return operands > 1;
}

// Ordinals of draws outside of steps, each of which takes a number of a step for itself.
inline constexpr std::int64_t kOutsideSteps = std::int64_t(1) << 62;
// The ordinals of a traced function that prepares data, whose draw k equals draw k outside of
// steps.
inline constexpr std::int64_t kOfDataFunction = std::int64_t(1) << 61;

// True if the op draws by the step number, which must then be counted.
inline bool draws_by_step(const OpDef& op) {
  return op.has(kRandomOp) && !has_key(op.operands.size());
}

// A key is two numbers that the program gives (random_key.h), or the four words of one that
// "random_key" made of seed, op and step.
RandomKey draw_key(const View& key);
void check_draw_key(const InferArgs& args, const ValueType& key);

// The fields of DrawRow without seed and ordinal.
template <bool kLike, bool kWhole>
struct KeyedDraw : DrawAttrs {
  using Base = DrawAttrs;
  explicit KeyedDraw(DrawAttrs draw = DrawRow<kLike, kWhole>()) : DrawAttrs(std::move(draw)) {}

  static constexpr auto fields() {
    constexpr auto kAll = DrawRow<kLike, kWhole>::fields();
    constexpr auto kFirst = std::tuple(std::get<0>(kAll), std::get < kLike ? 3 : 1 > (kAll));
    if constexpr (kWhole) {
      return std::tuple_cat(kFirst, std::tuple(std::get<4>(kAll), std::get<5>(kAll)));
    } else {
      return kFirst;
    }
  }
};

// Attributes of "random_key".
struct KeyAttrs : DrawAttrs {
  using Base = DrawAttrs;
  explicit KeyAttrs(DrawAttrs draw = {.shape = {4}, .dtype = DType::kUInt32})
      : DrawAttrs(std::move(draw)) {}

  static constexpr auto fields() {
    constexpr auto kAll = DrawAttrs::fields();
    return std::tuple(std::get<1>(kAll), std::get<2>(kAll));
  }
};

using StatelessAttrs = KeyedDraw<false, false>;
using StatelessLikeAttrs = KeyedDraw<true, false>;
using StatelessIntegersAttrs = KeyedDraw<false, true>;

}  // namespace samegrad
