// The type of a value: dtype, shape and example axis.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"
#include "ir/size.h"
#include "tensor/array.h"

namespace samegrad {

// The size of the example axis is kRows in shape: rows_per_example × the count of its symbol. Any
// other axis may have a symbol as its size (is_symbolic), and so may rows_per_example.
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
// only, and is a number in what is compiled of them (passes/set_lengths.h).
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
  // What was counted while tracing decides nothing unless the program looked at it.
  bool operator==(const Symbol& other) const {
    const bool counted = traced_count == other.traced_count && traced_total == other.traced_total &&
                         traced_counts == other.traced_counts;
    return same_rule(other) && fixed == other.fixed && (counted || !fixed);
  }
};

// What the trace took for granted of lengths: whether a relation holds for a size that follows from
// them. Other lengths of which all of this is true have the same trace (Symbol::equal is what
// follows for it).
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

// Counts of all symbols, for each replica, from those of the kInput ones (the others' entries are
// filled in).
void complete_counts(const std::vector<Symbol>& symbols,
                     std::vector<std::vector<std::int64_t>>& counts);
// The same for one replica, with the counts of the kGlobal ones given.
void complete_counts(const std::vector<Symbol>& symbols, std::vector<std::int64_t>& counts);
// Whether the count is equal on all replicas because it joins them.
bool joins_replicas(const std::vector<Symbol>& symbols, std::size_t symbol);
// Whether a size with symbols follows from lengths alone.
bool follows_lengths(const std::vector<Symbol>& symbols, const Size& size);
bool follows_lengths(const std::vector<Symbol>& symbols, std::int64_t dim);
// Whether what the trace took for granted of lengths is true of these (what all symbols are, by
// complete_counts).
bool holds_for(const Symbols& symbols, const std::vector<std::int64_t>& counts);
// Whether the size of an axis follows from what each replica has of its own.
bool differs_between_replicas(const std::vector<Symbol>& symbols, std::int64_t size);
// Whether a size other than that of the examples follows from counts of them.
bool has_counted_size(const std::vector<Symbol>& symbols, const ValueType& type);

// The counts of all symbols while tracing, one entry, or one per replica where they differ.
std::vector<std::vector<std::int64_t>> counts_of_all(const std::vector<Symbol>& symbols);
// The same of the replicas whose program the graph is.
std::vector<std::vector<std::int64_t>> traced_counts(const Symbols& symbols);
// The index of a symbol that is made of others; it is added if there is none like it.
int derived_symbol(std::vector<Symbol>& symbols, Symbol symbol);
// The symbol of as many examples as a size, a number or a symbol, says.
int count_symbol(std::vector<Symbol>& symbols, std::int64_t dim);

// What a symbol or the size of an axis is made of.
Size size_of_symbol(const std::vector<Symbol>& symbols, int symbol);
Size size_of(const std::vector<Symbol>& symbols, std::int64_t dim);
Size size_of(const std::vector<Symbol>& symbols, const ValueType& type, int axis);
// A size as a shape holds it: a number, or a symbol, which may be new.
std::int64_t dim_of(std::vector<Symbol>& symbols, const Size& size);
// The value of such a size.
std::int64_t concrete_size(std::int64_t dim, const std::vector<std::int64_t>& counts);
// Which entry of those is the leader's: the replica with the most examples, so that its trace shows
// what the others only lack.
std::size_t leader(const Symbols& symbols);
// Whether a condition holds for a size. Where that depends on the counts, those of the trace
// decide, and the program is bound to them; replicas on which it is otherwise than on the leader
// are left out of it.
bool decide(Symbols& symbols, const Size& size, bool (*holds)(std::int64_t));
// Whether values of these types can stand for each other. Sizes that follow from lengths are asked
// about, and then the trace keeps the answer; counts of examples must be the same symbols.
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
// Whether the program is bound to counts for which the axis has one element.
bool is_one(const Symbols& symbols, const ValueType& type, int axis);

// The shape with kRows and symbols replaced for the given counts.
Shape concrete_shape(const ValueType& type, const std::vector<std::int64_t>& counts);
// The same with 0 for what would be below: on a replica that does not come to compute the value.
Shape shape_or_empty(const ValueType& type, const std::vector<std::int64_t>& counts);

// Elements of one example (of the whole value if it has no example axis).
std::int64_t example_size(const ValueType& type);
// Their bytes.
std::int64_t example_bytes(const ValueType& type);

}  // namespace samegrad
