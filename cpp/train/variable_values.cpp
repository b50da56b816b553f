#include "train/variable_values.h"

#include <algorithm>
#include <utility>

namespace samegrad {

Value VariableValues::present(const StateCell& variable) const {
  const auto found = present_.find(&variable);
  return found == present_.end() ? kNoValue : found->second;
}

bool VariableValues::is_read(const StateCell& variable) const {
  const auto found = reads_.find(&variable);
  return found != reads_.end() && !found->second.empty() &&
         found->second.back() == present(variable);
}

Value VariableValues::set_read(const StateCell& variable, Value value) {
  add_read(variable, value);
  set(variable, value);
  return value;
}

void VariableValues::add_read_once(const StateCell& variable, Value value) {
  Values& reads = reads_[&variable];
  if (std::ranges::find(reads, value) == reads.end()) reads.push_back(value);
}

void VariableValues::forget_from(Value first) {
  std::erase_if(present_, [first](const auto& entry) { return entry.second >= first; });
  for (auto& [variable, reads] : reads_) {
    std::erase_if(reads, [first](Value value) { return value >= first; });
  }
}

std::size_t VariableValues::count_reads() {
  counts_ = true;
  return counted_.size();
}

}  // namespace samegrad
