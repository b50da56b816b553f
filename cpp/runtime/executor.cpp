#include "runtime/executor.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/float_environment.h"
#include "plan/buffers.h"
#include "runtime/halo.h"
#include "runtime/hashes.h"
#include "runtime/shared_state.h"
#include "runtime/state_lock.h"
#include "runtime/threads.h"
#include "runtime/unique_ownership_fence.h"

namespace samegrad {
namespace {

// Sizes of batches that take turns, the last one of an epoch say, are laid out once.
constexpr std::size_t kCachedCounts = 4;

StepId first_store_of(const Plan& plan) {
  std::set<Value> stored;
  for (std::size_t w = 0; w < plan.stores.size(); ++w) {
    if (plan.stores[w] == Aliasing::kInPlace) stored.insert(plan.root[plan.graph.writes[w].value]);
  }
  if (stored.empty()) return {};
  for (const StepId s : plan.steps.ids()) {
    const std::vector<Value> writes = plan.steps[s].uses(plan).writes;
    if (std::ranges::any_of(writes, [&](Value root) { return stored.contains(root); })) return s;
  }
  return {};
}

// Arguments whose rows joint nodes read.
std::set<Value> find_joint_examples(const Plan& plan) {
  std::set<Value> found;
  for (NodeId n : plan.graph.nodes.ids()) {
    if (!plan.joint[n]) continue;
    for (Value input : plan.graph.nodes[n].inputs) {
      const Value root = plan.root[input];
      const bool argument = plan.graph.values[root].source == Source::kArgument;
      if (argument && plan.graph.type(input).batch.axis == 0) found.insert(root);
    }
  }
  return found;
}

// Arrays of a value, one per replica, or in one buffer as one list.
PerReplica<Array> arrays_for(const ValueType& type, const Counts& counts, int copies,
                             bool as_list) {
  PerReplica<Array> arrays;
  std::shared_ptr<Buffer> buffer;
  if (as_list && copies > 1) {
    std::int64_t bytes = 0;
    for (int r = 0; r < copies; ++r) {
      bytes += size_in_bytes(type.dtype, shape_or_empty(type, counts[std::size_t(r)]));
    }
    buffer = std::make_shared<Buffer>(std::size_t(bytes));
  }
  std::size_t offset = 0;
  for (int r = 0; r < copies; ++r) {
    const Shape shape = shape_or_empty(type, counts[std::size_t(r)]);
    if (!buffer) {
      arrays.emplace_back(type.dtype, shape);
      continue;
    }
    arrays.emplace_back(type.dtype, shape, buffer, offset);
    offset += arrays.back().bytes();
  }
  return arrays;
}

// Nobody else reads the array, so it may be written into.
bool holds_alone(const Array& array) {
  if (array.buffer().use_count() != 1 || !array.buffer()->owns_memory()) return false;
  unique_ownership_fence(array.buffer());
  return true;
}

// The memory of a run, given back when it is over, however it ends.
class Memory {
 public:
  explicit Memory(ExecutionContext& context) : context_(context) { context.take_memory(); }
  ~Memory() { context_.give_memory(); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

 private:
  ExecutionContext& context_;
};

}  // namespace

Executable::Executable(std::shared_ptr<const Plan> plan)
    : shared_plan_(std::move(plan)), plan_(*shared_plan_) {
  for (Value v : plan_.graph.values.ids()) {
    if (plan_.graph.values[v].source != Source::kNode) external_.push_back(v);
  }
  first_store_ = first_store_of(plan_);
  joint_examples_ = find_joint_examples(plan_);
  for (const PlanStep& step : plan_.steps) {
    const auto* loop = step.get_if<LoopStep>();
    layouts_.push_back(loop ? lay_out(plan_, *loop) : LoopLayout());
  }
  for (const auto& [node, plans] : plan_.bodies) {
    Bodies& bodies = bodies_[node];
    for (const auto& body : plans) bodies.push_back(std::make_unique<Executable>(body));
  }
}

std::vector<PerReplica<Array>> Executable::run(const ExecuteParams& call) {
  // A branch or iteration is in it already.
  return call.communicator && !call.in_world ? run_in_world(call) : run_here(call);
}

// On an error in this process, the others must not wait for it.
std::vector<PerReplica<Array>> Executable::run_in_world(const ExecuteParams& call) {
  try {
    ExecuteParams own = call;
    check_world(plan_.graph, call);
    own.in_world = true;
    if (call.world_counts.empty()) own.set_counts(gather_counts(plan_.graph, call));
    add_halo(plan_.graph, own);
    std::vector<PerReplica<Array>> outputs = run_here(own);
    if (own.halo.empty()) return outputs;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (plan_.graph.varying(plan_.graph.outputs[i])) outputs[i].pop_back();
    }
    return outputs;
  } catch (const FingerprintMismatch&) {
    throw;  // all know
  } catch (const LocatedError& error) {
    call.communicator->abort(error.with_line());
    throw;
  } catch (const std::exception& error) {
    call.communicator->abort(error.what());
    throw;
  }
}

std::vector<PerReplica<Array>> Executable::run_here(const ExecuteParams& call) {
  std::optional<StateLock> turn;
  const bool writes = !plan_.graph.writes.empty() && !call.dry;
  if (!call.alone && (writes || !plan_.graph.variables.empty())) {
    turn.emplace(writes ? StateLock::Use::kWrite : StateLock::Use::kRead);
  }
  ContextLease context(*this, call);
  const FloatEnvironment environment;
  try {
    std::vector<PerReplica<Array>> outputs = run(call, *context);
    context.finish();
    return outputs;
  } catch (LocatedError& error) {
    if (call.locations) error.find_line(*call.locations);
    throw;
  }
}

Executable::ContextLease::ContextLease(Executable& executable, const ExecuteParams& call,
                                       int threads)
    : executable_(executable) {
  const auto contexts = executable.contexts_.lock();
  std::vector<std::unique_ptr<ExecutionContext>>& idle = contexts->idle;
  auto found =
      std::ranges::find_if(idle, [&](const auto& one) { return one->is_bound_to(call, threads); });
  // Once enough are kept, reuse the least recently used one, which has other counts.
  if (found == idle.end() && idle.size() >= kCachedCounts) found = idle.begin();
  if (found == idle.end()) {
    idle.reserve(contexts->made + 1);  // so that giving it back cannot fail
    context_ = std::make_unique<ExecutionContext>(executable.plan_, executable.layouts_);
    ++contexts->made;
  } else {
    context_ = std::move(*found);
    idle.erase(found);
  }
}

Executable::ContextLease::ContextLease(Executable& executable, const ExecuteParams& call)
    : ContextLease(executable, call, parallel_loops().threads()) {
  const int threads = parallel_loops().threads();
  if (!context_->is_bound_to(call, threads)) context_->bind(call, threads);
}

Executable::ContextLease::~ContextLease() {
  if (context_) --executable_.contexts_.lock()->made;
}

void Executable::ContextLease::finish() {
  executable_.contexts_.lock()->idle.push_back(std::move(context_));
}

void Executable::set_arguments(const ExecuteParams& call, ExecutionContext& context) {
  const Graph& graph = plan_.graph;
  for (const Value value : external_) {
    const ValueInfo& info = graph.values[value];
    const PerReplica<Array>* arrays = nullptr;
    if (info.source == Source::kArgument) arrays = &call.arguments[info.argument()];
    if (info.source == Source::kVariable) {
      arrays = &call.variables[info.slot().index()]->components();
    }
    for (int r = 0; r < context.replicas(); ++r) {
      // A variable has no array for examples of another process.
      const auto at = arrays ? std::min(std::size_t(r), arrays->size() - 1) : 0;
      context.base(r, value) =
          arrays ? arrays->at(at).raw() : graph.constants[info.constant()].raw();
    }
    if (!joint_examples_.empty() && joint_examples_.contains(value))
      context.make_list(value, *arrays);
  }
}

std::vector<PerReplica<Array>> Executable::make_outputs(const ExecuteParams& call,
                                                        ExecutionContext& context) {
  const Graph& graph = plan_.graph;
  std::vector<PerReplica<Array>> outputs;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const Value output = graph.outputs[i];
    const Value root = plan_.root[output];
    const int copies = graph.varying(output) ? context.replicas() : 1;
    // Two outputs may be the same bytes.
    const auto earlier =
        std::find_if(graph.outputs.begin(), graph.outputs.begin() + std::ptrdiff_t(i),
                     [&](Value v) { return plan_.root[v] == root; });
    const ValueType& type = graph.type(output);
    const auto first = std::size_t(earlier - graph.outputs.begin());
    PerReplica<Array> arrays;
    if (first == i) arrays = arrays_for(type, call.counts, copies, plan_.has_rows[root]);
    for (int r = 0; r < copies; ++r) {
      if (first < i) {
        const Shape shape = shape_or_empty(type, call.counts[std::size_t(r)]);
        arrays.push_back(outputs[first][std::size_t(r)].reshaped(shape));
      } else if (graph.values[root].source == Source::kNode) {
        context.base(r, root) = arrays[std::size_t(r)].raw();
      }
    }
    for (int r = copies; r < context.replicas(); ++r) {
      if (graph.values[root].source == Source::kNode) {
        context.base(r, root) = context.base(0, root);
      }
    }
    outputs.push_back(std::move(arrays));
  }
  return outputs;
}

