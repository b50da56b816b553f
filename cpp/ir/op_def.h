// The op table: one definition per operation, with everything about the operation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_enums.h"
#include "ir/graph.h"
#include "tensor/sparse_tree.h"
#include "tensor/tree_kernel.h"

namespace samegrad {

class Builder;

enum Trait : std::uint32_t {
  kElementwise = 1u << 0,       // results have the broadcast shape of the operands; fusible
  kCollective = 1u << 1,        // crosses replicas; the results are equal on all
  kRandomOp = 1u << 2,          // never merged with an equal node
  kReplicaDependent = 1u << 3,  // differs between replicas without having operands that do
  kNoGradient = 1u << 4,        // the derivative is zero or not defined: the walk stops here
  kSideEffect = 1u << 5,        // kept though nobody reads it (print, checks)
  kBackward = 1u << 6,          // appears in gradients only; not offered to users
  kAliases = 1u << 7,           // the result has the bytes of the first operand (reshape)
  kReplicaInvariant =
      1u << 8,           // equal on all replicas without communication, whatever the operands are
  kControl = 1u << 9,    // runs its regions
  kSplat = 1u << 10,     // one number everywhere: the operand, or that of FullAttrs
  kScatters = 1u << 11,  // most of a big result is zeros: adding up parts costs more than itself
  kMayRaise = 1u << 12,  // for some values; elementwise ops: of integers only
  // Results after the loop variables are stacked residuals of its iterations.
  kStacksResiduals = 1u << 13,
  kIdentity = 1u << 14,  // the result is the operand; what it means to gradients is all it does
  kWholeInnerAxes = 1u << 15,  // results need whole inner axes, which are never cut
  kAnyType = 1u << 16,  // moves, fills or orders elements of any type: nothing is widened for it
  // A row (an element of axis 0) of the result depends on that row of the operand alone, and is one
  // number if the operand's is, however long it may be.
  kBatchwise = 1u << 17,
  // Says what the derivative of its first operands is, and computes nothing.
  kGradientRule = 1u << 18,
  // Each replica's part of a replicated operand: the sum of the parts over the replicas is the
  // operand.
  kReplicaShare = 1u << 19,
  // The ops of `decompose`, which give its bits, are fused with their readers.
  kComposite = 1u << 20,
  kKnownSizes = 1u << 21,  // the rule computes with numbers: a trace is bound to lengths among them
};

struct InferArgs {
  const OpDef& op;
  std::span<const ValueType> in;
  const Attrs& attrs;
  Symbols& symbols;  // may grow (concatenation) or be fixed
  std::span<const GraphPtr> regions = {};

