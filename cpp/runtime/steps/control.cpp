// Branches and loops: their graphs run as plans of their own. Where the condition differs between
// replicas, a graph runs on those that go its way, and each takes what is its.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>

#include "ops/control.h"
#include "ops/stacked_iterations.h"
#include "ops/tensor_array.h"
#include "runtime/executor.h"
#include "runtime/hashes.h"
#include "runtime/interrupt.h"
#include "runtime/iteration_sum.h"

namespace samegrad {
namespace {

using Arrays = std::vector<PerReplica<Array>>;

// The draws of an iteration are its own, the same when the derivative computes it again.
std::uint64_t step_of_iteration(std::uint64_t step, std::int64_t iteration) {
  return step ^ (std::uint64_t(iteration + 1) * 0x9E3779B97F4A7C15ull);
}

class ControlRun {
 public:
  ControlRun(const Plan& plan, NodeId node, const Bodies& bodies, const ExecuteParams& call,
             ExecutionContext& context)
      : plan_(plan),
        node_(plan.graph.nodes[node]),
        bodies_(bodies),
        call_(call),
        context_(context) {
    const auto writes = plan.element_writes.find(node);
    if (writes != plan.element_writes.end()) element_writes_ = writes->second;
  }

  void run() {
    if (node_.attrs.get_if<CondAttrs>()) {
      run_cond();
    } else if (const auto* loop = node_.attrs.get_if<WhileAttrs>()) {
      run_while(*loop);
    } else if (const auto* replay = node_.attrs.get_if<ReplayAttrs>()) {
      run_replay(*replay);
    } else if (const auto* stack = node_.attrs.get_if<StackRoundsAttrs>()) {
      run_stack(*stack);
    } else if (is_op<"unstack_rounds">(node_)) {
      run_unstack();
    } else {
      run_sum();
    }
  }

 private:
  std::size_t replicas() const { return std::size_t(context_.replicas()); }

  // A view of the value's memory, one per replica if it may differ.
  PerReplica<Array> arrays_of(Value value) const {
    const ValueType& type = plan_.graph.type(value);
    PerReplica<Array> arrays;
    for (std::size_t r = 0; r < (plan_.graph.varying(value) ? replicas() : 1); ++r) {
      const Shape shape = shape_or_empty(type, call_.counts[r]);
      const std::size_t bytes = std::size_t(shape.size()) * size_of(type.dtype);
      std::byte* data = context_.base(int(r), plan_.root[value]);
      arrays.emplace_back(type.dtype, shape, std::make_shared<Buffer>(data, bytes, [] {}));
    }
    return arrays;
  }

  Arrays operands(std::size_t begin, std::size_t end) const {
    Arrays arrays;
    for (std::size_t k = begin; k < end; ++k) arrays.push_back(arrays_of(node_.inputs[k]));
    return arrays;
  }

  void store(std::size_t output, const PerReplica<Array>& arrays) const {
    const Value value = node_.outputs[output];
    const std::size_t copies = plan_.graph.varying(value) ? replicas() : 1;
    for (std::size_t r = 0; r < copies; ++r) {
      const Array& from = arrays.at(r);
      if (from.bytes()) std::memcpy(context_.base(int(r), value), from.raw(), from.bytes());
    }
  }

  Arrays run_body(std::size_t body, const Arrays& arguments, std::uint64_t step,
                  const std::vector<bool>& active) const {
    Executable& executable = *bodies_[body];
    ExecuteParams call;
    call.arguments = arguments;
    call.seed = call_.seed;
    call.step = step;
    call.check_finite = call_.check_finite;
    call.hashes = call_.hashes ? call_.hashes->body(executable.plan()) : nullptr;
    call.active = active;
    call.locations = call_.locations;
    call.messages = call_.messages;
    const std::vector<Symbol>& symbols = executable.plan().graph.symbols;
    call.counts = call_.counts;
    call.communicator = call_.communicator;
    call.in_world = call_.in_world;
    call.alone = call_.alone;
    call.iterations = &iteration_memory_[body];
    complete_body_counts(symbols, call);
    return executable.run(call);
  }

