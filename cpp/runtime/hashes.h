// Hashes of a run's values. The hash of a value is the sum of the hashes of its parts (HashKernel).
// Each is added where the part is computed: gradients summed block by block are never whole in
// memory. A process adds the parts that only it has, or that it is the first to have. The sum over
// the processes is the hash of the value over all replicas.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "runtime/execution_context.h"
#include "tensor/tree_kernel.h"

namespace samegrad {

// An array, or the rows [first, first + shape[axis]) of one that has `all` rows (axis < 0: the
// whole array).
struct ArrayPart {
  DType dtype;
  const std::byte* data;
  Shape shape;
  int axis = -1;
  std::int64_t first = 0, all = 0;
};
std::uint64_t hash_of(const ArrayPart& part);
// Arrays of the same type, which differ between replicas: this one of them.
std::uint64_t hash_of_copy(const Array& array, std::int64_t number);

// Elements of a block of a matrix, which has so many columns.
struct PartOfBlock {
  Rect block;
  std::int64_t columns;
  TreeRange some;  // elements of the block
};

// Results of all nodes, but for histories of loops.
std::vector<Value> results_of(const Graph& graph);

class Hashes {
 public:
  // Hashes of the bytes of these values; with bodies, also of all results in the bodies.
  Hashes(const Plan& plan, const std::vector<Value>& values, bool with_bodies = false);

  // Another run begins.
  void reset();

  bool has(Value value) const { return index_[plan_.root[value]] >= 0; }
  std::uint64_t of(Value value) const { return sums_[index_of(value)]; }
  // True if it is what a run changed, to be added to the hash of what the variable was before.
  bool is_change(Value value) const { return changes_[index_of(value)]; }
  // Hashes of the values of a body; null unless with_bodies.
  Hashes* body(const Plan& plan) const;

  // The hash of some elements. Several threads may call it.
  void add(Value value, std::uint64_t hash) { sums_[index_of(value)] += hash; }
  // Adds the hash of a part of a block, if a hash of the value is asked for. `x` has nothing but
  // these elements (add_packed), or all of the value (add_part).
  void add_packed(Value value, const PartOfBlock& part, const std::byte* x);
  void add_part(Value value, const PartOfBlock& part, const std::byte* x);
  void mark_change(Value value) { changes_[index_of(value)] = true; }
  // Results of a node for some examples of a loop, counted from the first one of the context.
  void add_tile(const Node& node, std::span<const View> results, std::int64_t begin,
                std::int64_t end, const ExecuteParams& call, const ReplicaContext& replica_context);
  // Values that a step has stored, and those that were there before the run.
  void add_stored(StepId step, const ExecuteParams& call, ExecutionContext& context);
  void add_external(const ExecuteParams& call, ExecutionContext& context);

 private:
  std::size_t index_of(Value value) const { return std::size_t(index_[plan_.root[value]]); }
  // element_of(element of the value, element of the block): its address.
  template <class F>
  void add_pieces(Value value, const PartOfBlock& part, const F& element_of);
  void add_whole(Value root, const ExecuteParams& call, ExecutionContext& context);

  const Plan& plan_;
  PerValue<std::int32_t> index_;  // of a root, or -1
  std::vector<std::atomic<std::uint64_t>> sums_;
  std::vector<char> changes_;
  IndexedVector<StepId, std::vector<Value>> stored_;  // roots
  std::vector<Value> external_;                       // roots
  std::map<const Plan*, std::unique_ptr<Hashes>> bodies_;
};

// True if this process adds the hash of what all processes have.
bool hashes_replicated(const ExecuteParams& call);

}  // namespace samegrad
