#include "train/control.h"

#include <algorithm>

#include "base/error.h"
#include "ir/placement.h"
#include "ops/control.h"

namespace samegrad {
namespace {

// The graph of a branch or round while it is traced.
struct Body {
  std::shared_ptr<Trace> trace;
  std::vector<Value> outputs;
};

std::shared_ptr<Trace> current_graph(const char* who) {
  std::shared_ptr<Trace> trace = current_trace();
  if (!trace || trace->mode() != Trace::Mode::kGraph) {
    fail(ErrorKind::kRuntime, who, "no function is being traced here.");
  }
  return trace;
}

void call(Trace& outer, Body& body, const TensorFunction& function,
          const std::vector<Tensor>& arguments) {
  const Scope scope(with_trace(body.trace));
  for (const Tensor& result : function(arguments)) {
    body.outputs.push_back(body.trace->lift(result));
  }
  outer.adopt_symbols(*body.trace);
}

bool contains(const std::vector<std::shared_ptr<Variable>>& variables,
              const std::shared_ptr<Variable>& variable) {
  return std::ranges::find(variables, variable) != variables.end();
}

// The outer values that any of the bodies read.
std::vector<Value> captures_of(std::initializer_list<const Body*> bodies) {
  std::vector<Value> all;
  for (const Body* body : bodies) {
    for (const auto& [outer, inner] : body->trace->captures()) {
      if (std::ranges::find(all, outer) == all.end()) all.push_back(outer);
    }
  }
  return all;
}

GraphPtr finish(Body& body, const Trace& outer, std::size_t own,
                const std::vector<Value>& captures) {
  return std::make_shared<Graph>(body.trace->finish_body(body.outputs, outer, own, captures));
}

// A result that only one branch keeps by examples is one of ordinary rows in both.
void forget_examples(Body& a, Body& b) {
  for (std::size_t i = 0; i < a.outputs.size(); ++i) {
    if (a.trace->type(a.outputs[i]).batched() == b.trace->type(b.outputs[i]).batched()) continue;
    for (Body* body : {&a, &b}) {
      const ValueType& type = body->trace->type(body->outputs[i]);
      // Another number of rows would be a size that the other branch does not know.
      if (!type.batched() || type.batch.rows_per_example != 1) continue;
      body->outputs[i] = (*body->trace)("as_rows", {body->outputs[i]});
    }
  }
}

std::vector<Tensor> results_of(Trace& trace, const Values& values, std::size_t count) {
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < count; ++i) results.push_back(trace.tensor(values[i]));
  return results;
}

// A loop being traced: variables it writes become loop variables, and a loop variable that starts
// equal on all replicas may differ after a round, so it is traced until nothing new comes up.
class TracedLoop {
 public:
  TracedLoop(std::shared_ptr<Trace> outer, const TensorFunction& condition,
             const TensorFunction& body, const std::vector<Tensor>& variables)
      : outer_(std::move(outer)), condition_fn_(condition), body_fn_(body) {
    for (const Tensor& tensor : variables) {
      initial_.push_back(outer_->lift(tensor));
      placements_.push_back(outer_->program().placement(initial_.back()));
    }
    given_ = initial_.size();
  }

  std::vector<Tensor> run(std::int64_t maximum) {
    const std::int64_t ordinal = outer_->ordinal();
    do {
      outer_->set_ordinal(ordinal);
      condition_ = trace(condition_fn_);
      body_ = trace(body_fn_);
      check_traced();
    } while (grow());
    return build(maximum);
  }

 private:
  Body trace(const TensorFunction& function) {
    Body body{std::make_shared<Trace>(outer_), {}};
    std::vector<Tensor> arguments;
    for (std::size_t i = 0; i < initial_.size(); ++i) {
      const Value value = body.trace->add_body_argument(outer_->type(initial_[i]), placements_[i]);
      if (i < given_) {
        arguments.push_back(body.trace->tensor(value));
      } else {
        body.trace->preset(state_[i - given_], value);
      }
    }
    call(*outer_, body, function, arguments);
    return body;
  }

  void check_traced() {
    check_value(condition_.outputs.size() == 1, "while_loop",
                "the condition must be one bool: got ", condition_.outputs.size(), " results.");
    check_value(body_.outputs.size() == given_, "while_loop", "the body must return the ", given_,
                " loop variables: got ", body_.outputs.size(), " results.");
    check_value(condition_.trace->written().empty(), "while_loop",
                "the condition must not assign variables; assign them in the body.");
    for (std::size_t i = 0; i < given_; ++i) {
      const ValueType& before = outer_->type(initial_[i]);
      const ValueType& after = body_.trace->type(body_.outputs[i]);
      check_value(outer_->same_type(before, after), "while_loop", "loop variable ", i,
                  " must keep its dtype and ", "shape: it was ", to_string(before), " and became ",
                  to_string(after), ".");
    }
  }

