// Tape: gradients of what a trace records between its start and stop.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "train/trace.h"
#include "train/trace_scope.h"

namespace samegrad {

// Reverse-mode differentiation over windows of a trace.
class Tape {
 public:
  Tape(const Host& host, bool persistent) : host_(host), persistent_(persistent) {}

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
  // Null seeds become ones; none at all if no target has a seed of its own.
  Values seed_values(const std::vector<const Tensor*>& seeds, const Values& targets);
  // The sum of the parts that exist, absent if none does.
  std::optional<Tensor> sum_of(std::span<const Value> parts);
  Values values_of(const Origin& source, const Values& targets, const PerValue<bool>& tracked);
  // Mark the values that depend on watched values or variables; `missed`: the nodes that were
  // recorded before their operands were watched.
  PerValue<bool> tracked(PerNode<bool>& missed) const;

  const Host& host_;
  bool persistent_;
  bool recording_ = false;
  bool used_ = false;
  std::shared_ptr<Trace> trace_;
  // While it records an eager trace; all tapes that record the same one have it.
  std::shared_ptr<TraceScope> scope_;
  std::vector<std::pair<NodeId, NodeId>> windows_;  // no end: open
  std::vector<std::pair<NodeId, Value>> watched_;   // the first node after it was watched
};

}  // namespace samegrad
