#include "runtime/hashes.h"

#include <algorithm>

#include "base/rounding.h"
#include "kernels/table.h"
#include "plan/buffers.h"
#include "runtime/block_pieces.h"
#include "runtime/threads.h"

namespace samegrad {
namespace {

// Elements that a thread hashes at a time.
constexpr std::int64_t kPiece = std::int64_t(1) << 16;

std::uint64_t hash_of_elements(DType dtype, const std::byte* x, std::int64_t n,
                               std::int64_t first) {
  const HashKernel kernel = kernels().hash(dtype);
  if (n <= kPiece) return kernel(x, n, first);
  const std::int64_t item = std::int64_t(size_of(dtype));
  std::atomic<std::uint64_t> sum = 0;
  parallel_loops().run(divide_up(n, kPiece), [&](std::int64_t i) {
    const std::int64_t begin = i * kPiece, count = std::min(kPiece, n - begin);
    sum += kernel(x + begin * item, count, first + begin);
  });
  return sum;
}

// The number of examples whose hashes this process adds, from the first one of the context on. The
// others are in the halo, and another process adds them.
std::int64_t own_examples(const ExecuteParams& call, int symbol, const ReplicaContext& context) {
  if (context.joint.empty()) return context.local_examples[std::size_t(symbol)];
  std::int64_t own = 0;
  for (std::size_t r = 0; r < call.counts.size(); ++r) {
    if (!call.is_halo(int(r))) own += call.counts[r][std::size_t(symbol)];
  }
  return own;
}

// Histories of loops: numbers to the program, which only loops read.
PerValue<bool> find_histories(const Graph& graph) {
  PerValue<bool> found(graph.values.size(), false);
  for (const Node& node : graph.nodes) {
    for (const Value input : node.inputs) {
      const ValueType& type = graph.type(input);
      if (node.op->has(kControl) && type.dtype == DType::kInt64 && type.shape.rank() == 0) {
        const Node* producer = graph.producer(input);
        found[input] = producer && producer->op->has(kControl);
      }
    }
  }
  for (const Node& node : graph.nodes) {
    if (node.op->has(kControl)) continue;
    for (const Value input : node.inputs) found[input] = false;
  }
  for (const Value output : graph.outputs) found[output] = false;
  return found;
}

}  // namespace

std::vector<Value> results_of(const Graph& graph) {
  const PerValue<bool> histories = find_histories(graph);
  std::vector<Value> results;
  for (const Node& node : graph.nodes) {
    std::ranges::copy_if(node.outputs, std::back_inserter(results),
                         [&](Value value) { return !histories[value]; });
  }
  return results;
}

bool hashes_replicated(const ExecuteParams& call) {
  return !call.communicator || call.communicator->rank() == 0;
}

std::uint64_t hash_of(const ArrayPart& part) {
  const Shape& shape = part.shape;
  const std::int64_t size = shape.size(0, shape.rank());
  if (part.axis < 0) return hash_of_elements(part.dtype, part.data, size, 0);
  const std::int64_t inner = shape.size(part.axis + 1, shape.rank());
  const std::int64_t run = shape[part.axis] * inner;
  const std::int64_t item = std::int64_t(size_of(part.dtype));
  std::uint64_t sum = 0;
  for (std::int64_t at = 0, outer = 0; at < size; at += run, ++outer) {
    const std::int64_t first = (outer * part.all + part.first) * inner;
    sum += hash_of_elements(part.dtype, part.data + at * item, run, first);
  }
  return sum;
}

std::uint64_t hash_of_copy(const Array& array, std::int64_t number) {
  const std::int64_t size = array.shape().size();
  return hash_of_elements(array.dtype(), array.raw(), size, number * size);
}

Hashes::Hashes(const Plan& plan, const std::vector<Value>& values, bool with_bodies)
    : plan_(plan), index_(plan.graph.values.size(), -1), stored_(plan.steps.size()) {
  std::int32_t count = 0;
  for (const Value value : values) {
    std::int32_t& index = index_[plan.root[value]];
    if (index < 0) index = count++;
  }
  sums_ = std::vector<std::atomic<std::uint64_t>>(std::size_t(count));
  changes_.resize(std::size_t(count));
  for (const Value root : plan.graph.values.ids()) {
    if (index_[root] >= 0 && plan.graph.values[root].source != Source::kNode) {
      external_.push_back(root);
    }
  }
  for (const StepId s : plan.steps.ids()) {
    // These add blocks while they are in a cache.
    const PlanStep& step = plan.steps[s];
    if (step.is<BlockUpdateStep>() || step.is<SparseUpdateStep>()) continue;
    for (const Value root : step.uses(plan).writes) {
      if (index_[root] >= 0 && plan.storage[root] != Storage::kTile) stored_[s].push_back(root);
    }
  }
  if (!with_bodies) return;
  for (const auto& [node, bodies] : plan.bodies) {
    for (const auto& body : bodies) {
      bodies_[body.get()] = std::make_unique<Hashes>(*body, results_of(body->graph), true);
    }
  }
}

void Hashes::reset() {
  for (std::atomic<std::uint64_t>& sum : sums_) sum = 0;
  std::ranges::fill(changes_, false);
}

Hashes* Hashes::body(const Plan& plan) const {
  const auto found = bodies_.find(&plan);
  return found == bodies_.end() ? nullptr : found->second.get();
}

template <class F>
void Hashes::add_pieces(Value value, const PartOfBlock& part, const F& element_of) {
  if (!has(value)) return;
  const HashKernel hash = kernels().hash(plan_.graph.type(value).dtype);
  std::uint64_t sum = 0;
  for_each_piece(part.block, part.columns, part.some,
                 [&](std::int64_t at, std::int64_t in_block, std::int64_t count) {
                   sum += hash(element_of(at, in_block), count, at);
                 });
  add(value, sum);
}

void Hashes::add_packed(Value value, const PartOfBlock& part, const std::byte* x) {
  const auto item = std::int64_t(size_of(plan_.graph.type(value).dtype));
  add_pieces(value, part, [&](std::int64_t, std::int64_t in_block) {
    return x + (in_block - part.some.begin) * item;
  });
}

void Hashes::add_part(Value value, const PartOfBlock& part, const std::byte* x) {
  const auto item = std::int64_t(size_of(plan_.graph.type(value).dtype));
  add_pieces(value, part, [&](std::int64_t at, std::int64_t) { return x + at * item; });
}

void Hashes::add_tile(const Node& node, std::span<const View> results, std::int64_t begin,
                      std::int64_t end, const ExecuteParams& call,
                      const ReplicaContext& replica_context) {
  for (std::size_t k = 0; k < results.size(); ++k) {
    const Value value = node.outputs[k];
    const Value root = plan_.root[value];
    if (index_[root] < 0 || plan_.storage[root] != Storage::kTile || root != value) continue;
    const ValueType& type = plan_.graph.type(value);
    if (!type.batched() || end == begin) continue;
    const auto symbol = std::size_t(type.batch.symbol);
    if (!plan_.graph.varying(value) && !hashes_replicated(call)) continue;
    const std::int64_t own = own_examples(call, int(symbol), replica_context);
    const std::int64_t each = results[k].size() / (end - begin);
    const std::int64_t count = std::min(end, own) - begin;
    if (count <= 0) continue;
    const std::int64_t before = replica_context.first_example[symbol];
    const HashKernel hash = kernels().hash(type.dtype);
    add(value, hash(results[k].data, count * each, (before + begin) * each));
  }
}

void Hashes::add_whole(Value root, const ExecuteParams& call, ExecutionContext& context) {
  const ValueType& type = plan_.graph.type(root);
  std::atomic<std::uint64_t>& sum = sums_[index_of(root)];
  if (!plan_.graph.varying(root)) {
    if (!hashes_replicated(call)) return;
    const Shape shape = shape_or_empty(type, call.counts[0]);
    sum += hash_of({type.dtype, context.base(0, root), shape});
    return;
  }
  if (context.is_joint_sum(root)) {
    // Processes divide the examples into subtrees of their own: no other process has such sums.
    if (call.communicator) return;
    const Shape shape = shape_or_empty(type, call.counts[0]);
    const std::int64_t size = shape.size(0, shape.rank());
    for (std::int64_t t = 0; t < context.terms(root); ++t) {
      sum += hash_of_elements(type.dtype, context.term(root, t), size, t * size);
    }
    return;
  }
  for (int r = 0; r < context.own_replicas(); ++r) {
    if (!call.runs(r)) continue;
    const Shape shape = shape_or_empty(type, call.counts[std::size_t(r)]);
    const std::byte* data = context.base(r, root);
    if (!type.batched()) {
      const std::int64_t size = shape.size(0, shape.rank());
      sum += hash_of_elements(type.dtype, data, size, (call.first_replica() + r) * size);
      continue;
    }
    const auto symbol = std::size_t(type.batch.symbol);
    const ReplicaContext& of = context.of_replica(r);
    if (of.local_examples[symbol] == 0) continue;
    const std::int64_t rows = shape[type.batch.axis] / of.local_examples[symbol];
    sum += hash_of({type.dtype, data, shape, type.batch.axis, of.first_example[symbol] * rows,
                    of.global_examples[symbol] * rows});
  }
}

void Hashes::add_stored(StepId step, const ExecuteParams& call, ExecutionContext& context) {
  for (const Value root : stored_[step]) add_whole(root, call, context);
}

void Hashes::add_external(const ExecuteParams& call, ExecutionContext& context) {
  for (const Value root : external_) add_whole(root, call, context);
}

}  // namespace samegrad