  // A body has symbols of its own, whose counts follow from those of the step.
  void complete_body_counts(const std::vector<Symbol>& symbols, ExecuteParams& call) const {
    if (!call.communicator) return complete_counts(symbols, call.counts);
    Counts counts = call_.world_counts;
    complete_counts(symbols, counts);
    if (!call_.halo.empty()) {
      call.halo = counts[0];  // of all replicas alike, where it joins them
      std::ranges::copy(call_.halo, call.halo.begin());
      complete_counts(symbols, call.halo);
    }
    call.set_counts(std::move(counts));
  }

  // The replicas that came here.
  std::vector<bool> here() const {
    return call_.active.empty() ? std::vector<bool>(replicas(), true) : call_.active;
  }
  static bool any(const std::vector<bool>& of) { return std::ranges::find(of, true) != of.end(); }

  // The active replicas for which the condition is as wanted. The others have no condition.
  std::vector<bool> choose(std::vector<bool> active, const PerReplica<Array>& arrays,
                           bool wanted = true) const {
    for (std::size_t r = 0; r < replicas(); ++r) {
      const Array& condition = arrays.at(r);
      if (active[r] && arrays.size() > 1 && call_.is_halo(int(r))) active[r] = false;
      if (active[r]) active[r] = *condition.data<bool>() == wanted;
    }
    return active;
  }

  // a where chosen, b elsewhere.
  PerReplica<Array> mix(const std::vector<bool>& chosen, const PerReplica<Array>& a,
                        const PerReplica<Array>& b) const {
    PerReplica<Array> mixed;
    for (std::size_t r = 0; r < replicas(); ++r) {
      const PerReplica<Array>& from = chosen[r] ? a : b;
      mixed.push_back(from.at(r));
    }
    return mixed;
  }

  // A loop variable after an iteration: what it became where the iteration ran.
  PerReplica<Array> after(const std::vector<bool>& active, const PerReplica<Array>& next,
                          const PerReplica<Array>& state) const {
    return active == here() ? next : mix(active, next, state);
  }

  void run_cond() {
    const PerReplica<Array> condition = arrays_of(node_.inputs[0]);
    const std::vector<bool> holds = choose(here(), condition);
    const std::vector<bool> fails = choose(here(), condition, false);
    const Arrays arguments = operands(1, node_.inputs.size());
    Arrays yes, no;
    if (any(holds)) yes = run_body(0, arguments, call_.step, holds);
    if (any(fails)) no = run_body(1, arguments, call_.step, fails);
    for (std::size_t i = 0; i < node_.outputs.size(); ++i) {
      store(i, no.empty() ? yes[i] : yes.empty() ? no[i] : mix(holds, yes[i], no[i]));
    }
  }

  // A new history for a result; null if it has no reader.
  StackedResiduals* keep(std::size_t output) const {
    const Value value = node_.outputs[output];
    StackedResiduals* history = nullptr;
    const bool read = std::ranges::any_of(plan_.graph.nodes, [&](const Node& node) {
      return std::ranges::find(node.inputs, value) != node.inputs.end();
    });
    if (read) {
      context_.histories.push_back(std::make_unique<StackedResiduals>());
      history = context_.histories.back().get();
    }
    // The handle: valid until the run is over.
    *reinterpret_cast<std::int64_t*>(context_.base(0, value)) =
        reinterpret_cast<std::intptr_t>(history);
    return history;
  }

  const StackedResiduals& history_of(std::size_t input) const {
    const auto handle = *arrays_of(node_.inputs[input])[0].data<std::int64_t>();
    const auto* history =
        reinterpret_cast<const StackedResiduals*>(std::intptr_t(handle));  // NOLINT: one of these
    SG_ASSERT(std::ranges::count(context_.histories, history,
                                 &std::unique_ptr<StackedResiduals>::get) == 1,
              "operand ", input, " of ", node_.op->name, " is not a history of this run");
    return *history;
  }

