// A program in single static assignment form: values and the nodes that make them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/ids.h"
#include "ir/type.h"
#include "tensor/attrs.h"

namespace samegrad {

struct OpDef;
struct Graph;
using GraphPtr = std::shared_ptr<const Graph>;
struct ValueInfo;
struct Node;
struct VariableSlot;
// Ids of the lists of a graph.
using Value = Id<ValueInfo>;
using NodeId = Id<Node>;
using SlotId = Id<VariableSlot>;
using ConstantId = Id<struct Constant>;
using Values = std::vector<Value>;
inline constexpr Value kNoValue;
inline constexpr NodeId kNoNode;
// Tables beside a graph.
template <class T>
using PerValue = IndexedVector<Value, T>;
template <class T>
using PerNode = IndexedVector<NodeId, T>;

// A node's treatment of the example axis, which its shape rule decides. It determines the loops
// over the examples and the placement of the results (ir/placement.h).
enum class Locality : std::uint8_t {
  // Each example of the results is a function of the same example of the operands, all of them on
  // axis 0: any examples make a tile.
  kPerExample,
  kInnerExample,    // per example as well, with examples on another axis
  kBatchReduction,  // a reduction over the examples: the fixed tree
  kCount,           // the number of examples, of which none is read
  kFullBatch        // everything else: needs all examples of the replica, or has none
};
// True if each example is computed independently of the others.
constexpr bool is_per_example(Locality locality) {
  return locality == Locality::kPerExample || locality == Locality::kInnerExample;
}
// True if a loop can compute some examples at a time.
constexpr bool has_tiles(Locality locality) {
  return locality == Locality::kPerExample || locality == Locality::kBatchReduction;
}

// The relation of a replica's value to the value on one device that has all the examples.
enum class Placement : std::uint8_t {
  kReplicated,  // equal on all replicas
  kSharded,     // the replica's part of one value over all examples
  kPartial,     // a linear function of sums over the replica's examples and of replicated values:
                // the all-reduce completes it
  kVarying      // differs between replicas in some other way
};

enum class Source : std::uint8_t { kNode, kArgument, kVariable, kConstant };

// Powers of the counts that a factor is made of.
struct CountPowers {
  std::int8_t local = 0;     // examples of the replica
  std::int8_t global = 0;    // examples of all replicas
  std::int8_t replicas = 0;  // how many there are
  bool operator==(const CountPowers&) const = default;
};

struct ValueInfo {
  ValueType type;
  Source source = Source::kNode;
  // By the source, the number that one of these gives.
  std::int32_t index = -1;
  std::int32_t result = 0;  // which of the node's results
  Placement placement = Placement::kReplicated;
  // The counts of a constant, if the program declared its CountPowers.
  std::optional<CountPowers> counts = {};

  NodeId node() const { return NodeId(index_of(Source::kNode)); }
  std::size_t argument() const { return std::size_t(index_of(Source::kArgument)); }
  SlotId slot() const { return SlotId(index_of(Source::kVariable)); }
  ConstantId constant() const { return ConstantId(index_of(Source::kConstant)); }

 private:
  std::int32_t index_of(Source of) const {
    SG_ASSERT(source == of, "the index of source ", int(source), " read as of ", int(of));
    return index;
  }
};

struct Node {
  const OpDef* op = nullptr;
  std::vector<Value> inputs;
  std::vector<Value> outputs;
  Attrs attrs;
  std::vector<GraphPtr> regions;  // the graphs that it runs, as its op names them
  Locality locality = Locality::kFullBatch;
  // The user's line, "train.py:31", for messages.
  std::int32_t location = -1;
  bool derivative = false;  // made by the gradient walk
  // The stage of loops (passes/loop_scheduling.h), which rematerialization tells elementwise
  // fusion.
  static constexpr std::int32_t kNoStage = -1;
  std::int32_t stage = kNoStage;
};

struct Argument {
  Placement placement = Placement::kReplicated;  // anything else: one array per replica
};

// A variable that the program reads or writes; which one it is, each call says.
struct VariableSlot {
  std::string name;  // for people
  std::size_t components = 1;
};
struct StateWrite {
  SlotId variable;
  Value value;
};

// Nodes [begin, end) that a call of a function recorded: one node to gradients. What flows out of
// it is summed inside first, then added to the other uses.
struct CallRange {
  NodeId begin, end;  // no end: the call is not over
  // The run of a compiled program under an eager tape, whose nodes have no arrays until a gradient
  // needs them; -1: none.
  std::int32_t run = -1;
};

struct Graph {
  IndexedStableList<Value, ValueInfo> values;  // types stay where they are while the graph grows
  PerNode<Node> nodes;                         // operands come before results
  std::vector<Argument> arguments;
  IndexedVector<SlotId, VariableSlot> variables;
  IndexedVector<ConstantId, Array> constants;
  Symbols symbols;
  std::vector<std::string> locations;
  std::vector<Value> outputs;
  std::vector<StateWrite> writes;
  std::vector<CallRange> calls;
  // Values read from variables that were written before: sources of gradients of their own.
  std::vector<StateWrite> rereads;
  int replicas = 1;

  const ValueType& type(Value value) const { return values[value].type; }
  Placement placement(Value value) const { return values[value].placement; }
  // May differ between replicas.
  bool varying(Value value) const { return placement(value) != Placement::kReplicated; }
  // The node that makes the value, or null.
  const Node* producer(Value value) const;

  Value add_argument(const ValueType& type, Placement placement = Placement::kReplicated);
  // Makes these arguments, in this order, all that there are.
  void set_arguments(const Values& order);
  // The value that the variable of a slot has when the program starts.
  Value add_read(SlotId variable, const ValueType& type);
  Value add_constant(const Array& array, const ExampleAxis& batch = {});
  int add_symbol(const Symbol& symbol);
};

// The values of the arguments, in order; kNoValue for an argument that has none.
Values argument_values(const Graph& graph);

// A hash of everything that decides what the graph computes, but for the values of constants.
std::uint64_t hash_of(const Graph& graph);
// Equality of the same; the constants without axes whose values differ, by their index, go to
// `different`, all others must be equal.
bool same_program(const Graph& a, const Graph& b, std::vector<ConstantId>& different);
// Equality of lists of regions, by what they compute.
bool same_regions(std::span<const GraphPtr> a, std::span<const GraphPtr> b);

// ValueError if a value is used before it is computed, or if attributes or regions do not belong to
// the op. ValueError as well if types, localities or placements differ from the op's rule.
void verify(const Graph& graph);

// Behind a type: ", rows", nothing for what is replicated.
const char* suffix_of(Placement placement);

// One line per node, for people.
std::string to_string(const Graph& graph);

}  // namespace samegrad
