// The type of a value: dtype, shape and example axis.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/per_replica.h"
#include "base/shape.h"
#include "ir/size.h"
#include "tensor/array.h"

namespace samegrad {

// The size of the example axis is kBatchDim in shape: rows_per_example × the count of its symbol.
// Any other axis may have a symbol as its size (is_symbolic), and so may rows_per_example.
struct ValueType {
  DType dtype = DType::kFloat32;
  Shape shape;
  ExampleAxis batch;

  bool batched() const { return batch.exists(); }
  bool operator==(const ValueType&) const = default;
};

// "float32 (?, 10) examples on axis 0"
std::string to_string(const ValueType& type);

// A count that a graph knows: examples, given from outside, or made of others (concatenation adds,
// slicing cuts, gathering joins those of all replicas), and sizes that follow from them. A length
// is the size of another axis of an argument, the same on all replicas: it has a symbol in traces
// only, and is a number in what is compiled of them (passes/specialize_lengths.h).
struct Symbol {
  enum class Kind { kInput, kLength, kSum, kSlice, kGlobal, kSize, kQuotient } kind = Kind::kInput;
  std::vector<int> parts;                             // all but kInput, kLength and kSize
  std::int64_t begin = 0, end = INT64_MAX, step = 1;  // kSlice, as Python's slice;
                                                      // kQuotient: rounded down, by step
  Size size = {};                                     // kSize
  std::optional<Size> equal = {};  // of what follows from lengths: what the trace found it equal to
  std::int64_t traced_count = 0;   // what it was while tracing, on replica 0
  std::int64_t traced_total = -1;  // on all replicas, where that is known
  std::vector<std::int64_t> traced_counts = {};  // of each replica, where they differ
  bool fixed = false;  // the program looked at the count: another count needs another trace

  std::int64_t traced_on(std::size_t replica) const {
    return traced_counts.empty() ? traced_count : traced_counts[replica];
  }
  // Made of the same counts in the same way.
  bool same_rule(const Symbol& other) const {
    return kind == other.kind && parts == other.parts && begin == other.begin && end == other.end &&
           step == other.step && size == other.size;
  }
  // Counts of the trace matter only if the program read them.
  bool operator==(const Symbol& other) const {
    const bool counted = traced_count == other.traced_count && traced_total == other.traced_total &&
                         traced_counts == other.traced_counts;
    return same_rule(other) && fixed == other.fixed && (counted || !fixed);
  }
};

// A guard of the trace on lengths: a relation that was decided for a size that follows from them.
// Lengths for which all guards have the same outcome share the trace (Symbol::equal holds the
// equalities that follow).
struct LengthGuard {
  Size size;
  bool (*holds)(std::int64_t) = nullptr;
  bool outcome = true;
  std::string location = {};  // the line that asked
  bool operator==(const LengthGuard&) const = default;
};

// The symbols of a graph, and of which replicas it is the program: where replicas have different
// counts and a trace needs one, it is that of the replicas that agree with the leader.
struct Symbols : std::vector<Symbol> {
  using std::vector<Symbol>::vector;
  std::vector<int> replicas = {};  // ascending; empty: all of them
  std::vector<LengthGuard> guards = {};
  bool operator==(const Symbols&) const = default;
};

// The numbers of examples of a run: a number for each symbol, per replica.
using Counts = PerReplica<std::vector<std::int64_t>>;

// Counts of all symbols, for each replica, from those of the kInput ones (the others' entries are
// filled in).
void complete_counts(const std::vector<Symbol>& symbols, Counts& counts);
// Completes the counts of one replica, with the counts of the kGlobal symbols given.
void complete_counts(const std::vector<Symbol>& symbols, std::vector<std::int64_t>& counts);
// True if the count is equal on all replicas: a length, or a global count.
bool joins_replicas(const std::vector<Symbol>& symbols, std::size_t symbol);
// True if a size with symbols follows from lengths alone.
bool follows_lengths(const std::vector<Symbol>& symbols, const Size& size);
bool follows_lengths(const std::vector<Symbol>& symbols, std::int64_t dim);
// True if all length guards of the trace hold for these counts (of all symbols, by
// complete_counts).
bool holds_for(const Symbols& symbols, const std::vector<std::int64_t>& counts);
// True if the size of an axis can differ between replicas.
bool differs_between_replicas(const std::vector<Symbol>& symbols, std::int64_t size);
// True if a size other than that of the example axis follows from counts of examples.
bool has_counted_size(const std::vector<Symbol>& symbols, const ValueType& type);

// The counts of all symbols while tracing, one entry, or one per replica where they differ.
Counts counts_of_all(const std::vector<Symbol>& symbols);
// The counts of all symbols while tracing, of the replicas whose program the graph is.
Counts traced_counts(const Symbols& symbols);
// The index of a symbol that is made of others; it is added if there is none like it.
int derived_symbol(std::vector<Symbol>& symbols, Symbol symbol);
// The symbol of as many examples as a size, a number or a symbol, says.
int count_symbol(std::vector<Symbol>& symbols, std::int64_t dim);

// The size that a symbol or the size of an axis is made of.
Size size_of_symbol(const std::vector<Symbol>& symbols, int symbol);
Size size_of(const std::vector<Symbol>& symbols, std::int64_t dim);
Size size_of(const std::vector<Symbol>& symbols, const ValueType& type, int axis);
// A size as a shape holds it: a number, or a symbol, which may be new.
std::int64_t dim_of(std::vector<Symbol>& symbols, const Size& size);
// The value of such a size.
std::int64_t concrete_size(std::int64_t dim, const std::vector<std::int64_t>& counts);
// The index of the leader in those counts: the replica with the most examples, so that its trace
// includes all that the others compute.
std::size_t leader(const Symbols& symbols);
// Decides a condition on a size. Where it depends on the counts, those of the trace decide, and the
// program is bound to them. Replicas on which the outcome differs from the leader's are left out of
// the program.
bool decide(Symbols& symbols, const Size& size, bool (*holds)(std::int64_t));
// True if values of these types are interchangeable. Equality of sizes that follow from lengths
// becomes a guard of the trace. Counts of examples must be the same symbols.
bool same_type(Symbols& symbols, const ValueType& a, const ValueType& b);
// The type of a value that is one of two: the results of two branches, what a loop carries before
// and after an iteration. Without an example axis it takes the other's; of two different axes it
// takes the first. Absent where dtypes or sizes differ.
std::optional<ValueType> joined_type(Symbols& symbols, const ValueType& a, const ValueType& b);
// The size as a number, which binds the program to the counts of the trace; replicas on which it is
// another one are left out of it.
std::int64_t bound_size(Symbols& symbols, const Size& size);
// The count to which the program is bound, if it is and all its replicas have it.
std::optional<std::int64_t> bound_count(const Symbols& symbols, int symbol);
// True if the program is bound to counts for which the axis has one element.
bool is_one(const Symbols& symbols, const ValueType& type, int axis);

// The shape with kBatchDim and symbols replaced for the given counts.
Shape concrete_shape(const ValueType& type, const std::vector<std::int64_t>& counts);
// The concrete shape with 0 for negative sizes: on a replica that does not compute the value.
Shape shape_or_empty(const ValueType& type, const std::vector<std::int64_t>& counts);

// Elements of one example (of the whole value if it has no example axis).
std::int64_t example_size(const ValueType& type);
// Their bytes.
std::int64_t example_bytes(const ValueType& type);

}  // namespace samegrad