  // Operands that a history keeps: steps in between may write where they are.
  static void own(Arrays& state) {
    for (auto& arrays : state) {
      for (Array& array : arrays) array = array.copy();
    }
  }

  // Copies the variables whose rows the iterations write, so that they have no other owner.
  void own_written(Arrays& state) const {
    for (std::size_t w = 0; w < element_writes_.size(); ++w) {
      const std::size_t i = element_writes_[w].variable;
      if (w > 0 && element_writes_[w - 1].variable == i) continue;
      const PerReplica<Array> from = std::move(state[i]);
      state[i].clear();
      const std::size_t copies = plan_.graph.varying(node_.outputs[i]) ? replicas() : 1;
      for (std::size_t r = 0; r < copies; ++r) state[i].push_back(from.at(r).copy());
    }
  }

  bool is_written(std::size_t variable) const {
    return std::ranges::any_of(
        element_writes_, [&](const ElementWrite& write) { return write.variable == variable; });
  }

  // The variables after an iteration; the indices and rows of writes are its last results.
  void advance(const std::vector<bool>& active, const Arrays& next, Arrays& state) const {
    for (std::size_t i = 0; i < state.size(); ++i) {
      if (!is_written(i)) state[i] = after(active, next[i], state[i]);
    }
    auto row = next.end() - std::ptrdiff_t(2 * element_writes_.size());
    for (const ElementWrite& write : element_writes_) {
      const PerReplica<Array>&index = *row++, &value = *row++;
      const PerReplica<Array>& to = state[write.variable];
      for (std::size_t r = 0; r < to.size(); ++r) {
        if (to.size() > 1 && !active[r]) continue;
        put_row(to[r], index.at(r), value.at(r), write.adds);
      }
    }
  }

  static void put_row(const Array& array, const Array& index, const Array& row, bool adds) {
    const std::int64_t at = row_at(index.dtype(), index.raw(), array.shape()[0]);
    std::byte* to = array.raw() + std::size_t(at) * row.bytes();
    if (!adds) {
      if (row.bytes()) std::memcpy(to, row.raw(), row.bytes());
      return;
    }
    visit<kFloats>("TensorArray", row.dtype(), [&]<class T>() {
      auto* sum = reinterpret_cast<T*>(to);
      for (std::int64_t i = 0; i < row.size(); ++i) sum[i] = sum[i] + row.data<T>()[i];
    });
  }

  void run_while(const WhileAttrs& attrs) {
    const auto count = std::size_t(attrs.variables);
    Arrays state = operands(0, count);
    const Arrays operands_ = operands(count, node_.inputs.size());
    StackedResiduals* history = keep(count);
    if (history) own(state);
    own_written(state);
    std::vector<bool> active = here();
    for (std::int64_t iteration = 0; attrs.maximum < 0 || iteration < attrs.maximum; ++iteration) {
      poll_interrupt();
      Arrays arguments = state;
      arguments.insert(arguments.end(), operands_.begin(), operands_.end());
      const std::uint64_t step = step_of_iteration(call_.step, iteration);
      active = choose(active, run_body(0, arguments, step, active)[0]);
      if (!any(active)) break;
      if (history) history->iterations.push_back({state, active});
      advance(active, run_body(1, arguments, step, active), state);
    }
    for (std::size_t i = 0; i < count; ++i) store(i, state[i]);
  }

