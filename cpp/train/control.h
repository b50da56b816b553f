// Traced control flow: the branches and loops of a step.
#pragma once

#include <functional>
#include <vector>

#include "train/graph_trace.h"

namespace samegrad {

// A user function from tensors to tensors, called once or more while tracing.
using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// The results of one of two functions without arguments, whichever the condition chooses in each
// step. Variables that a branch writes keep their value where the other is taken.
std::vector<Tensor> traced_cond(const Tensor& condition, const TensorFunction& true_fn,
                                const TensorFunction& false_fn);

// The variables after as many iterations of `body` as `condition` gives true for, at most `maximum`
// (-1: any number).
std::vector<Tensor> traced_while(const TensorFunction& condition, const TensorFunction& body,
                                 const std::vector<Tensor>& variables, std::int64_t maximum);

// A loop over the rows of some arrays (one at least, with as many rows each), from the last one if
// `reverse`: `body` takes a row of each and then the variables, and returns the new variables and
// then what it makes of the rows. The variables after the loop, then what was made, stacked.
std::vector<Tensor> traced_scan(const TensorFunction& body, const std::vector<Tensor>& rows,
                                const std::vector<Tensor>& variables, bool reverse);

}  // namespace samegrad
