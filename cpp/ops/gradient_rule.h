// Attributes of gradients that user code defines.
#pragma once

#include "ops/attributes.h"

namespace samegrad {

struct GradientRuleAttrs {
  std::int64_t results = 0;
  Ints given = {};

  static constexpr auto fields() {
    return std::tuple(
        required("results", &GradientRuleAttrs::results, "How many operands it is the rule of."),
        required("given", &GradientRuleAttrs::given, "Which operands the rule has gradients of."));
  }
};

struct CalledGradientAttrs : GradientRuleAttrs {
  using Base = GradientRuleAttrs;
  std::int64_t callback = -1;
  std::string error = {};
  std::int64_t kind = 0;

  static constexpr auto fields() {
    return std::tuple_cat(
        GradientRuleAttrs::fields(),
        std::tuple(required("callback", &CalledGradientAttrs::callback,
                            "Its number in the trace; -1: there is none, and the error says why."),
                   required("error", &CalledGradientAttrs::error, "What the error says."),
                   required("kind", &CalledGradientAttrs::kind, "The kind of the error.")));
  }
};

}  // namespace samegrad
