// Traces: operations are added to a graph while a step is traced, run at once in eager code, and
// both under an eager tape.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

#include "analysis/loss_normalization.h"
#include "analysis/replica_dependence.h"
#include "analysis/whole_batch.h"
#include "base/error.h"
#include "ir/builder.h"
#include "train/current.h"
#include "train/program.h"
#include "train/variable.h"

namespace samegrad {

class Step;
class Trace;
class TraceScope;

// The tensor of users: an array, a value of a trace, or (under an eager tape) both.
struct Tensor {
  ValueType type;  // of an array: the concrete shape
  Array array;
  std::shared_ptr<Trace> trace;  // the trace it belongs to, if it has no array
  // Under a tape: the number of the trace that used the array first; 0: no trace. With `value` it
  // names the array in all other traces, so that any number of tapes know it.
  mutable std::uint64_t recorded = 0;
  mutable Value value = kNoValue;
  std::optional<CountPowers> counts = {};  // of an array: what the number is made of

  bool symbolic() const { return trace != nullptr; }
};

class Trace final : public Builder, public std::enable_shared_from_this<Trace> {
 public:
  enum class Mode { kGraph, kEager };
  Trace(Mode mode, int replicas);
  // The body of a branch or loop: what it reads of the outer trace becomes its arguments.
  explicit Trace(std::shared_ptr<Trace> outer);

  Mode mode() const { return mode_; }
  const Graph& program() const { return graph_; }
  int replicas() const { return graph_.replicas; }
  // Until a strategy runs in it, a trace is one of one replica.
  void set_replicas(int replicas);
  // A trace of one replica has its collectives: any number of replicas may run the program later.
  void keep_collectives() { keeps_collectives_ = true; }
  // Over which processes they are spread (Program::processes).
  void set_processes(std::vector<int> processes);
  const std::vector<int>& processes() const { return outer_ ? outer_->processes() : processes_; }
  // It is the program of these replicas alone (Symbols::replicas).
  void belong_to(std::vector<int> replicas) { graph_.symbols.replicas = std::move(replicas); }
  // Records the line where the trace became the program of fewer replicas, or where it bound
  // lengths. Called when that may have happened.
  void note_split();
  const std::string& split_at() const { return outer_ ? outer_->split_at() : split_at_; }

  Values called_gradient(std::int64_t callback, const Values& cts) override;
  Values apply(const OpDef& op, std::span<const Value> inputs, Attrs attrs = {},
               std::vector<GraphPtr> regions = {}) override;
  void begin_call(std::int32_t run = -1) override;
  void end_call(std::span<const Value> leaving = {}) override;
  std::size_t open_calls() const { return open_runs_.size(); }

  // RuntimeError if the tensor belongs to a trace that this one is not a part of.
  void check_inside(const Tensor& tensor) const;
  // True if the tensor is a value of this trace already.
  bool knows(const Tensor& tensor) const;
  // The tensor as a value of this trace, which it stays at each later use.
  Value identify(const Tensor& tensor);
  // The tensor as a value of this trace; arrays from outside become constants (eager: operands).
  Value lift(const Tensor& tensor);
  Tensor tensor(Value value);

  // An argument of a step: one array, or one per replica. Its example axis gets the symbol of
  // earlier arguments that have as many examples on every replica, or `own_symbol`. `lengths`: bits
  // of the other axes whose sizes get symbols, too, each its own.
  Value argument(const PerReplica<Array>& arrays, const ExampleAxis& batch,
                 std::uint32_t lengths = 0, bool own_symbol = false);

  Value read(const std::shared_ptr<Variable>& variable);
  // RuntimeError if the variable is one for all replicas and the value may differ between them.
  void write(const std::shared_ptr<Variable>& variable, Value value);
  // The value was read from the variable, which had been written: a source of gradients.
  void note_read(const Variable& variable, Value value) { reads_[&variable].push_back(value); }
  const std::vector<Value>& reads(const Variable& variable) { return reads_[&variable]; }
  const std::map<const StateCell*, std::vector<Value>>& reads() const { return reads_; }

