// Names of arrays, by which traces that record at the same time find each other's values.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "train/tensor.h"

namespace samegrad {

// The number of the trace that used an array first, and the array's value there.
struct ArrayName {
  std::uint64_t trace = 0;
  Value value = kNoValue;
  auto operator<=>(const ArrayName&) const = default;
};

// The named arrays that are values of one trace.
class ArrayNames {
 public:
  ArrayNames();

  // Returns the value that the array is in this trace, or kNoValue.
  Value find(const ArrayName& name) const;
  Value find(const Tensor& array) const;
  // Returns the name of a value's array, which is a new name if no other trace has named it.
  ArrayName name_of(Value value) const;
  // Makes the value the array's in this trace. An array without a name gets the value's.
  void bind(const Tensor& array, Value value);
  void bind(const ArrayName& name, Value value);
  // Forgets the values from `first` on. New values get other names than they had.
  void forget_from(Value first);

 private:
  // Values from `first` on have names of this number, up to the first one of the next range.
  struct Numbering {
    std::uint64_t number;
    Value first;
  };

  bool owns(const ArrayName& name) const;
  ArrayName own_name(Value value) const;

  std::vector<Numbering> numberings_;
  std::map<ArrayName, Value> values_;
  std::map<Value, ArrayName> names_;
};

}  // namespace samegrad
