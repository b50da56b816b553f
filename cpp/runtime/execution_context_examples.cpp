// The examples of a context's replicas: their counts, the trees over them, and where
// rows of arguments are.
#include <algorithm>
#include <cstring>
#include <utility>

#include "passes/loop_scheduling.h"
#include "runtime/execution_context.h"

namespace samegrad {

void ExecutionContext::set_facts() {
  replica_context_.assign(std::size_t(replicas_), {});
  std::vector<std::int64_t> first(plan_.graph.symbols.size(), 0);
  for (int w = 0; w < replicas_of_world(); ++w) {
    const std::vector<std::int64_t>& counts = counts_of_world()[std::size_t(w)];
    const int r = w - first_replica_;
    if (r >= 0 && r < replicas_) {  // of the halo as if it were the next one's
      ReplicaContext& replica_context = replica_context_[std::size_t(r)];
      replica_context.replica = w;
      replica_context.replicas = replicas_of_world();
      replica_context.local_examples = counts_[std::size_t(r)];
      replica_context.first_example = first;
    }
    for (std::size_t s = 0; s < first.size(); ++s) {
      if (!joins_replicas(plan_.graph.symbols, s)) first[s] += counts[s];
    }
  }
  for (std::size_t s = 0; s < first.size(); ++s) {
    if (joins_replicas(plan_.graph.symbols, s)) first[s] = counts_of_world()[0][s];
  }
  for (ReplicaContext& replica_context : replica_context_) replica_context.global_examples = first;
  joint_context_ = replica_context_[0];
  joint_context_.joint = replica_context_;
  for (std::size_t s = 0; s < first.size(); ++s) {
    if (joins_replicas(plan_.graph.symbols, s)) continue;
    for (int r = 1; r < replicas_; ++r) {
      joint_context_.local_examples[s] += counts_[std::size_t(r)][s];
    }
  }
}

void ExecutionContext::find_trees(const ExecuteParams& call) {
  trees_.clear();
  replica_tree_.reset();
  const std::vector<Symbol>& symbols = plan_.graph.symbols;
  subtrees_.assign(symbols.size(), {});
  if (call.has_world()) {
    const Communicator& world = *call.communicator;
    trees_ = example_trees(symbols, counts_of_world(), world);
    std::vector<std::int64_t> firsts;
    for (int rank = 0; rank < world.size(); ++rank) firsts.push_back(world.replicas_of(rank).begin);
    firsts.push_back(world.replicas());
    replica_tree_.emplace(std::move(firsts), kReplicaTree, world.rank());
  }
  for (std::size_t s = 0; s < symbols.size(); ++s) {
    if (!call.has_world()) {
      subtrees_[s] = {{0, joint_context_.local_examples[s]}};
    } else if (trees_[s]) {
      subtrees_[s].assign(trees_[s]->own().begin(), trees_[s]->own().end());
    }
  }
}

const WorldTree& ExecutionContext::tree_of(Value sum) const {
  const Value root = plan_.root[sum];
  if (!is_joint_sum(root)) return *replica_tree_;
  return *trees_[std::size_t(symbol_of_examples(plan_.graph, *plan_.graph.producer(root)))];
}

std::int64_t ExecutionContext::sum_stride(Value value) const {
  const ValueType& type = plan_.graph.type(value);
  return aligned(size_in_bytes(type.dtype, shape_or_empty(type, counts_[0])));
}

void ExecutionContext::set_call(const ExecuteParams& call) {
  const auto set = [&](ReplicaContext& one) {
    one.seed = call.seed;
    one.step = call.step;
    one.messages = call.messages;
  };
  for (ReplicaContext& one : replica_context_) set(one);
  set(joint_context_);
}

void ExecutionContext::make_list(Value value, const PerReplica<Array>& arrays) {
  if (!plan_.graph.varying(value)) return;
  const auto array_of = [&](int r) -> const Array& {
    return arrays[std::min(std::size_t(r), arrays.size() - 1)];
  };
  std::size_t bytes = 0;
  const std::byte* first = nullptr;
  bool is_list = true;
  for (int r = 0; r < replicas_; ++r) {
    const Array& array = array_of(r);
    if (array.bytes() == 0) continue;
    if (!first) first = array.raw();
    is_list &= array.raw() == first + bytes;
    bytes += array.bytes();
  }
  if (bytes == 0) return;
  std::byte* list = is_list ? const_cast<std::byte*>(first) : lists_.emplace_back(bytes).data();
  for (int r = 0; r < replicas_; ++r) {
    const Array& array = array_of(r);
    if (!is_list && array.bytes()) std::memcpy(list, array.raw(), array.bytes());
    base(r, value) = list;
    list += array.bytes();
  }
}

int ExecutionContext::copies(Value value) const {
  if (is_joint_sum(value)) {
    const int symbol = symbol_of_examples(plan_.graph, *plan_.graph.producer(plan_.root[value]));
    return int(subtrees(symbol).size());
  }
  return plan_.storage[value] == Storage::kShared ? 1 : replicas_;
}

}  // namespace samegrad
