// What the tests of traces share.
#pragma once

#include "ops/registry.h"
#include "train/eager_trace.h"
#include "train/graph_trace.h"
#include "train/tape.h"

inline samegrad::Host host;  // without lines and locks

// An operation with one result.
inline samegrad::Tensor op(const char* name, const std::vector<samegrad::Tensor>& inputs,
                           samegrad::Attrs attrs = {}) {
  return apply(host, samegrad::OpRegistry::instance().get(name), inputs, std::move(attrs))[0];
}
