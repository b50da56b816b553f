// A traced function of a dataset: host functions, and compiled programs for their results.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "data/host_function.h"
#include "train/compiled_function.h"
#include "train/current.h"
#include "train/host.h"

namespace samegrad {

class MapFunction {
 public:
  // A function of one value, whose result is another; by their numbers.
  struct HostCall {
    HostFunctionPtr function;
    std::size_t from = 0, to = 0;
  };
  using Types = std::vector<std::pair<DType, Shape>>;
  // A step and the types of its arguments.
  struct TypedStep {
    Types types;
    std::shared_ptr<CompiledFunction> step;
  };
  struct Made {
    std::vector<HostValue> values;  // by number; those that calls give are empty before
    std::vector<Array> outputs;     // of the step
  };

  // `arguments`: the numbers of the values that a step takes.
  MapFunction(const Host& host, std::vector<HostCall> calls, std::vector<std::size_t> arguments,
              std::vector<TypedStep> programs);

  // Makes one element of its values, with the draws that belong to seed and position; false where
  // only Python can: a function of the host gives nothing, or no step is for what they give. It
  // touches no object of Python.
  bool make(std::uint64_t seed, std::uint64_t position, Made& element) const;

 private:
  CompiledFunction* step_for(const std::vector<HostValue>& values) const;

  const Host& host_;
  std::vector<HostCall> calls_;
  std::vector<std::size_t> arguments_;
  std::vector<TypedStep> programs_;
};

// An element's random samples depend on the seed and its position alone. Other random ops of the
// process and other traces of this thread do not change them.
Current for_data_function(std::uint64_t seed, std::uint64_t position);

}  // namespace samegrad