  // Sizes that a body made of those outside are known outside too, and what it is bound to.
  void adopt_symbols(const Trace& body);
  // samegrad::joined_type, by the sizes that this trace knows.
  std::optional<ValueType> joined_type(const ValueType& a, const ValueType& b);
  // Convert the result of a body to a type that the outer trace knows.
  Value leave_as(Value value, const ValueType& type);
  // Eager: what a run of a compiled step reads, as values of this trace; they keep what they are
  // though variables change. `constants`: the arrays that the traced function found outside.
  struct RunOperands {
    std::vector<Values> arguments;
    Values variables, constants;  // kNoValue: none of this trace
  };
  RunOperands hold(const Step& step, const std::vector<PerReplica<Tensor>>& arguments,
                   const std::vector<Array>& constants);
  // Eager: makes the run one call of this trace. Its nodes are there for gradients and have no
  // arrays; its gradients are programs that compute again what they need, by the step's number.
  std::vector<PerReplica<Tensor>> record(Step& step, const RunOperands& operands,
                                         const std::vector<PerReplica<Array>>& outputs,
                                         std::uint64_t number);

  // Eager: while another eager trace is current on top of this one, whose tapes are recording.
  // import_followed() makes nodes of this trace from what the other one records.
  void follow(const std::shared_ptr<Trace>& other);
  void unfollow(const Trace& other);
  void import_followed() {
    if (!followed_.empty() && !importing_) import_all();
  }
  // Variables are operands of their own where they are read next.
  void forget_reads() { state_.clear(); }
  // Eager: current as long as this object has an owner.
  std::shared_ptr<TraceScope> scope();

  // Values whose derivative is what `gradient` makes, of the cotangents of the results, for the
  // operands. In eager code it is called when a gradient is taken; in a graph it is traced at once,
  // as its graph goes with the program into bodies and under tapes outside. `error`: why it must
  // not be called.
  struct Gradients {
    std::vector<std::optional<Tensor>> of_operands;
    std::optional<Error> error;
  };
  using GradientFunction = std::function<Gradients(const std::vector<Tensor>&)>;
  Values with_gradient(const Values& values, const Values& operands,
                       const GradientFunction& gradient);
  // The variables read since they were counted first, each as often as it was read.
  std::size_t count_reads();
  const std::vector<std::shared_ptr<Variable>>& counted_reads() const { return counted_reads_; }

  // Notes what the program does with a value, for check_loss_normalization().
  void use(ValueUse::Kind kind, const Tensor& tensor);
  // The mistakes in the counts that the program divides by; `outputs` are its results.
  NormalizationReport check_loss_normalization(const std::vector<Value>& outputs) const;
  LossNormalization loss_normalization(Value value) const {
    return samegrad::loss_normalization(graph_, value);
  }
  // Statistics of a replica's examples that reach a variable that all replicas share.
  std::vector<ReplicaDependence> replica_dependences() const;
  Value over_all_replicas(Value value) { return samegrad::over_all_replicas(*this, value); }
  // The name of the operation that made a value of `old` and another one, and that one.
  std::optional<std::pair<std::string, Value>> made_of(Value value, Value old) const;

  // Counts the random ops of the trace.
  std::int64_t next_ordinal() { return outer_ ? outer_->next_ordinal() : ordinal_++; }
  std::int64_t ordinal() const { return outer_ ? outer_->ordinal() : ordinal_; }
  bool is_body() const { return outer_ != nullptr; }
  void set_ordinal(std::int64_t ordinal);
  std::uint64_t step() const { return step_; }
  // The random state that determines the next samples, so that they can be drawn again.
  struct Draws {
    std::uint64_t step;
    bool drew;
    std::int64_t ordinal;
  };
  Draws draws() const { return outer_ ? outer_->draws() : Draws{step_, drew_, ordinal_}; }
  void set_draws(const Draws& draws);

  // Lets values be looked at while the program is traced; it is called with these arguments, each
  // with one array, or one per replica.
  void let_evaluate(std::vector<PerReplica<Array>> arguments) { actual_ = std::move(arguments); }
  // True if they can be evaluated: for a body, if those outside it can.
  bool evaluates() const;
  // Evaluates a value in the present step, as one array or one per replica. It runs only the nodes
  // that compute the value (no write, no print). TypeError for values of a body, whose Python does
  // not run when the body does. TypeError as well while a body is traced, unless `anywhere`.
  PerReplica<Array> evaluate(Value value, bool anywhere = false);
  // Returns the value of the first replica in the present step, as a variable's initial value. The
  // nodes that compute it run as a step of their own. ValueError for values of a body, and for
  // those that depend on arguments which are not `given` but represent others.
  Array initial_value(const Tensor& tensor, const std::vector<PerReplica<Array>>& arguments,
                      bool given);