  // For messages: the operand's shape with the counts of the trace in it.
  std::string shape_of(int operand) const;
};
struct Inferred {
  std::vector<ValueType> types;
  Locality locality = Locality::kFullBatch;
  // Per result, where it does not follow from the operands and the locality.
  std::vector<Placement> placements = {};
  // False where the attributes make it no linear function, whatever the op's `linearity` says.
  bool linear = true;
};

struct VjpArgs {
  Builder& b;
  const Attrs& attrs;
  std::span<const Value> in;
  std::span<const Value> out;
  std::span<const Value> ct;  // one per output; kNoValue where nothing flows
};

// The shapes of a call without memory.
struct CostArgs {
  const Attrs& attrs;
  std::span<const View> in, out;
};

// A call for the generated tests: shapes of the operands (axis 0 of the first `batched` ones counts
// examples), attributes and the range of the numbers.
struct Sample {
  std::vector<std::vector<std::int64_t>> shapes;
  Attrs attrs;
  double low = -2, high = 2;
  std::vector<DType> dtypes = {};          // per operand, where not the float under test
  std::vector<std::uint8_t> batched = {};  // per operand; empty: none
  double integer_high = 0;                 // integer operands are drawn from [0, integer_high)
};

// In which operands an op is linear, and what becomes of their factors. By it placements are known
// (ir/placement.h), and analysis/loss_normalization.cpp follows the counts that a program
// multiplies and divides by.
enum class Linearity : std::uint8_t {
  kNone,      // nothing simple
  kSum,       // linear in all together: operands are added, joined or moved
  kChoice,    // one of the operands, as maximum takes
  kProduct,   // linear in each: the factors multiply
  kQuotient,  // linear in the first: its factor by that of the second
  kInverse,   // one by the factor
  kCount      // the result is a count
};

// The one function of the kernel table that an elementwise op is, or one along the last axes.
struct BlockFn {
  enum Kind : std::uint8_t {
    kNone,
    kUnary,
    kBinary,
    kSelect,
    kCast,
    kReduce,
    kSoftmax,
    kRepeat,
    kOneHot
  };
  Kind kind = kNone;
  int fn = 0;  // UnaryFn, BinaryFn or ReduceFn; of kSoftmax: 1 for the logarithm
  bool operator==(const BlockFn&) const = default;
};

// The parallel partition of one call. The units (elements, rows or lines, mostly of results) are
// independent. Every partition gives the same bits.
struct ParallelPartition {
  // The number of units.
  std::int64_t (*count)(const CostArgs& args) = nullptr;
  // Computes units [begin, end) of the whole call that is given.
  void (*run)(const KernelArgs& args, std::int64_t begin, std::int64_t end) = nullptr;
  // For units that do not write results: the bytes of their state (KernelArgs::state; 0 for calls
  // without one), and the function that computes results from it after all units.
  std::size_t (*state_bytes)(const CostArgs& args) = nullptr;
  void (*finish)(const KernelArgs& args) = nullptr;
};

// Groups of an op's fields are whole or absent: OpRegistry::add refuses half of one.

// Prepacking: one operand (a filter, say) is worth packing once per step if it has no examples.
struct Prepacking {
  int operand = -1;  // -1: none
  std::size_t (*bytes)(std::span<const View> in, const Attrs& attrs) = nullptr;
  // The columns of the packed matrix (1: it has no parts), and the function that packs those of
  // [begin, end); an end beyond them is the last one. Threads may pack parts that begin at
  // multiples of kProductColumnGrain.
  std::int64_t (*columns)(std::span<const View> in, const Attrs& attrs) = nullptr;
  void (*run)(std::span<const View> in, const Attrs& attrs, std::int64_t begin, std::int64_t end,
              void* packed) = nullptr;

  explicit operator bool() const { return operand >= 0; }
};

// The grouped product of all replicas' rows with one matrix, which is the prepacked operand.
struct GroupedProduct {
  void (*run)(const GroupedGemmArgs& args) = nullptr;
  bool (*allows)(const Attrs& attrs) = nullptr;  // true if these attributes have one

  explicit operator bool() const { return run != nullptr; }
};

// Collectives other than the all-reduce compute with the values of all replicas at hand.
struct Exchange {
  void (*run)(const ExchangeArgs& args) = nullptr;
  bool first_only = false;  // reads the operands of the first replica alone

