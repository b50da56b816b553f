// The type of a value: dtype, shape and example axis.
#pragma once

#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"
#include "tensor/array.h"

namespace samegrad {

// The size of the example axis is kRows in shape: rows_per_example × the count of its symbol.
struct ValueType {
  DType dtype = DType::kFloat32;
  Shape shape;
  ExampleAxis batch;

  bool batched() const { return batch.exists(); }
  bool operator==(const ValueType&) const = default;
};

// "float32 (?, 10) examples on axis 0"
std::string to_string(const ValueType& type);

// A count of examples that a graph knows: given from outside, or made of others (concatenation
// adds, slicing cuts, gathering joins those of all replicas).
struct Symbol {
  enum class Kind { kInput, kSum, kSlice, kGlobal } kind = Kind::kInput;
  std::vector<int> parts;                             // all but kInput
  std::int64_t begin = 0, end = INT64_MAX, step = 1;  // kSlice, as Python's slice
  std::int64_t traced_count = 0;                      // what it was while tracing, on replica 0
  std::int64_t traced_total = -1;                     // on all replicas, where that is known
  bool fixed = false;  // the program looked at the count: another count needs another trace

  // Made of the same counts in the same way.
  bool same_rule(const Symbol& other) const {
    return kind == other.kind && parts == other.parts && begin == other.begin && end == other.end &&
           step == other.step;
  }
  // What was counted while tracing decides nothing unless the program looked at it.
  bool operator==(const Symbol& other) const {
    const bool counted = traced_count == other.traced_count && traced_total == other.traced_total;
    return same_rule(other) && fixed == other.fixed && (counted || !fixed);
  }
};

// Counts of all symbols, for each replica, from those of the kInput ones (the others' entries are
// filled in).
void complete_counts(const std::vector<Symbol>& symbols,
                     std::vector<std::vector<std::int64_t>>& counts);
// The same for one replica, with the counts of the kGlobal ones given too.
void complete_counts(const std::vector<Symbol>& symbols, std::vector<std::int64_t>& counts);
// Whether the count is equal on all replicas because it joins them.
bool joins_replicas(const std::vector<Symbol>& symbols, std::size_t symbol);

// The shape with kRows replaced for the given counts.
Shape concrete_shape(const ValueType& type, const std::vector<std::int64_t>& counts);

// Elements of one example (of the whole value if it has no example axis).
std::int64_t example_size(const ValueType& type);

}  // namespace samegrad
