#include "train/map_function.h"

#include <algorithm>
#include <memory>

#include "train/current.h"
#include "train/random_state.h"

namespace samegrad {
namespace {

constexpr int kDrawsPerElement = 20;  // bits of the draws of one element

}  // namespace

MapFunction::MapFunction(const Host& host, std::vector<HostCall> calls,
                         std::vector<std::size_t> arguments, std::vector<TypedStep> programs)
    : host_(host),
      calls_(std::move(calls)),
      arguments_(std::move(arguments)),
      programs_(std::move(programs)) {}

bool MapFunction::make(std::uint64_t seed, std::uint64_t position, Made& element) const {
  for (const HostCall& call : calls_) {
    std::optional<HostValue> value = (*call.function)(element.values[call.from]);
    if (!value) return false;
    element.values[call.to] = *std::move(value);
  }
  CompiledFunction* step = step_for(element.values);
  if (!step) return false;
  std::vector<PerReplica<Array>> arguments;
  for (const std::size_t n : arguments_) arguments.push_back({std::get<Array>(element.values[n])});
  const Scope scope(for_data_function(seed, position));
  for (PerReplica<Array>& output : step->run(arguments, host_.check_numerics)) {
    element.outputs.push_back(std::move(output[0]));
  }
  return true;
}

CompiledFunction* MapFunction::step_for(const std::vector<HostValue>& values) const {
  const auto fits = [&](const TypedStep& program) {
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      const auto* array = std::get_if<Array>(&values[arguments_[i]]);
      const auto& [dtype, shape] = program.types[i];
      if (!array || array->dtype() != dtype || array->shape() != shape) return false;
    }
    return true;
  };
  const auto found = std::ranges::find_if(programs_, fits);
  return found == programs_.end() ? nullptr : found->step.get();
}

Current for_data_function(std::uint64_t seed, std::uint64_t position) {
  auto random = std::make_shared<RandomState>(seed, position << kDrawsPerElement);
  return {nullptr, std::move(random), current().context};
}

}  // namespace samegrad