  void run_replay(const ReplayAttrs& attrs) {
    const auto count = std::size_t(attrs.variables);
    const Ints& yields = attrs.yields;
    std::vector<const StackedResiduals*> given;
    for (std::size_t h = 0; h < attrs.entries.size(); ++h) {
      given.push_back(&history_of(h));
    }
    Arrays state = operands(given.size(), given.size() + count);
    const Arrays operands_ = operands(given.size() + count, node_.inputs.size());
    StackedResiduals* history = keep(count);
    if (!history && add_products(attrs, given, state)) return;
    if (history) own(state);
    own_written(state);
    std::vector<StackedResiduals*> made;
    for (std::size_t g = 0; g < yields.size(); ++g) made.push_back(keep(count + 1 + g));
    const std::size_t iterations = given[0]->iterations.size();
    for (StackedResiduals* target : made) {
      if (target) target->iterations.resize(iterations);
    }
    if (history) history->iterations.resize(iterations);
    for (std::size_t i = 0; i < iterations; ++i) {
      poll_interrupt();
      const std::size_t k = attrs.forward ? i : iterations - 1 - i;
      const std::vector<bool>& active = given[0]->iterations[k].active;
      Arrays arguments;
      for (const StackedResiduals* from : given) {
        const Arrays& entry = from->iterations[k].variables;
        arguments.insert(arguments.end(), entry.begin(), entry.end());
      }
      arguments.insert(arguments.end(), state.begin(), state.end());
      arguments.insert(arguments.end(), operands_.begin(), operands_.end());
      if (history) history->iterations[k] = {state, active};
      Arrays next = run_body(0, arguments, step_of_iteration(call_.step, std::int64_t(k)), active);
      auto entry = next.begin() + std::ptrdiff_t(count);
      for (std::size_t g = 0; g < yields.size(); entry += yields[g++]) {
        if (made[g]) made[g]->iterations[k] = {Arrays(entry, entry + yields[g]), active};
      }
      advance(active, next, state);
    }
    for (std::size_t v = 0; v < count; ++v) store(v, state[v]);
  }

  // True if the iterations only sum products, which were then all added tile by tile. Not done with
  // several processes, which have their parts of each iteration's product. Not done either if each
  // iteration is checked for finite values.
  bool add_products(const ReplayAttrs& attrs, const std::vector<const StackedResiduals*>& given,
                    const Arrays& state) const {
    const bool hashed = call_.hashes && call_.hashes->body(bodies_[0]->plan());
    const bool alone =
        !call_.communicator && !call_.check_finite && !hashed && call_.active.empty();
    const bool adds = state.size() == 1 && attrs.yields.empty() && !attrs.varying &&
                      node_.inputs.size() == given.size() + 1;
    if (!alone || !adds) return false;
    const Graph& iteration = bodies_[0]->plan().graph;
    Value before = kNoValue;  // the last argument
    for (Value v : iteration.values.ids()) {
      const ValueInfo& info = iteration.values[v];
      const bool argument = info.source == Source::kArgument;
      if (argument && info.argument() + 1 == iteration.arguments.size()) before = v;
    }
    const std::optional<IterationSum> sum =
        find_iteration_sum(iteration, before, iteration.outputs[0]);
    if (!sum) return false;
    const std::size_t count = given[0]->iterations.size();
    std::vector<IterationEntries> iterations(count);
    for (std::size_t i = 0; i < count; ++i) {
      for (const StackedResiduals* from : given) {
        const Arrays& entry = from->iterations[attrs.forward ? i : count - 1 - i].variables;
        iterations[i].insert(iterations[i].end(), entry.begin(), entry.end());
      }
    }
    PerReplica<Array> sums;
    for (std::size_t r = 0; r < (plan_.graph.varying(node_.outputs[0]) ? replicas() : 1); ++r) {
      sums.push_back(state[0].at(r).copy());
    }
    if (!add_iteration_products(iteration, *sum, iterations, sums, context_)) return false;
    store(0, sums);
    return true;
  }

