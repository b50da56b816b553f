// Branches and loops while a step is traced.
#pragma once

#include <functional>
#include <vector>

#include "train/trace.h"

namespace samegrad {

// What the user gives: tensors in, tensors out, called once or more while tracing.
using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// The results of one of two functions without arguments, whichever the condition chooses in each
// step. Variables that a branch writes keep their value where the other is taken.
std::vector<Tensor> traced_cond(const Tensor& condition, const TensorFunction& true_fn,
                                const TensorFunction& false_fn);

// The variables after as many rounds of `body` as `condition` gives true for, at most `maximum`
// (-1: any number).
std::vector<Tensor> traced_while(const TensorFunction& condition, const TensorFunction& body,
                                 const std::vector<Tensor>& variables, std::int64_t maximum);

}  // namespace samegrad
