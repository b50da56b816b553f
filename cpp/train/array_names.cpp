#include "train/array_names.h"

#include <algorithm>
#include <atomic>
#include <iterator>

namespace samegrad {
namespace {

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

ArrayNames::ArrayNames() : numberings_{{next_number(), Value(0)}} {}

bool ArrayNames::owns(const ArrayName& name) const {
  const auto found = std::ranges::find(numberings_, name.trace, &Numbering::number);
  if (found == numberings_.end() || name.value < found->first) return false;
  const auto next = std::next(found);
  return next == numberings_.end() || name.value < next->first;
}

ArrayName ArrayNames::own_name(Value value) const {
  const auto next = std::ranges::upper_bound(numberings_, value, {}, &Numbering::first);
  return {std::prev(next)->number, value};
}

Value ArrayNames::find(const ArrayName& name) const {
  if (owns(name)) return name.value;
  const auto found = values_.find(name);
  return found == values_.end() ? kNoValue : found->second;
}

Value ArrayNames::find(const Tensor& array) const {
  return array.recorded == 0 ? kNoValue : find({array.recorded, array.value});
}

ArrayName ArrayNames::name_of(Value value) const {
  const auto found = names_.find(value);
  return found == names_.end() ? own_name(value) : found->second;
}

void ArrayNames::bind(const Tensor& array, Value value) {
  if (array.recorded != 0) return bind({array.recorded, array.value}, value);
  array.recorded = own_name(value).trace;
  array.value = value;
}

void ArrayNames::bind(const ArrayName& name, Value value) {
  if (owns(name)) return;
  values_[name] = value;
  names_.try_emplace(value, name);
}

void ArrayNames::forget_from(Value first) {
  names_.erase(names_.lower_bound(first), names_.end());
  std::erase_if(values_, [first](const auto& entry) { return entry.second >= first; });
  while (numberings_.size() > 1 && numberings_.back().first >= first) numberings_.pop_back();
  numberings_.push_back({next_number(), first});
}

}  // namespace samegrad