  explicit operator bool() const { return run != nullptr; }
};

struct OpDef {
  std::string name;
  std::string doc;
  int min_arity = 1;
  int max_arity = 1;  // -1: any number
  std::vector<std::string> operands = {};
  const AttrSchema* attrs = nullptr;  // schema_of<the struct of its attributes>(); null: none
  std::vector<std::string> regions = {};
  std::uint32_t traits = 0;
  Inferred (*infer)(const InferArgs& args) = nullptr;
  // kPerExample: any number of examples. kFullBatch: everything.
  Kernel kernel = nullptr;
  // The partition of a whole call among threads. Null: the call is not partitioned, or the kernel
  // partitions it itself (KernelArgs::parallel).
  ParallelPartition parts = {};
  // The scratch that the kernel and the end of its parts take at most, beside what the parts leave;
  // parts by themselves take none. Null, or kUnknownBytes for some calls: it is not known.
  std::size_t (*scratch_bytes)(const CostArgs& args) = nullptr;
  static constexpr std::size_t kUnknownBytes = std::size_t(-1);
  // kBatchReduction: the reduction over the examples. An op may have both, and the rule's locality
  // chooses.
  TreeKernel tree = {};
  // Computes the result of `tree` row by row, if most of it is zeros.
  SparseTree rows = {};
  // Builds the cotangents of the inputs (kNoValue: none flows). Null with kNoGradient.
  Values (*vjp)(const VjpArgs& args) = nullptr;
  // Rewrites the node into core ops, so that its derivative is the derivative of those.
  Values (*decompose)(const VjpArgs& args) = nullptr;
  Exchange exchange = {};
  Linearity linearity = Linearity::kNone;
  std::uint32_t scaled = ~0u;  // operands (bit mask) that it is about, all others being parameters
  // Operands (bit mask) whose values are not read, only their types.
  std::uint32_t type_only = 0;
  Prepacking prepacking = {};
  GroupedProduct grouped = {};
  // Products: the op that adds a bias to the result as well, and takes its relu if asked to; its
  // attributes are the same but for those that it leaves out. Empty: none.
  std::string with_bias = {};
  // The block function in a fused loop, for elementwise ops and ops along the last axes.
  BlockFn block = {};
  // Elementwise ops: whether the result may be in the operand's memory, because no element of the
  // operand is read after it has been written. Null: any result in that of any operand.
  bool (*may_overwrite)(const Node& node, std::size_t operand, std::size_t result) = nullptr;
  // Operations of a call, a fused multiply-add being two: times are predicted by it, and what is
  // worth a thread. Null: one for each element of the largest result, or operand that is read.
  double (*flops)(const CostArgs& args) = nullptr;
  std::vector<Sample> samples = {};
  // The op's version in saved models, which only the same version can read. A new version gives
  // equal attributes another meaning. kOfPasses: neither traces nor files have the op.
  static constexpr int kOfPasses = 0;
  int version = 1;

  bool has(Trait trait) const { return (traits & trait) != 0; }
  // True if the operand's values are read, not only its type.
  bool reads(std::size_t operand) const { return !in_mask(type_only, operand); }
  // True if `linearity` describes the operand.
  bool scales(std::size_t operand) const { return in_mask(scaled, operand); }

 private:
  // The last bit represents all further operands.
  static bool in_mask(std::uint32_t mask, std::size_t operand) {
    return (mask >> (operand < 31 ? operand : 31) & 1u) != 0;
  }
};

// True if an op computes, so that its 16-bit operands are promoted (passes/promote_types.cpp).
bool computes(const OpDef& op);
// Operations of such a call; none where only bytes are shown.
double flops_of(const OpDef& op, const CostArgs& args);
// True if the node's kernel raises for some values of its operands.
bool may_raise(const Graph& graph, const Node& node);
// True if the node, or one in its regions, has one of the traits.
bool holds(const Node& node, std::uint32_t traits);
bool contains(const Graph& graph, std::uint32_t traits);

class OpRegistry {
 public:
  static OpRegistry& instance();
  // ValueError for an op with half of a group.
  void add(OpDef def);
  // Null if there is no such op.
  const OpDef* find(std::string_view name) const;
  const OpDef& get(std::string_view name) const;
  std::vector<const OpDef*> all() const;

 private:
  std::vector<std::unique_ptr<OpDef>> ops_;
};

// The name of an op as a template argument: is_op<"matmul">(node).
template <std::size_t kSize>
struct OpName {
  constexpr OpName(const char (&name)[kSize]) { std::copy_n(name, kSize, text); }  // NOLINT
  char text[kSize];
};

// True if the node has this op. tests/unit/test_sources.py checks that the op exists.
template <OpName kName>
bool is_op(const Node& node) {
  return node.op->name == kName.text;
}
template <OpName kName>
bool is_op(const Node* node) {
  return node && is_op<kName>(*node);
}

}  // namespace samegrad