void Executable::copy_outputs(std::vector<PerReplica<Array>>& outputs, ExecutionContext& context) {
  const Graph& graph = plan_.graph;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Value root = plan_.root[graph.outputs[i]];
    if (graph.values[root].source == Source::kNode) continue;
    for (std::size_t r = 0; r < outputs[i].size(); ++r) {
      const Array& output = outputs[i][r];
      if (output.bytes()) std::memcpy(output.raw(), context.base(int(r), root), output.bytes());
    }
  }
}

// The arrays that the variables will have: their own where these may be written into, else new
// ones. The old ones stay readable until the step is over. Arrays are in the order of the writes.
// Nothing is allocated after this.
std::vector<Array> Executable::make_state(const ExecuteParams& call, ExecutionContext& context) {
  const Graph& graph = plan_.graph;
  const std::vector<Array> common = shared_state(plan_, call, context);
  std::vector<Array> fresh;
  fresh.reserve(graph.writes.size());
  bool in_place = false;
  for (std::size_t w = 0; w < graph.writes.size(); ++w) {
    const StateWrite& write = graph.writes[w];
    const Aliasing store = plan_.stores[w];
    const std::size_t first = fresh.size();
    for (const Array& old : call.variables[write.variable.index()]->components()) {
      const bool keeps = store == Aliasing::kNothing ||
                         (store != Aliasing::kReplace && !call.dry && holds_alone(old));
      const bool is_common = !common.empty() && common[w].defined();
      fresh.push_back(is_common ? common[w] : keeps ? old : Array(old.dtype(), old.shape()));
    }
    if (store == Aliasing::kInPlace) {
      in_place = true;
      const Value root = plan_.root[write.value];
      for (int r = 0; r < context.replicas(); ++r) context.base(r, root) = fresh[first].raw();
    }
  }
  if (in_place) context.reserve_scratch();
  return fresh;
}