  // Whether the loop must be traced again.
  bool grow() {
    bool again = false;
    for (const auto& variable : body_.trace->written()) {
      if (contains(state_, variable)) continue;
      state_.push_back(variable);
      initial_.push_back(outer_->read(variable));
      placements_.push_back(outer_->program().placement(initial_.back()));
      again = true;
    }
    if (again) return true;
    for (const auto& variable : state_) body_.outputs.push_back(body_.trace->read(variable));
    // Where replicas do different numbers of rounds, everything may differ.
    differs_ = condition_.trace->program().varying(condition_.outputs[0]);
    for (std::size_t i = 0; i < placements_.size(); ++i) {
      const Placement after =
          differs_ ? Placement::kOwn : body_.trace->program().placement(body_.outputs[i]);
      const Placement either = joined(placements_[i], after);
      again = again || either != placements_[i];
      placements_[i] = either;
    }
    return again;
  }

  std::vector<Tensor> build(std::int64_t maximum) {
    const std::vector<Value> captures = captures_of({&condition_, &body_});
    Values inputs = initial_;
    inputs.insert(inputs.end(), captures.begin(), captures.end());
    const std::size_t own = initial_.size();
    WhileAttrs attrs;
    attrs.variables = std::int64_t(own);
    attrs.maximum = maximum;
    attrs.varying = differs_;
    const Values results = outer_->apply(
        OpRegistry::instance().get("while_loop"), inputs, attrs,
        {finish(condition_, *outer_, own, captures), finish(body_, *outer_, own, captures)});
    for (std::size_t i = 0; i < state_.size(); ++i) {
      outer_->write(state_[i], results[given_ + i]);
    }
    return results_of(*outer_, results, given_);
  }

  std::shared_ptr<Trace> outer_;
  const TensorFunction& condition_fn_;
  const TensorFunction& body_fn_;
  std::size_t given_ = 0;
  Values initial_;                     // of the loop variables, then of the written ones
  std::vector<Placement> placements_;  // per loop variable
  std::vector<std::shared_ptr<Variable>> state_;
  Body condition_, body_;
  bool differs_ = false;
};

}  // namespace

std::vector<Tensor> traced_cond(const Tensor& condition, const TensorFunction& true_fn,
                                const TensorFunction& false_fn) {
  const std::shared_ptr<Trace> outer = current_graph("cond");
  const Value predicate = outer->lift(condition);
  Body yes{std::make_shared<Trace>(outer), {}};
  call(*outer, yes, true_fn, {});
  Body no{std::make_shared<Trace>(outer), {}};  // it knows the sizes that the other one made
  call(*outer, no, false_fn, {});
  check_value(yes.outputs.size() == no.outputs.size(), "cond",
              "both functions must return as many tensors: got ", yes.outputs.size(), " and ",
              no.outputs.size(), ".");
  const std::size_t given = yes.outputs.size();
  std::vector<std::shared_ptr<Variable>> written = yes.trace->written();
  for (const auto& variable : no.trace->written()) {
    if (!contains(written, variable)) written.push_back(variable);
  }
  for (Body* body : {&yes, &no}) {
    for (const auto& variable : written) body->outputs.push_back(body->trace->read(variable));
    // Branches that only print have no result; a node has one.
    if (body->outputs.empty()) body->outputs.push_back(body->trace->number(DType::kFloat32, 0));
  }
  forget_examples(yes, no);
  const std::vector<Value> captures = captures_of({&yes, &no});
  Values inputs = {predicate};
  inputs.insert(inputs.end(), captures.begin(), captures.end());
  const Values results = outer->apply(
      OpRegistry::instance().get("cond"), inputs, CondAttrs{{outer->program().varying(predicate)}},
      {finish(yes, *outer, 0, captures), finish(no, *outer, 0, captures)});
  for (std::size_t i = 0; i < written.size(); ++i) outer->write(written[i], results[given + i]);
  return results_of(*outer, results, given);
}

std::vector<Tensor> traced_while(const TensorFunction& condition, const TensorFunction& body,
                                 const std::vector<Tensor>& variables, std::int64_t maximum) {
  return TracedLoop(current_graph("while_loop"), condition, body, variables).run(maximum);
}

}  // namespace samegrad
