// What the tests of traces share.
#pragma once

#include "ops/registry.h"
#include "train/trace.h"

// An operation with one result.
inline samegrad::Tensor op(const char* name, const std::vector<samegrad::Tensor>& inputs,
                           samegrad::Attrs attrs = {}) {
  return apply(samegrad::OpRegistry::instance().get(name), inputs, std::move(attrs))[0];
}
