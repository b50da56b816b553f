// Formulas over graph values: `ct * y * (1.0 - y)` appends the nodes of that formula.
//
// Every line of kernels/unary.def and kernels/binary.def is a function here; the `gradient` columns
// of these files are written in it.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "ops/attributes.h"

namespace samegrad {

class Expr {
 public:
  Expr(Builder& builder, Value value) : builder_(&builder), value_(value) {}

  Builder& builder() const { return *builder_; }
  Value value() const { return value_; }
  const ValueType& type() const { return builder_->type(value_); }
  DType dtype() const { return type().dtype; }
  // A 0-d constant of this expression's dtype.
  Expr number(double value) const { return {*builder_, builder_->number(dtype(), value)}; }

 private:
  Builder* builder_;
  Value value_;
};

// A gradient that is zero everywhere.
struct None {};
inline None none() {
  return {};
}

// Conversions of a vjp's results to cotangents: one Expr, None or Value per operand.
inline Value cotangent(Expr gradient) {
  return gradient.value();
}
inline Value cotangent(None) {
  return kNoValue;
}
inline Value cotangent(Value gradient) {
  return gradient;
}
template <class... Gradients>
Values cotangents(const Gradients&... gradients) {
  return {cotangent(gradients)...};
}

inline Expr call(std::string_view op, Expr x, Attrs attrs = {}) {
  return {x.builder(), x.builder()(op, {x.value()}, std::move(attrs))};
}
inline Expr call(std::string_view op, Expr a, Expr b, Attrs attrs = {}) {
  return {a.builder(), a.builder()(op, {a.value(), b.value()}, std::move(attrs))};
}
inline Expr call(std::string_view op, Expr a, Expr b, Expr c, Attrs attrs = {}) {
  return {a.builder(), a.builder()(op, {a.value(), b.value(), c.value()}, std::move(attrs))};
}

#define SAMEGRAD_UNARY(name, ...) \
  inline Expr name(Expr x) {      \
    return call(#name, x);        \
  }
#include "kernels/unary.def"
#undef SAMEGRAD_UNARY

#define SAMEGRAD_BINARY(name, ...)      \
  inline Expr name(Expr a, Expr b) {    \
    return call(#name, a, b);           \
  }                                     \
  inline Expr name(Expr a, double b) {  \
    return call(#name, a, a.number(b)); \
  }                                     \
  inline Expr name(double a, Expr b) {  \
    return call(#name, b.number(a), b); \
  }
#include "kernels/binary.def"
#undef SAMEGRAD_BINARY

#define SAMEGRAD_OPERATOR(symbol, name)           \
  inline Expr operator symbol(Expr a, Expr b) {   \
    return call(#name, a, b);                     \
  }                                               \
  inline Expr operator symbol(Expr a, double b) { \
    return call(#name, a, a.number(b));           \
  }                                               \
  inline Expr operator symbol(double a, Expr b) { \
    return call(#name, b.number(a), b);           \
  }
SAMEGRAD_OPERATOR(+, add)
SAMEGRAD_OPERATOR(-, sub)
SAMEGRAD_OPERATOR(*, mul)
SAMEGRAD_OPERATOR(/, div)
SAMEGRAD_OPERATOR(>, greater)
SAMEGRAD_OPERATOR(>=, greater_equal)
SAMEGRAD_OPERATOR(<, less)
SAMEGRAD_OPERATOR(<=, less_equal)
SAMEGRAD_OPERATOR(==, equal)
SAMEGRAD_OPERATOR(!=, not_equal)
#undef SAMEGRAD_OPERATOR

inline Expr operator-(Expr x) {
  return call("neg", x);
}
inline Expr operator!(Expr x) {
  return call("logical_not", x);
}
// Both sides are always computed.
inline Expr operator&&(Expr a, Expr b) {
  return call("logical_and", a, b);
}
inline Expr operator||(Expr a, Expr b) {
  return call("logical_or", a, b);
}

// The size of an axis, as an attribute takes it.
inline std::int64_t dim(Expr x, int axis) {
  auto& symbols = x.builder().graph().symbols;
  return dim_of(symbols, size_of(symbols, x.type(), axis));
}
inline Expr full_like(Expr x, double value) {
  return call("full_like", x, FullAttrs{.value = value});
}
inline Expr zeros_like(Expr x) {
  return full_like(x, 0);
}
inline Expr ones_like(Expr x) {
  return full_like(x, 1);
}
inline Expr select(Expr condition, Expr a, Expr b) {
  return call("select", condition, a, b);
}
inline Expr select(Expr condition, Expr a, double b) {
  return call("select", condition, a, a.number(b));
}
inline Expr select(Expr condition, double a, Expr b) {
  return call("select", condition, b.number(a), b);
}
inline Expr cast(Expr x, DType dtype) {
  return x.dtype() == dtype ? x : call("cast", x, CastAttrs{.dtype = dtype});
}
inline Expr stop_gradient(Expr x) {
  return call("stop_gradient", x);
}
// x with the shape of `like`, whose values are not read.
inline Expr broadcast_like(Expr x, Expr like) {
  return call("broadcast_like", x, like);
}
inline Expr reduce(std::string_view op, Expr x, std::vector<std::int64_t> axes, bool keepdims) {
  return call(op, x, ReduceAttrs{std::move(axes), keepdims});
}
inline Expr reduce_sum(Expr x, std::vector<std::int64_t> axes, bool keepdims = false) {
  return reduce("reduce_sum", x, std::move(axes), keepdims);
}

}  // namespace samegrad