void Executable::commit_state(const ExecuteParams& call, ExecutionContext& context,
                              std::vector<Array>& fresh) {
  const Graph& graph = plan_.graph;
  const auto components = [&](std::size_t w) -> PerReplica<Array>& {
    return call.variables[graph.writes[w].variable.index()]->components();
  };
  auto next = fresh.begin();
  for (std::size_t w = 0; w < graph.writes.size(); ++w) {
    const Value root = plan_.root[graph.writes[w].value];
    const bool copies = plan_.stores[w] == Aliasing::kCopy || plan_.stores[w] == Aliasing::kReplace;
    const std::size_t count = components(w).size();
    for (std::size_t c = 0; c < count; ++c) {
      const Array& to = *next++;
      const std::byte* from = context.base(std::min(int(c), context.replicas() - 1), root);
      if (copies && to.bytes()) std::memcpy(to.raw(), from, to.bytes());
    }
  }
  next = fresh.begin();
  for (std::size_t w = 0; w < graph.writes.size(); ++w) {
    for (Array& component : components(w)) component = std::move(*next++);
    ++call.variables[graph.writes[w].variable.index()]->version;
  }
}

void Executable::run_step(StepId s, const ExecuteParams& call, ExecutionContext& context) {
  const StepRun run{plan_, s, call, context, bodies_};
  const auto run_kind = [&](const auto& step) {
    if (!step.prepack.empty()) prepack_operands(step, run);
    samegrad::run_step(step, run);
  };
  std::visit(run_kind, plan_.steps[s].kind());
}

