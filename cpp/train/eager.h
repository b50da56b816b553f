// Eager dispatch: runs the kernels of operations outside of any trace, without a graph.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "train/trace.h"

namespace samegrad {

// The results, or nothing where only a trace knows how: where examples are counted, numbers are
// drawn, replicas meet, or results are checked.
std::optional<std::vector<Tensor>> dispatch_eager(const Host& host, const OpDef& op,
                                                  std::span<const Tensor* const> inputs,
                                                  const Attrs& attrs);

}  // namespace samegrad