  // The rows share the memory of one copy.
  void run_unstack() {
    StackedResiduals* history = keep(0);
    if (!history) return;
    Arrays arrays = operands(0, node_.inputs.size());
    own(arrays);
    std::vector<std::int64_t> counts;
    for (std::size_t r = 0; r < replicas(); ++r) {
      counts.push_back(arrays[0].at(r).shape()[0]);
    }
    history->iterations.resize(std::size_t(*std::ranges::max_element(counts)));
    for (std::int64_t k = 0; k < std::int64_t(history->iterations.size()); ++k) {
      StackedResiduals::Iteration& iteration = history->iterations[std::size_t(k)];
      iteration.active = here();
      for (std::size_t r = 0; r < replicas(); ++r) {
        if (k >= counts[r]) iteration.active[r] = false;
      }
      for (const PerReplica<Array>& of_replicas : arrays) {
        iteration.variables.emplace_back();
        for (const Array& rows : of_replicas) iteration.variables.back().push_back(row_of(rows, k));
      }
    }
  }

  static Array row_of(const Array& rows, std::int64_t k) {
    Shape shape;
    for (int axis = 1; axis < rows.shape().rank(); ++axis) shape.push_back(rows.shape()[axis]);
    if (k >= rows.shape()[0]) return Array::zeros(rows.dtype(), shape);  // nobody reads it
    return rows.rows(k, k + 1).reshaped(shape);
  }

  void run_stack(const StackRoundsAttrs& attrs) {
    const StackedResiduals& history = history_of(0);
    for (std::size_t i = 0; i < attrs.dtypes.size(); ++i) {
      const Value value = node_.outputs[i];
      const PerReplica<Array> targets = arrays_of(value);
      for (std::size_t r = 0; r < targets.size(); ++r) {
        const std::int64_t rows = targets[r].shape()[0];
        if (rows == 0) continue;
        const std::size_t bytes = targets[r].bytes() / std::size_t(rows);
        for (std::int64_t k = 0; k < rows && bytes > 0; ++k) {
          const PerReplica<Array>& entry = history.iterations[std::size_t(k)].variables[i];
          std::memcpy(targets[r].raw() + std::size_t(k) * bytes, entry.at(r).raw(), bytes);
        }
      }
    }
  }

  // a + b, each once for all replicas or once per replica.
  static PerReplica<Array> sum(const PerReplica<Array>& a, const PerReplica<Array>& b) {
    PerReplica<Array> sums;
    for (std::size_t r = 0; r < std::max(a.size(), b.size()); ++r) {
      const Array& x = a.at(r);
      const Array& y = b.at(r);
      sums.emplace_back(x.dtype(), x.shape());
      visit<kFloats>("while_loop", x.dtype(), [&]<class T>() {
        T* sum = sums.back().data<T>();
        for (std::int64_t i = 0; i < x.size(); ++i) sum[i] = x.data<T>()[i] + y.data<T>()[i];
      });
    }
    return sums;
  }

  void run_sum() {
    StackedResiduals* total = keep(0);
    if (!total) return;
    const StackedResiduals &a = history_of(0), &b = history_of(1);
    for (std::size_t k = 0; k < a.iterations.size(); ++k) {
      StackedResiduals::Iteration iteration{{}, a.iterations[k].active};
      for (std::size_t i = 0; i < a.iterations[k].variables.size(); ++i) {
        iteration.variables.push_back(
            sum(a.iterations[k].variables[i], b.iterations[k].variables[i]));
      }
      total->iterations.push_back(std::move(iteration));
    }
  }

  const Plan& plan_;
  const Node& node_;
  std::span<const ElementWrite> element_writes_;
  const Bodies& bodies_;
  const ExecuteParams& call_;
  ExecutionContext& context_;
  mutable std::array<IterationMemory, 2> iteration_memory_;  // per body
};

}  // namespace

// A branch or a loop, for all replicas together.
void run_step(const ControlStep& step, const StepRun& run) {
  const NodeId node = step.nodes[0];
  run_located(run.plan.graph.nodes[node], [&] {
    ControlRun(run.plan, node, run.bodies.at(node), run.call, run.context).run();
  });
}

}  // namespace samegrad
