#include "runtime/execution_context.h"

#include <algorithm>
#include <utility>

#include "base/thresholds.h"
#include "kernels/table.h"
#include "passes/loop_scheduling.h"
#include "plan/cost.h"
#include "runtime/step_binding.h"

namespace samegrad {

ExecutionContext::ExecutionContext(const Plan& plan,
                                   const IndexedVector<StepId, LoopLayout>& layouts)
    : plan_(plan), layouts_(layouts), values_(plan.graph.values.size()), main_task_(make_task()) {}

void ExecutionContext::bind(const ExecuteParams& call, int threads) {
  counts_ = call.counts;
  world_counts_ = call.world_counts;
  replicas_ = int(counts_.size());
  first_replica_ = call.first_replica();
  threads_ = threads;
  has_halo_ = !call.halo.empty();
  reserved_.clear();
  in_arena_.clear();
  placed_ = nullptr;
  addresses_.assign(std::size_t(replicas_) * (values_ + std::size_t(plan_.prepacked_slots)),
                    nullptr);
  nodes_.assign(plan_.graph.nodes.size(), {});
  set_facts();
  find_trees(call);
  find_impossible();
  place_values();
  place_prepacked();
  bind_nodes();
  bind_steps();
  packing_ = pack(reserved_);
  if (verifies_programs()) verify(packing_, reserved_);
}

std::int64_t ExecutionContext::unshared_bytes() const {
  std::int64_t bytes = 0;
  for (const Interval& interval : reserved_) bytes += interval.bytes;
  // A value in the memory of another one would have its own.
  for (Value v : plan_.graph.values.ids()) {
    if (plan_.live_ranges[v].home == kNoValue || plan_.live_ranges[v].home == v) continue;
    const ValueType& type = plan_.graph.values[v].type;
    for (int r = 0; r < (plan_.storage[v] == Storage::kShared ? 1 : replicas_); ++r) {
      bytes += aligned(size_in_bytes(type.dtype, shape_or_empty(type, counts_[std::size_t(r)])));
    }
  }
  return bytes;
}

void ExecutionContext::take_memory() {
  arena_ = PooledBuffer(std::size_t(packing_.bytes));
#ifdef SAMEGRAD_ASSERTIONS
  std::fill_n(arena_.data(), std::size_t(packing_.bytes), std::byte(0xFF));  // NaN
#endif
  if (arena_.data() == placed_) return;  // the pool gives the same one again
  placed_ = arena_.data();
  for (const auto& [address, reserved, offset] : in_arena_) {
    addresses_[address] = arena_.data() + packing_.offsets[reserved] + offset;
  }
}

void ExecutionContext::open_world_sums(Communicator& communicator) {
  std::int64_t most = replica_tree_->most();
  for (const auto& tree : trees_) most = std::max(most, tree ? tree->most() : 1);
  world_sums_ = std::make_unique<WorldSums>(communicator, most);
}

void ExecutionContext::give_memory() noexcept {
  histories.clear();
  main_task_.scratch.release();
  for (const auto& task : tasks_.lock()->idle) task->scratch.release();
  for (SparseUpdateBinding& rows : sparse_updates_) rows.of_world = {};
  lists_.clear();
  arena_ = {};
}

void ExecutionContext::reserve_scratch() {
  kernels();  // are loaded when they are first asked for
  std::size_t open = 0, task = 0;
  for (const StepBinding& binding : bindings_) {
    const StepScratch scratch =
        std::visit([](const auto& kind) -> StepScratch { return kind.scratch; }, binding);
    open = std::max(open, scratch.open);
    task = std::max(task, scratch.task);
  }
  // The scratch of one update while the operands of another are open.
  open = std::max(open + task, Scratch::kBlockBytes);
  for (const SparseUpdateBinding& rows : sparse_updates_) {
    open = std::max(open, rows.update.task_bytes);
    task = std::max(task, rows.update.task_bytes);
  }
  {
    const Scratch::Frame frame(main_task_.scratch);
    main_task_.scratch.take(open);
  }
  if (threads_ == 1) return;
  BufferPool::instance().reserve(std::size_t(threads_), Scratch::kBlockBytes);
  if (task == 0) return;
  // Tasks that have it.
  std::vector<std::unique_ptr<TaskLease>> tasks;
  for (int t = 0; t < threads_; ++t) {
    tasks.push_back(std::make_unique<TaskLease>(*this));
    const Scratch::Frame frame((**tasks.back()).scratch);
    (**tasks.back()).scratch.take(task);
  }
}

void ExecutionContext::find_impossible() {
  impossible_.assign(std::size_t(replicas_), false);
  for (const ValueInfo& info : plan_.graph.values) {
    for (std::int64_t dim : info.type.shape) {
      if (!is_symbolic(dim)) continue;
      for (std::size_t r = 0; r < impossible_.size(); ++r) {
        if (counts_[r][std::size_t(dim - kSymbols)] < 0) impossible_[r] = true;
      }
    }
  }
}

void ExecutionContext::check_sizes(int replica) const {
  if (!impossible_[std::size_t(replica)]) return;
  for (const ValueInfo& info : plan_.graph.values) {
    (void)concrete_shape(info.type, counts_[std::size_t(replica)]);
  }
}

AddressId ExecutionContext::reserve(std::int64_t bytes, StepId first, StepId last) {
  in_arena_.push_back({addresses_.size(), reserved_.size(), 0});
  reserved_.push_back({aligned(bytes), first.number(), last.number()});
  addresses_.push_back(nullptr);
  return AddressId(in_arena_.back().address);
}

// The rows of all replicas are one after the other, as those of one replica would be.
void ExecutionContext::place_values() {
  // By value: what is reserved for all replicas, and where in it each one's begins.
  PerValue<std::size_t> reserved(values_, 0);
  PerValue<std::vector<std::int64_t>> begins(values_);
  for (Value v : plan_.graph.values.ids()) {
    const LiveRange& life = plan_.live_ranges[v];
    if (life.home != v) continue;
    std::int64_t bytes = 0;
    for (int r = 0; r < copies(v); ++r) {
      const ValueType& type = plan_.graph.values[v].type;
      const std::size_t replica = is_joint_sum(v) ? 0 : std::size_t(r);
      const Shape shape = shape_or_empty(type, counts_[replica]);
      const std::int64_t own = size_in_bytes(type.dtype, shape);
      begins[v].push_back(bytes);
      const bool list = plan_.has_rows[v] && !is_joint_sum(v);
      bytes = size_sum(bytes, list ? own : aligned(own));
    }
    reserved[v] = reserved_.size();
    reserved_.push_back({aligned(bytes), life.first.number(), life.last.number()});
  }
  for (Value v : plan_.graph.values.ids()) {
    if (plan_.live_ranges[v].home == kNoValue) continue;
    const Value home = plan_.live_ranges[v].home;
    for (int r = 0; r < replicas_; ++r) {
      const int copy = is_joint_sum(v) ? 0 : std::min(r, copies(v) - 1);
      const std::int64_t begin = begins[home].empty() ? 0 : begins[home][std::size_t(copy)];
      in_arena_.push_back({address_of(r, v).index(), reserved[home], begin});
    }
  }
}

void ExecutionContext::place_prepacked() {
  sources_.assign(std::size_t(plan_.prepacked_slots), {});
  kept_.clear();
  kept_bytes_ = 0;
  for (StepId s : plan_.steps.ids()) {
    for (const Prepacked& prepacked : plan_.steps[s].prepack()) {
      place_prepacked(prepacked, s);
    }
  }
}

void ExecutionContext::place_prepacked(const Prepacked& prepacked, StepId step) {
  const Graph& graph = plan_.graph;
  const Node& node = graph.nodes[prepacked.node];
  std::vector<View> in;
  Sources& sources = sources_[std::size_t(prepacked.slot)];
  for (Value value : node.inputs) {
    in.push_back(view_of_example(graph.type(value)));
    sources.roots.push_back(plan_.root[value]);
  }
  const auto bytes = aligned(std::int64_t(node.op->prepacking.bytes(in, node.attrs)));
  const int copies = graph.varying(prepacked.operand) ? replicas_ : 1;
  sources.views.assign(std::size_t(copies), in);
  std::int64_t kept = 0;
  for (int r = 0; r < replicas_; ++r) {
    const std::size_t address = prepacked_index(prepacked.slot, r);
    if (prepacked.kept) {
      if (r < copies) kept = std::exchange(kept_bytes_, kept_bytes_ + bytes);
      kept_.emplace_back(address, kept);
      continue;
    }
    if (r < copies) reserved_.push_back({bytes, step.number(), step.number()});
    in_arena_.push_back({address, reserved_.size() - 1, 0});
  }
}

void ExecutionContext::share(IterationMemory* iterations) {
  if (kept_.empty()) return;
  if (iterations->made.empty()) {
    iterations->memory = PooledBuffer(std::size_t(kept_bytes_));
    iterations->made.assign(std::size_t(plan_.prepacked_slots) * std::size_t(replicas_), 0);
  }
  for (const auto& [at, offset] : kept_) addresses_[at] = iterations->memory.data() + offset;
}

void ExecutionContext::bind_nodes() {
  bound_.clear();
  for (const PlanStep& step : plan_.steps) {
    if (!step.binds_nodes()) continue;
    for (NodeId node : step.nodes()) {
      if (!nodes_[node].views.empty()) continue;  // rows may go through a node twice
      bind_node(node);
      if (!nodes_[node].views.empty()) bound_.push_back(node);
    }
  }
}

void ExecutionContext::bind_node(NodeId index) {
  const Graph& graph = plan_.graph;
  const Node& node = graph.nodes[index];
  if (node.op->has(kAliases)) return;
  NodeBinding& binding = nodes_[index];
  binding.symbol = symbol_of_examples(graph, node);
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    binding.types.push_back(graph.type(node.inputs[k]));
    binding.roots.push_back(node.op->reads(k) ? plan_.root[node.inputs[k]] : kNoValue);
  }
  for (Value value : node.outputs) {
    binding.types.push_back(graph.type(value));
    binding.roots.push_back(plan_.root[value]);
  }
  const bool varies = std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [&](Value value) { return graph.varying(value); });
  binding.joint = plan_.joint[index] && node.locality == Locality::kBatchReduction;
  binding.makes_rows = std::ranges::all_of(
      node.outputs, [&](Value value) { return graph.placement(value) == Placement::kSharded; });
  const bool one_list = binding.joint && std::ranges::all_of(node.inputs, [&](Value value) {
                          return graph.type(value).batch.axis <= 0;
                        });
  binding.views.resize(varies && !one_list ? std::size_t(replicas_) : 1);
  for (std::size_t r = 0; r < binding.views.size(); ++r) {
    std::vector<View>& views = binding.views[r];
    for (const ValueType& type : binding.types) {
      views.push_back(
          view_of(type, one_list ? shape_of_all(type) : shape_or_empty(type, counts_[r])));
      binding.most_bytes =
          std::max(binding.most_bytes, views.back().size() * std::int64_t(size_of(type.dtype)));
    }
    const ReplicaContext& of = one_list ? joint_context_ : replica_context_[r];
    binding.examples.push_back(binding.symbol < 0 ? 0
                                                  : of.local_examples[std::size_t(binding.symbol)]);
  }
}

