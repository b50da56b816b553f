// Loops over the rows of arrays while a step is traced.
#include <algorithm>

#include "base/error.h"
#include "ir/placement.h"
#include "ops/control.h"
#include "ops/rounds.h"
#include "train/control.h"

namespace samegrad {
namespace {

// Variables that the body writes are carried from round to round, too; and a variable that starts
// equal on all replicas may differ after a round: it is traced until nothing new comes up.
class TracedScan {
 public:
  TracedScan(std::shared_ptr<Trace> outer, const TensorFunction& body,
             const std::vector<Tensor>& rows, const std::vector<Tensor>& variables)
      : outer_(std::move(outer)), function_(body), given_(variables.size()) {
    for (const Tensor& tensor : rows) rows_.push_back(outer_->lift(tensor));
    for (const Tensor& tensor : variables) carry(outer_->lift(tensor));
    // Entries of floats have gradients, and so a history of their own.
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      (floats(outer_->type(rows_[i])) ? order_[0] : order_[1]).push_back(i);
    }
    const ValueType& first = outer_->type(rows_[0]);
    varying_ = outer_->replicas() > 1 &&
               differs_between_replicas(outer_->program().symbols, first.shape[0]);
  }

  std::vector<Tensor> run(bool reverse) {
    const std::int64_t ordinal = outer_->ordinal();
    do {
      outer_->set_ordinal(ordinal);
      trace();
    } while (grow());
    return build(reverse);
  }

 private:
  static bool floats(const ValueType& type) { return is_floating(type.dtype); }

  void carry(Value value) {
    initial_.push_back(value);
    placements_.push_back(outer_->program().placement(value));
  }

  void trace() {
    body_ = std::make_shared<Trace>(outer_);
    outputs_.clear();
    std::vector<Tensor> arguments(rows_.size());
    for (const std::vector<std::size_t>& group : order_) {
      for (std::size_t i : group) {
        const ValueType& type = outer_->type(rows_[i]);
        const Placement placement = entry_placement(type, outer_->program().placement(rows_[i]));
        arguments[i] = body_->tensor(body_->add_body_argument(entry_type(type), placement));
      }
    }
    for (std::size_t i = 0; i < initial_.size(); ++i) {
      const Value value = body_->add_body_argument(outer_->type(initial_[i]), placements_[i]);
      if (i < given_) {
        arguments.push_back(body_->tensor(value));
      } else {
        body_->preset(state_[i - given_], value);
      }
    }
    const Scope scope(with_trace(body_));
    for (const Tensor& result : function_(arguments)) outputs_.push_back(body_->lift(result));
    outer_->adopt_symbols(*body_);
  }

  bool grow() {
    bool again = false;
    for (const auto& variable : body_->written()) {
      if (std::ranges::find(state_, variable) != state_.end()) continue;
      state_.push_back(variable);
      carry(outer_->read(variable));
      again = true;
    }
    if (again) return true;
    Values carried(outputs_.begin(), outputs_.begin() + std::ptrdiff_t(given_));
    made_.assign(outputs_.begin() + std::ptrdiff_t(given_), outputs_.end());
    for (const auto& variable : state_) carried.push_back(body_->read(variable));
    outputs_ = std::move(carried);
    for (std::size_t i = 0; i < initial_.size(); ++i) {
      check_type_of(i);
      const Placement after = varying_ ? Placement::kOwn : body_->program().placement(outputs_[i]);
      const Placement either = joined(placements_[i], after);
      again = again || either != placements_[i];
      placements_[i] = either;
    }
    return again;
  }

  void check_type_of(std::size_t i) {
    const ValueType &before = outer_->type(initial_[i]), &after = body_->type(outputs_[i]);
    check_value(outer_->same_type(before, after), "scan", "variable ", i,
                " must keep its dtype and shape: it was ", to_string(before), " and became ",
                to_string(after), ".");
  }