void Executable::run_steps(const ExecuteParams& call, ExecutionContext& context) {
  using Clock = std::chrono::steady_clock;
  if (call.usages) call.usages->resize(plan_.steps.size());
  StepId due = plan_.steps.next_id();  // before this one all sums of processes have to be there
  std::vector<StepId> unfinished;      // whose results are hashed once they are there
  const auto finish_sums = [&] {
    context.world_sums().finish();
    for (const StepId step : unfinished) call.hashes->add_stored(step, call, context);
    unfinished.clear();
  };
  for (StepId s : plan_.steps.ids()) {
    const Clock::time_point start = call.usages ? Clock::now() : Clock::time_point();
    const SharedWork before = call.usages ? shared_work() : SharedWork{};
    if (call.communicator && s == due) {
      finish_sums();
      due = plan_.steps.next_id();
    }
    if (call.communicator && s == first_store_) call.communicator->barrier();
    run_step(s, call, context);
    if (call.hashes) [[unlikely]] {
      const bool travels = call.communicator && plan_.steps[s].is<AllReduceStep>();
      if (travels) unfinished.push_back(s);
      if (!travels) call.hashes->add_stored(s, call, context);
    }
    due = std::min(due, plan_.collective_done[s]);
    if (call.communicator && s + 1 == plan_.steps.next_id()) finish_sums();
    if (!call.usages) continue;
    StepUsage& usage = (*call.usages)[s.index()];
    usage.seconds += std::chrono::duration<double>(Clock::now() - start).count();
    const SharedWork after = shared_work();
    usage.shared.loops += after.loops - before.loops;
    usage.shared.pieces += after.pieces - before.pieces;
  }
}

std::vector<PerReplica<Array>> Executable::run(const ExecuteParams& call,
                                               ExecutionContext& context) {
  context.set_call(call);
  for (int r = 0; r < context.own_replicas(); ++r) {
    if (call.runs(r)) context.check_sizes(r);
  }
  const Memory memory(context);
  set_arguments(call, context);
  std::vector<PerReplica<Array>> outputs = make_outputs(call, context);
  if (call.communicator) context.open_world_sums(*call.communicator);
  std::vector<Array> fresh = make_state(call, context);
  context.refresh();
  context.share(call.iterations);
  run_steps(call, context);
  context.close_world_sums();
  if (call.hashes) call.hashes->add_external(call, context);
  copy_outputs(outputs, context);
  // A mismatch between ranks raises before any variable changes, so that they may continue.
  if (call.communicator) call.communicator->barrier();
  if (!call.dry) commit_state(call, context, fresh);
  return outputs;
}

}  // namespace samegrad
