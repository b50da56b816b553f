// The arguments of a call of a compiled function.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "train/trace.h"

namespace samegrad {

// What a step takes of a call's nested arguments (tuples, lists, dicts): the tensors in order of
// the leaves, and what decides which traced program fits.
struct Arguments {
  std::vector<std::vector<Array>> arrays;  // each with one array, or one per replica
  // The same as tensors, where an eager tape records.
  std::vector<std::vector<Tensor>> tensors;
  int replicas = 1;  // of the PerReplica values
  // Hashable and equal where the same program fits, whatever the number of examples.
  pybind11::object key;
  // Shapes with all counts, for programs that depend on them.
  std::string sizes;
};

Arguments read_arguments(const pybind11::handle& args, const pybind11::handle& kwargs);

}  // namespace samegrad