  // The program with these results; the trace is over.
  Program finish(std::vector<Value> outputs);
  bool finished() const { return finished_; }

  // The captured values of a body's outer trace, with the arguments that represent them.
  const std::vector<std::pair<Value, Value>>& captures() const { return captures_; }
  std::vector<std::shared_ptr<Variable>> written() const;
  Value add_body_argument(const ValueType& type, Placement placement);
  // The variable has this value when the body starts.
  void preset(const std::shared_ptr<Variable>& variable, Value value);
  // The body with these results, as a graph of `own` arguments and then one for each of the given
  // values of the outer trace.
  Graph finish_body(std::vector<Value> outputs, const Trace& outer, std::size_t own,
                    const std::vector<Value>& captures);

  // Messages printed by eager operations of this thread.
  static Messages& messages();
  // Returns the line of the program; set by the bindings.
  static std::function<std::string()> locate;
  // Runs what takes long and touches no trace, while other threads go on: set by the bindings.
  static std::function<void(const std::function<void()>&)> unlocked;

 private:
  static std::uint64_t next_number();
  int symbol_for(const ExampleCounts& counts, bool own);
  Value constant(const Tensor& tensor);
  // The slot of a variable, noted as touched.
  SlotId slot_of(const std::shared_ptr<Variable>& variable);
  bool is_inside(const Trace& other) const;
  Value capture(Value outer);
  // The program that makes one value, out of the arguments and of what was looked at before, which
  // are appended to `arguments`.
  Graph part_for(Value value, std::vector<PerReplica<Array>>& arguments) const;
  std::vector<std::shared_ptr<StateCell>> cells() const;
  void execute(const Node& node);
  bool is_current(Variable& variable, Value value) const;
  // Eager: gives these values their arrays, in one program.
  void materialize(const Values& values);
  // The same for values of several runs.
  void compute(const Values& values);
  std::optional<Array> array_of(Value value) const;
  std::vector<PerReplica<Tensor>> record_replicas(const RunOperands& operands, const Graph& program,
                                                  const std::vector<PerReplica<Array>>& outputs);
  Value argument_of(const Step& step, const RunOperands& operands, std::size_t index);
  // Nodes [begin, end of the graph) of another graph, but for those whose results `map` knows;
  // run_of(run): the run of a call here.
  void copy_nodes(const Graph& from, NodeId begin, PerValue<Value>& map,
                  const std::function<std::int32_t(std::int32_t)>& run_of);
  // The array that is known as this in other traces, and the value that it is here.
  using Identity = std::pair<std::uint64_t, Value>;
  Identity identity(Value value) const;
  Value known(const Identity& identity) const;
  Value known(const Tensor& tensor) const;
  void name(const Tensor& tensor, Value value);
  void adopt(const Identity& identity, Value value);
  struct Followed {
    std::shared_ptr<Trace> trace;
    NodeId next;  // the first node that is not imported
    Value first;  // the first value that was made since
  };
  void import_all();
  void import_from(Followed& followed);
  void adopt_gradient(Node& node, const Trace& other);
  // The program's line, as an index of the graph's locations.
  std::int32_t location();
  bool keeps_collectives() const {
    return outer_ ? outer_->keeps_collectives() : keeps_collectives_;
  }
  // The rule of the results, traced.
  void add_rule(const Values& results, const Values& operands, const GradientFunction& gradient);

