#include "runtime/context.h"

#include <algorithm>
#include <utility>

#include "base/thresholds.h"
#include "kernels/table.h"
#include "passes/stages.h"
#include "plan/cost.h"
#include "runtime/reduce_update.h"
#include "runtime/row_blocks.h"

#include "tensor/tree.h"

namespace samegrad {

Context::Context(const Plan& plan, const IndexedVector<LoopId, LoopLayout>& layouts)
    : plan_(plan), layouts_(layouts), values_(plan.graph.values.size()), main_task_(make_task()) {}

void Context::bind(const Call& call, int threads) {
  counts_ = call.counts;
  world_counts_ = call.world_counts;
  replicas_ = int(counts_.size());
  first_replica_ = call.first_replica();
  threads_ = threads;
  has_halo_ = !call.halo.empty();
  reserved_.clear();
  pending_.clear();
  placed_ = nullptr;
  bases_.assign(std::size_t(replicas_) * values_, nullptr);
  nodes_.assign(plan_.graph.nodes.size(), {});
  set_facts();
  find_trees(call);
  find_impossible();
  node_places_.clear();
  tree_places_.clear();
  place_values();
  place_prepared();
  place_loops();
  bind_nodes();
  bind_updates();
  bind_row_updates();
  packing_ = pack(reserved_);
  if (verifies_programs()) verify(packing_, reserved_);
#ifdef SAMEGRAD_ASSERTIONS
  bound_addresses_ = kept_addresses();
#endif
}

std::vector<const void*> Context::kept_addresses() const {
  std::vector<const void*> addresses{bases_.data(), prepared_.data()};
  for (const auto& sources : sources_) {
    for (const auto& views : sources) addresses.push_back(views.data());
  }
  for (const LoopBinding& loop : loops_) {
    for (const Chunk& chunk : loop.chunks) addresses.push_back(chunk.trees.data());
  }
  for (const NodeBinding& node : nodes_) {
    for (const auto& views : node.views) addresses.push_back(views.data());
  }
  for (const RowBinding& rows : row_updates_) addresses.push_back(&rows);
  return addresses;
}

std::int64_t Context::unshared_bytes() const {
  std::int64_t bytes = 0;
  for (const Interval& interval : reserved_) bytes += interval.bytes;
  // A value in the memory of another one would have its own.
  for (Value v : plan_.graph.values.ids()) {
    if (plan_.lives[v].home == kNoValue || plan_.lives[v].home == v) continue;
    const ValueType& type = plan_.graph.values[v].type;
    for (int r = 0; r < (plan_.storage[v] == Storage::kShared ? 1 : replicas_); ++r) {
      bytes += aligned(size_in_bytes(type.dtype, shape_or_empty(type, counts_[std::size_t(r)])));
    }
  }
  return bytes;
}

void Context::take_memory() {
  SG_ASSERT(kept_addresses() == bound_addresses_, "a vector has grown since bind()");
  arena_ = Leased(std::size_t(packing_.bytes));
#ifdef SAMEGRAD_ASSERTIONS
  std::fill_n(arena_.data(), std::size_t(packing_.bytes), std::byte(0xFF));  // NaN
#endif
  if (arena_.data() == placed_) return;  // the pool gives the same one again
  placed_ = arena_.data();
  for (const auto& [where, reserved, offset] : pending_) {
    *where = arena_.data() + packing_.offsets[std::size_t(reserved)] + offset;
  }
}

void Context::open_world_sums(Communicator& communicator) {
  std::int64_t most = replica_tree_->most();
  for (const auto& tree : trees_) most = std::max(most, tree ? tree->most() : 1);
  world_sums_ = std::make_unique<WorldSums>(communicator, most);
}

void Context::give_memory() noexcept {
  histories.clear();
  main_task_.scratch.release();
  for (const auto& task : tasks_.lock()->idle) task->scratch.release();
  for (RowBinding& rows : row_updates_) rows.of_world = {};
  lists_.clear();
  arena_ = {};
}

void Context::reserve_scratch() {
  kernels();  // are loaded when they are first asked for
  std::size_t open = Scratch::kBlockBytes, task = 0;
  for (const UpdateBinding& update : updates_) {
    open = std::max(open, update.open_bytes);
    task = std::max(task, update.task_bytes);
  }
  open += task;  // of one update while the operands of another are open
  for (const RowBinding& rows : row_updates_) {
    open = std::max(open, rows.update.task_bytes);
    task = std::max(task, rows.update.task_bytes);
  }
  if (std::ranges::count(plan_.steps, PlanStep::Kind::kNodes, &PlanStep::kind) > 0) {
    task = std::max(task, Scratch::kBlockBytes);
  }
  {
    const Scratch::Frame frame(main_task_.scratch);
    main_task_.scratch.take(open);
  }
  if (threads_ == 1) return;
  BufferPool::instance().reserve(std::size_t(threads_), Scratch::kBlockBytes);
  if (task == 0) return;
  // Tasks that have it.
  std::vector<std::unique_ptr<Lease>> tasks;
  for (int t = 0; t < threads_; ++t) {
    tasks.push_back(std::make_unique<Lease>(*this));
    const Scratch::Frame frame((**tasks.back()).scratch);
    (**tasks.back()).scratch.take(task);
  }
}

void Context::find_impossible() {
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

void Context::check_sizes(int replica) const {
  if (!impossible_[std::size_t(replica)]) return;
  for (const ValueInfo& info : plan_.graph.values) {
    (void)concrete_shape(info.type, counts_[std::size_t(replica)]);
  }
}

std::int64_t Context::reserve(std::int64_t bytes, StepId first, StepId last) {
  reserved_.push_back({aligned(bytes), first.number(), last.number()});
  return std::int64_t(reserved_.size()) - 1;
}

// The rows of all replicas are one after the other, as those of one replica would be.
void Context::place_values() {
  // By value: what is reserved for all replicas, and where in it each one's begins.
  PerValue<std::int64_t> reserved(values_, -1);
  PerValue<std::vector<std::int64_t>> begins(values_);
  for (Value v : plan_.graph.values.ids()) {
    const Life& life = plan_.lives[v];
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
    reserved[v] = reserve(bytes, life.first, life.last);
  }
  for (Value v : plan_.graph.values.ids()) {
    if (plan_.lives[v].home == kNoValue) continue;
    const Value home = plan_.lives[v].home;
    for (int r = 0; r < replicas_; ++r) {
      const int copy = is_joint_sum(v) ? 0 : std::min(r, copies(v) - 1);
      const std::int64_t begin = begins[home].empty() ? 0 : begins[home][std::size_t(copy)];
      pending_.push_back({&base(r, v), reserved[home], begin});
    }
  }
}

void Context::place_prepared() {
  prepared_.assign(std::size_t(plan_.prepared_slots) * std::size_t(replicas_), nullptr);
  sources_.assign(std::size_t(plan_.prepared_slots), {});
  kept_.clear();
  kept_bytes_ = 0;
  for (StepId s : plan_.steps.ids()) {
    for (const Prepared& prepared : plan_.steps[s].prepare) {
      place_prepared(prepared, s);
    }
  }
}

void Context::place_prepared(const Prepared& prepared, StepId step) {
  const Graph& graph = plan_.graph;
  const Node& node = graph.nodes[prepared.node];
  std::vector<View> in;
  for (Value value : node.inputs) in.push_back(view_of_example(graph.type(value)));
  const auto bytes = std::int64_t(node.op->prepared_bytes(in, node.attrs));
  auto& sources = sources_[std::size_t(prepared.slot)];
  sources.assign(graph.varying(prepared.operand) ? std::size_t(replicas_) : 1, in);
  std::int64_t reserved = 0;
  for (std::size_t r = 0; r < std::size_t(replicas_); ++r) {
    const auto at = std::size_t(prepared.slot) * std::size_t(replicas_) + r;
    if (r < sources.size()) {
      reserved = prepared.kept ? std::exchange(kept_bytes_, kept_bytes_ + aligned(bytes))
                               : reserve(bytes, step, step);
      for (std::size_t k = 0; k < in.size(); ++k) {
        const Value root = plan_.root[node.inputs[k]];
        node_places_.emplace_back(&sources[r][k].data, &base(int(r), root));
      }
    }
    if (prepared.kept) {
      kept_.emplace_back(at, reserved);
    } else {
      pending_.push_back({&prepared_[at], reserved, 0});
    }
  }
}

void Context::share(RoundMemory* rounds) {
  if (kept_.empty()) return;
  if (rounds->made.empty()) {
    rounds->memory = Leased(std::size_t(kept_bytes_));
    rounds->made.assign(prepared_.size(), 0);
  }
  for (const auto& [at, offset] : kept_) prepared_[at] = rounds->memory.data() + offset;
}

void Context::place_loops() {
  loops_.assign(plan_.loops.size(), {});
  for (StepId s : plan_.steps.ids()) {
    const PlanStep& step = plan_.steps[s];
    if (step.kind != PlanStep::Kind::kLoop) continue;
    make_chunks(step.loop());
    place_trees(step.loop(), s);
  }
}

namespace {

// How many examples of a loop one thread takes at a time; 0 threads: it has the caller's alone.
std::int64_t chunk_of(const Loop& loop, std::int64_t total, int threads) {
  if (threads == 0) return std::max(loop.tile_examples, total);
  const auto part = [&](std::int64_t pieces) { return (total + pieces - 1) / pieces; };
  const std::int64_t even = part(thresholds().parts_per_thread * threads);
  // Each chunk passes through the weights at least once.
  const std::int64_t wide = streams_weights(loop) ? part(threads) : 0;
  return std::max(std::max(even, std::min(wide, loop.tile_examples)), kLeafExamples);
}

}  // namespace

// True if the loop makes rows of the global batch.
bool Context::makes_rows(const Loop& loop) const {
  return std::ranges::any_of(loop.nodes, [&](NodeId n) {
    return std::ranges::any_of(plan_.graph.nodes[n].outputs, [&](Value value) {
      return plan_.graph.placement(value) == Placement::kRows;
    });
  });
}

void Context::make_chunks(LoopId index) {
  const Loop& loop = plan_.loops[index];
  const LoopLayout& layout = layouts_[index];
  LoopBinding& binding = loops_[index];
  binding.joint = loop.joint;
  const auto symbol = std::size_t(loop.symbol);
  std::vector<TreeRange> lists;
  if (loop.joint) lists = subtrees_[symbol];
  for (int r = 0; !loop.joint && r < (loop.varying ? replicas_ : 1); ++r) {
    // A replica's own values are made of no other process's examples.
    const bool here = r < own_replicas() || makes_rows(loop);
    lists.push_back({0, here ? replica_context_[std::size_t(r)].local_examples[symbol] : 0});
  }
  const std::int64_t total = loop.varying ? replica_context_[0].global_examples[symbol]
                                          : replica_context_[0].local_examples[symbol];
  binding.parallel =
      threads_ > 1 && layout.work * double(total) > double(thresholds().parallel_loop_work);
  binding.chunk_examples = chunk_of(loop, total, binding.parallel ? threads_ : 0);
  const auto add = [&](int list, std::int64_t begin, std::int64_t end) {
    binding.chunks.push_back({list, begin, end, {}, {}, 0});
    Chunk& chunk = binding.chunks.back();
    chunk.trees.resize(loop.trees.size());
    for (const TreeReduction& tree : layout.trees) {
      chunk.partials.push_back(chunk.partial_bytes);
      chunk.partial_bytes += TreeAccumulator::partial_bytes(tree, tree.whole, end - begin);
    }
  };
  for (std::size_t i = 0; i < lists.size(); ++i) {
    binding.first_chunk.push_back(std::int32_t(binding.chunks.size()));
    walk_tree(
        lists[i].begin, lists[i].end, binding.chunk_examples, 0,
        [&](std::int64_t begin, std::int64_t end, int) { add(int(i), begin, end); }, [](int) {});
  }
  binding.first_chunk.push_back(std::int32_t(binding.chunks.size()));
  // Rows of a leaf that begins in another process, which makes it.
  if (loop.joint) {
    const std::int64_t own = joint_context_.local_examples[symbol];
    const std::int64_t before = lists.empty() ? own : lists[0].begin;
    if (before > 0) add(-1, 0, before);
  }
  make_joins(index);
}

void Context::place_trees(LoopId index, StepId step) {
  const Loop& loop = plan_.loops[index];
  const LoopLayout& layout = layouts_[index];
  LoopBinding& binding = loops_[index];
  // The first chunk of a list folds into the result itself, where that is the state.
  for (Chunk& chunk : binding.chunks) {
    if (chunk.list < 0) continue;
    const auto list = std::size_t(chunk.list);
    const bool first = &chunk == &binding.chunks[std::size_t(binding.first_chunk[list])];
    for (std::size_t t = 0; t < chunk.trees.size(); ++t) {
      const TreeReduction& tree = layout.trees[t];
      if (first && !tree.kernel->finish) {
        const std::int64_t offset = loop.joint ? chunk.list * sum_stride(loop.trees[t]) : 0;
        const int replica = loop.joint ? 0 : chunk.list;
        tree_places_.push_back({&chunk.trees[t], &base(replica, loop.trees[t]), offset});
      } else {
        pending_.push_back({&chunk.trees[t], reserve(tree.whole.bytes, step, step), 0});
      }
    }
  }
}

namespace {

// The blocks of all joins are the results of all trees, once for each replica with several chunks.
[[maybe_unused]] bool join_everything(const LoopBinding& binding, const LoopLayout& layout) {
  std::int64_t elements = 0;
  for (const Join& join : binding.joins) elements += join.block.size();
  for (std::size_t r = 0; r + 1 < binding.first_chunk.size(); ++r) {
    if (binding.first_chunk[r + 1] - binding.first_chunk[r] == 1) continue;
    for (const TreeReduction& tree : layout.trees) elements -= tree.whole.block.size();
  }
  return elements == 0;
}

}  // namespace

void Context::make_joins(LoopId index) {
  LoopBinding& binding = loops_[index];
  std::int64_t bytes = 0;
  const int tasks = binding.parallel ? int(thresholds().parts_per_thread) * threads_ : 1;
  for (std::size_t r = 0; r + 1 < binding.first_chunk.size(); ++r) {
    const std::int64_t chunks = binding.first_chunk[r + 1] - binding.first_chunk[r];
    if (chunks < 2) continue;
    for (std::size_t t = 0; t < layouts_[index].trees.size(); ++t) {
      const Extent blocks = layouts_[index].trees[t].blocks(tasks);
      for (std::int64_t i = 0; i < blocks.cuts(); ++i) {
        binding.joins.push_back({int(r), t, blocks.cut(i)});
      }
      bytes += blocks.bytes * chunks;
    }
  }
  SG_ASSERT(join_everything(binding, layouts_[index]), "joins of loop ", index);
  binding.parallel_joins = binding.parallel && bytes > thresholds().parallel_replica_bytes;
}

void Context::bind_nodes() {
  for (const PlanStep& step : plan_.steps) {
    const bool binds =
        step.kind == PlanStep::Kind::kNode || step.kind == PlanStep::Kind::kNodes ||
        step.kind == PlanStep::Kind::kRows || step.kind == PlanStep::Kind::kReduceUpdate ||
        step.kind == PlanStep::Kind::kRowReduce || step.kind == PlanStep::Kind::kRowUpdate;
    if (!binds) continue;
    for (NodeId node : step.nodes) {
      if (nodes_[node].views.empty()) bind_node(node);  // rows may go through a node twice
    }
  }
}

void Context::bind_node(NodeId index) {
  const Graph& graph = plan_.graph;
  const Node& node = graph.nodes[index];
  if (node.op->has(kAliases)) return;
  NodeBinding& binding = nodes_[index];
  binding.symbol = symbol_of_examples(graph, node);
  for (Value value : node.inputs) binding.types.push_back(graph.type(value));
  for (Value value : node.outputs) binding.types.push_back(graph.type(value));
  const bool varies = std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [&](Value value) { return graph.varying(value); });
  binding.joint = plan_.joint[index] && node.locality == Locality::kTree;
  binding.makes_rows = std::ranges::all_of(
      node.outputs, [&](Value value) { return graph.placement(value) == Placement::kRows; });
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
    for (std::size_t k = 0; k < views.size(); ++k) {
      const std::size_t inputs = node.inputs.size();
      if (k < inputs && !node.op->reads(k)) continue;
      const Value value = k < inputs ? node.inputs[k] : node.outputs[k - inputs];
      node_places_.emplace_back(&views[k].data, &base(int(r), plan_.root[value]));
    }
    const ReplicaContext& of = one_list ? joint_context_ : replica_context_[r];
    binding.examples.push_back(binding.symbol < 0 ? 0
                                                  : of.local_examples[std::size_t(binding.symbol)]);
  }
}

