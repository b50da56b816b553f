// What the tests of traces share.
#pragma once

#include "ops/registry.h"
#include "train/trace.h"

// While it lives, operations go to the trace.
class Current {
 public:
  explicit Current(std::shared_ptr<samegrad::Trace> trace) {
    samegrad::push_trace(std::move(trace));
  }
  ~Current() { samegrad::pop_trace(); }
};

// An operation with one result.
inline samegrad::Tensor op(const char* name, const std::vector<samegrad::Tensor>& inputs,
                           samegrad::Attrs attrs = {}) {
  return apply(samegrad::OpRegistry::instance().get(name), inputs, std::move(attrs))[0];
}