  // Histories of rows first, then the variables, then what the body reads.
  std::vector<Tensor> build(bool reverse) {
    const OpRegistry& rows = OpRegistry::instance();
    ReplayAttrs attrs;
    attrs.variables = std::int64_t(initial_.size());
    attrs.forward = !reverse;
    attrs.varying = varying_;
    Values inputs;
    for (const std::vector<std::size_t>& group : order_) {
      if (group.empty()) continue;
      Values arrays;
      for (std::size_t i : group) arrays.push_back(rows_[i]);
      inputs.push_back(outer_->apply(rows.get("unstack_rounds"), arrays)[0]);
      attrs.entries.push_back(std::int64_t(group.size()));
    }
    inputs.insert(inputs.end(), initial_.begin(), initial_.end());
    std::vector<std::size_t> made[2];
    for (std::size_t i = 0; i < made_.size(); ++i) {
      made[floats(body_->type(made_[i])) ? 0 : 1].push_back(i);
    }
    std::vector<StackRoundsAttrs> stacks;
    for (const std::vector<std::size_t>& group : made) {
      if (group.empty()) continue;
      attrs.yields.push_back(std::int64_t(group.size()));
      stacks.push_back(stack_of(group));
    }
    Values captures;
    for (const auto& [outer, inner] : body_->captures()) captures.push_back(outer);
    inputs.insert(inputs.end(), captures.begin(), captures.end());
    auto graph = std::make_shared<const Graph>(
        body_->finish_body(outputs_, *outer_, rows_.size() + initial_.size(), captures));
    const Values results = outer_->apply(rows.get("replay"), inputs, attrs, {std::move(graph)});
    return results_of(results, made, stacks);
  }

  StackRoundsAttrs stack_of(const std::vector<std::size_t>& group) {
    StackRoundsAttrs stack;
    stack.rounds = outer_->type(rows_[0]).shape[0];
    for (std::size_t i : group) {
      const ValueType& type = body_->type(made_[i]);
      const Placement placement = entry_placement(type, body_->program().placement(made_[i]));
      stack.add(type, varying_ ? Placement::kOwn : placement);
      outputs_.push_back(made_[i]);
    }
    return stack;
  }

  std::vector<Tensor> results_of(const Values& results, const std::vector<std::size_t> (&made)[2],
                                 const std::vector<StackRoundsAttrs>& stacks) {
    for (std::size_t i = 0; i < state_.size(); ++i) outer_->write(state_[i], results[given_ + i]);
    std::vector<Tensor> all;
    for (std::size_t i = 0; i < given_; ++i) all.push_back(outer_->tensor(results[i]));
    all.resize(given_ + made_.size());
    std::size_t next = 0;
    for (const std::vector<std::size_t>& group : made) {
      if (group.empty()) continue;
      const Values stacked = outer_->apply(OpRegistry::instance().get("stack_rounds"),
                                           {{results[initial_.size() + 1 + next]}}, stacks[next]);
      for (std::size_t i = 0; i < group.size(); ++i) {
        all[given_ + group[i]] = outer_->tensor(stacked[i]);
      }
      ++next;
    }
    return all;
  }

  std::shared_ptr<Trace> outer_, body_;
  const TensorFunction& function_;
  std::size_t given_;
  Values rows_, initial_;              // of the loop variables, then of the written ones
  std::vector<std::size_t> order_[2];  // rows: those of floats, then the others
  std::vector<Placement> placements_;  // per loop variable
  std::vector<std::shared_ptr<Variable>> state_;
  Values outputs_, made_;  // of the body: variables; what it makes of the rows
  bool varying_ = false;
};

}  // namespace

std::vector<Tensor> traced_scan(const TensorFunction& body, const std::vector<Tensor>& rows,
                                const std::vector<Tensor>& variables, bool reverse) {
  std::shared_ptr<Trace> trace = current_trace();
  if (!trace || trace->mode() != Trace::Mode::kGraph) {
    fail(ErrorKind::kRuntime, "scan", "no function is being traced here.");
  }
  return TracedScan(std::move(trace), body, rows, variables).run(reverse);
}

}  // namespace samegrad