// The shape of the examples of all replicas.
Shape Context::shape_of_all(const ValueType& type) const {
  Shape shape = shape_or_empty(type, counts_[0]);
  const bool counts =
      type.batched() && !joins_replicas(plan_.graph.symbols, std::size_t(type.batch.symbol));
  for (int r = 1; counts && r < replicas_; ++r) {
    shape[type.batch.axis] += shape_or_empty(type, counts_[std::size_t(r)])[type.batch.axis];
  }
  return shape;
}

void Context::bind_updates() {
  updates_.clear();
  for (const ReduceUpdate& update : plan_.updates) {
    updates_.push_back(bind_update(plan_, update, *this));
  }
}

void Context::bind_row_updates() {
  row_updates_.clear();
  row_updates_.reserve(plan_.row_updates.size());  // addresses into them are kept
  for (const RowUpdate& update : plan_.row_updates) {
    row_updates_.push_back(bind_row_update(plan_, update, *this));
    RowBinding& binding = row_updates_.back();
    const std::int64_t n = binding.places;
    const StepId last = plan_.steps.next_id() - 1;
    const auto place = [&](std::byte*& where, std::int64_t count, std::size_t item) {
      pending_.push_back(
          {&where, reserve(size_product(count, std::int64_t(item)), StepId(0), last), 0});
    };
    place(binding.places_by_row, 2 * n, sizeof(NamedRow));
    place(binding.own.row, n, sizeof(std::int64_t));
    place(binding.own.begin, n + 1, sizeof(std::int64_t));
    place(binding.own.place, n, sizeof(std::int64_t));
    place(binding.own.summed, binding.summed_bytes, 1);
  }
}

void Context::refresh() {
  for (const auto& [place, base] : node_places_) *place = *base;
  for (const TreePlace& place : tree_places_) *place.where = *place.base + place.offset;
}

Task Context::make_task() const {
  Task task;
  for (const LoopLayout& layout : layouts_) task.loop_views.push_back(layout.views);
  return task;
}

Context::Lease::Lease(Context& context) : context_(context) {
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

Context::Lease::~Lease() {
  context_.tasks_.lock()->idle.push_back(std::move(task_));
}

}  // namespace samegrad