  Mode mode_;
  std::uint64_t number_;
  Graph graph_;
  std::shared_ptr<Trace> outer_;                   // of a body
  std::vector<std::pair<Value, Value>> captures_;  // of a body
  std::map<const StateCell*, Value> state_;
  std::map<const StateCell*, std::vector<Value>> reads_;
  IndexedVector<SlotId, std::pair<std::shared_ptr<Variable>, bool>> touched_;  // whether written
  std::unordered_map<const Variable*, SlotId> slots_;
  std::vector<std::pair<Array, Value>> large_constants_;
  std::vector<std::pair<int, ExampleCounts>> counts_of_symbol_;  // of arguments
  std::vector<ValueUse> uses_;
  std::map<Value, Array> arrays_;    // eager: of each value
  std::map<Identity, Value> known_;  // arrays of other traces
  std::map<Value, Identity> identities_;
  std::vector<Followed> followed_;
  std::weak_ptr<TraceScope> scope_;  // in which tapes record it
  bool importing_ = false;
  std::vector<std::uint64_t> runs_;  // eager: the numbers of the recorded steps
  std::vector<std::int32_t> open_runs_;
  int deferred_ = 0;                            // how many of those are not -1
  std::map<std::string, std::int32_t> places_;  // location -> index
  std::optional<std::vector<PerReplica<Array>>> actual_;
  std::map<Value, PerReplica<Array>> looked_;
  std::vector<int> processes_;
  std::size_t members_ = 0;  // graph_.symbols.replicas, when that was last looked at
  std::string split_at_;
  std::vector<GradientFunction> gradients_;  // eager
  bool counts_reads_ = false;
  bool keeps_collectives_ = false;
  std::vector<std::shared_ptr<Variable>> counted_reads_;
  std::int64_t ordinal_ = 0;
  std::uint64_t step_ = 0;
  bool drew_ = false;  // eager: the step number is this trace's own
  bool finished_ = false;
};

// An operation on whatever is current.
std::vector<Tensor> apply(const OpDef& op, std::span<const Tensor* const> inputs, Attrs attrs);
std::vector<Tensor> apply(const OpDef& op, const std::vector<Tensor>& inputs, Attrs attrs);

// A concrete tensor.
Tensor make_tensor(const Array& array, const ExampleAxis& batch = {});

// An eager trace is current while one lives; the eager trace that was current before follows it.
class TraceScope {
 public:
  explicit TraceScope(std::shared_ptr<Trace> trace);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

  void replace(const std::shared_ptr<Trace>& fresh);
  // Import the nodes that the following trace lacks.
  void import() const {
    if (below_) below_->import_followed();
  }
  bool has_follower() const { return below_ != nullptr; }

 private:
  std::shared_ptr<Trace> trace_, below_;
  std::optional<Scope> scope_;
};

// Reverse-mode differentiation over windows of a trace.
class Tape {
 public:
  explicit Tape(bool persistent, bool watch_variables)
      : persistent_(persistent), watch_variables_(watch_variables) {}

  void start();
  void stop();
  // Forgets what it has recorded; it goes on recording if it does.
  void reset();
  bool recording() const { return recording_; }
  // Nothing is recorded while one lives.
  class Pause {
   public:
    explicit Pause(Tape& tape);
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Tape& tape_;
    bool was_recording_;
    std::optional<Scope> quiet_;
  };
  void watch(const Tensor& tensor);
  // The variables that its trace read after the first `count` reads, in order.
  std::vector<std::shared_ptr<Variable>> reads_since(std::size_t count);
  // The variable as a target: what it was last read as.
  Tensor target(const std::shared_ptr<Variable>& variable);
  // One gradient per source (a tensor or a variable), absent where it is not connected.
  // RuntimeError if a tape that is not persistent is used twice, unless `again`: for the rows of a
  // jacobian, which are one use.
  struct Origin {
    const Tensor* tensor = nullptr;
    std::shared_ptr<Variable> variable = {};
  };
  std::vector<std::optional<Tensor>> gradient(const std::vector<const Tensor*>& targets,
                                              const std::vector<const Tensor*>& seeds,
                                              const std::vector<Origin>& sources,
                                              bool again = false);

 private:
  // RuntimeError if the function it recorded in is no longer being traced.
  void check_alive() const;
  void check_recorded() const;
  void open_window();
  void close_window();
  bool in_window(NodeId node) const;
  Values values_of(const Origin& source, const Values& targets, const PerValue<bool>& tracked);
  // Mark the values that depend on watched values or variables; `missed`: the nodes that were
  // recorded before their operands were watched.
  PerValue<bool> tracked(PerNode<bool>& missed) const;

  bool persistent_;
  bool watch_variables_;
  bool recording_ = false;
  bool used_ = false;
  std::shared_ptr<Trace> trace_;
  // While it records an eager trace; all tapes that record the same one have it.
  std::shared_ptr<TraceScope> scope_;
  std::vector<std::pair<NodeId, NodeId>> windows_;  // no end: open
  std::vector<std::pair<NodeId, Value>> watched_;   // the first node after it was watched
};

}  // namespace samegrad
