#include "bind/calls.h"

#include <pybind11/stl.h>

#include <utility>

namespace samegrad {

pybind11::object python_results(std::vector<Tensor> results) {
  if (results.size() == 1) return pybind11::cast(std::move(results[0]));
  return pybind11::cast(std::move(results));
}

}  // namespace samegrad
