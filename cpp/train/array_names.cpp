#include "train/array_names.h"

#include <atomic>

namespace samegrad {
namespace {

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

ArrayNames::ArrayNames() : number_(next_number()) {}

Value ArrayNames::find(const ArrayName& name) const {
  if (name.trace == number_) return name.value;
  const auto found = values_.find(name);
  return found == values_.end() ? kNoValue : found->second;
}

Value ArrayNames::find(const Tensor& array) const {
  return array.recorded == 0 ? kNoValue : find({array.recorded, array.value});
}

ArrayName ArrayNames::name_of(Value value) const {
  const auto found = names_.find(value);
  return found == names_.end() ? ArrayName{number_, value} : found->second;
}

void ArrayNames::bind(const Tensor& array, Value value) {
  if (array.recorded != 0) return bind({array.recorded, array.value}, value);
  array.recorded = number_;
  array.value = value;
}

void ArrayNames::bind(const ArrayName& name, Value value) {
  if (name.trace == number_) return;
  values_[name] = value;
  names_.try_emplace(value, name);
}

}  // namespace samegrad
