// The arguments of a call of a compiled function.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "base/per_replica.h"
#include "train/tensor.h"

namespace samegrad {

// The tensors of a call's nested arguments (tuples, lists, dicts), in order of the leaves. The key
// identifies the traced program that fits them.
struct Arguments {
  std::vector<PerReplica<Array>> arrays;  // each with one array, or one per replica
  // The arrays as tensors, where an eager tape records.
  std::vector<PerReplica<Tensor>> tensors;
  int replicas = 1;  // of the PerReplica values
  // Hashable and equal where the same program fits, whatever the number of examples.
  pybind11::object key;
  // Strings per replica, which pass through a program unread; the key has their number alone.
  pybind11::list strings;
  // Shapes with all counts, for programs that depend on them.
  std::string sizes;
  // Sizes of the axes that the key leaves open, and which axis of which array each is.
  std::string lengths;
  std::vector<std::pair<int, int>> open;
};

// `lengths`: per array, in their order, bits of the axes whose sizes are not part of the key;
// empty: none are left out but those of examples.
Arguments read_arguments(const pybind11::handle& args, const pybind11::handle& kwargs,
                         const std::vector<std::uint32_t>& lengths);

}  // namespace samegrad