// The shape of the examples of all replicas.
Shape ExecutionContext::shape_of_all(const ValueType& type) const {
  Shape shape = shape_or_empty(type, counts_[0]);
  const bool counts =
      type.batched() && !joins_replicas(plan_.graph.symbols, std::size_t(type.batch.symbol));
  for (int r = 1; counts && r < replicas_; ++r) {
    shape[type.batch.axis] += shape_or_empty(type, counts_[std::size_t(r)])[type.batch.axis];
  }
  return shape;
}

void ExecutionContext::bind_steps() {
  bindings_.assign(plan_.steps.size(), {});
  for (StepId s : plan_.steps.ids()) {
    const auto bind = [&](const auto& step) -> StepBinding {
      return bind_step(step, {plan_, s, *this});
    };
    bindings_[s] = std::visit(bind, plan_.steps[s].kind());
  }
  sparse_updates_.clear();
  for (const SparseUpdate& update : plan_.sparse_updates) {
    sparse_updates_.push_back(bind_sparse_update(plan_, update, *this));
  }
}

void ExecutionContext::refresh() {
  const auto set = [&](std::vector<std::vector<View>>& copies, const std::vector<Value>& roots) {
    for (std::size_t r = 0; r < copies.size(); ++r) {
      std::byte* const* const addresses = bases(int(r));
      View* view = copies[r].data();
      for (const Value root : roots) {
        if (root.exists()) view->data = addresses[root.index()];
        ++view;
      }
    }
  };
  for (const NodeId n : bound_) set(nodes_[n].views, nodes_[n].roots);
  for (Sources& sources : sources_) set(sources.views, sources.roots);
}

Task ExecutionContext::make_task() const {
  Task task;
  for (const LoopLayout& layout : layouts_) task.loop_views.push_back(layout.views);
  return task;
}

ExecutionContext::TaskLease::TaskLease(ExecutionContext& context) : context_(context) {
  {
    const auto tasks = context.tasks_.lock();
    if (!tasks->idle.empty()) {
      task_ = std::move(tasks->idle.back());
      tasks->idle.pop_back();
      return;
    }
  }
  task_ = std::make_unique<Task>(context.make_task());
  const auto tasks = context.tasks_.lock();
  tasks->idle.reserve(tasks->made + 1);  // so that giving it back cannot fail
  ++tasks->made;
}

ExecutionContext::TaskLease::~TaskLease() {
  context_.tasks_.lock()->idle.push_back(std::move(task_));
}

}  // namespace samegrad
