#include "train/control.h"

#include <algorithm>

#include "base/error.h"
#include "ops/control.h"
#include "train/carry.h"

namespace samegrad {
namespace {

// The graph of a branch or iteration while it is traced.
struct Body {
  std::shared_ptr<BodyTrace> trace;
  std::vector<Value> outputs;
};

void call(GraphTrace& outer, Body& body, const TensorFunction& function,
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

GraphPtr finish(Body& body, std::size_t own, const std::vector<Value>& captures) {
  return std::make_shared<Graph>(body.trace->finish(body.outputs, own, captures));
}

// Gives the results of two branches one type, where they can have one.
void join_types(GraphTrace& outer, Body& a, Body& b) {
  for (std::size_t i = 0; i < a.outputs.size(); ++i) {
    const auto joined = outer.joined_type(a.trace->type(a.outputs[i]), b.trace->type(b.outputs[i]));
    if (!joined) continue;
    for (Body* body : {&a, &b}) {
      body->outputs[i] = body->trace->leave_as(body->outputs[i], *joined);
    }
  }
}

std::vector<Tensor> results_of(GraphTrace& trace, const Values& values, std::size_t count) {
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < count; ++i) results.push_back(trace.tensor(values[i]));
  return results;
}

class TracedLoop {
 public:
  TracedLoop(std::shared_ptr<GraphTrace> outer, const TensorFunction& condition,
             const TensorFunction& body, const std::vector<Tensor>& variables)
      : outer_(std::move(outer)),
        condition_fn_(condition),
        body_fn_(body),
        carry_("while_loop", outer_, variables) {}

  std::vector<Tensor> run(std::int64_t maximum) {
    const std::int64_t ordinal = outer_->draws().ordinal;
    do {
      outer_->draws().ordinal = ordinal;
      condition_ = trace(condition_fn_);
      body_ = trace(body_fn_);
      check_traced();
      differs_ = condition_.trace->program().varying(condition_.outputs[0]);
    } while (carry_.join(*body_.trace, body_.outputs, differs_));
    return build(maximum);
  }

 private:
  Body trace(const TensorFunction& function) {
    Body body{std::make_shared<BodyTrace>(outer_), {}};
    call(*outer_, body, function, carry_.add_to(*body.trace));
    return body;
  }

  void check_traced() {
    SG_CHECK_VALUE(condition_.outputs.size() == 1, "while_loop",
                   "the condition must be one bool: got ", condition_.outputs.size(), " results.");
    SG_CHECK_VALUE(body_.outputs.size() == carry_.given(), "while_loop",
                   "the body must return the ", carry_.given(), " loop variables: got ",
                   body_.outputs.size(), " results.");
    SG_CHECK_VALUE(condition_.trace->written().empty(), "while_loop",
                   "the condition must not assign variables; assign them in the body.");
  }

  std::vector<Tensor> build(std::int64_t maximum) {
    const std::vector<Value> captures = captures_of({&condition_, &body_});
    Values inputs = carry_.initial();
    inputs.insert(inputs.end(), captures.begin(), captures.end());
    const std::size_t own = carry_.size();
    WhileAttrs attrs;
    attrs.variables = std::int64_t(own);
    attrs.maximum = maximum;
    attrs.varying = differs_;
    const Values results =
        outer_->apply(OpRegistry::instance().get("while_loop"), inputs, attrs,
                      {finish(condition_, own, captures), finish(body_, own, captures)});
    carry_.write(results);
    return results_of(*outer_, results, carry_.given());
  }

  std::shared_ptr<GraphTrace> outer_;
  const TensorFunction& condition_fn_;
  const TensorFunction& body_fn_;
  Carry carry_;
  Body condition_, body_;
  bool differs_ = false;  // replicas make different numbers of iterations
};

}  // namespace

std::vector<Tensor> traced_cond(const Tensor& condition, const TensorFunction& true_fn,
                                const TensorFunction& false_fn) {
  const std::shared_ptr<GraphTrace> outer = traced_graph("cond");
  const Value predicate = outer->lift(condition);
  Body yes{std::make_shared<BodyTrace>(outer), {}};
  call(*outer, yes, true_fn, {});
  Body no{std::make_shared<BodyTrace>(outer), {}};  // it knows the sizes that the other one made
  call(*outer, no, false_fn, {});
  SG_CHECK_VALUE(yes.outputs.size() == no.outputs.size(), "cond",
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
  join_types(*outer, yes, no);
  const std::vector<Value> captures = captures_of({&yes, &no});
  Values inputs = {predicate};
  inputs.insert(inputs.end(), captures.begin(), captures.end());
  const Values results = outer->apply(OpRegistry::instance().get("cond"), inputs,
                                      CondAttrs{{outer->program().varying(predicate)}},
                                      {finish(yes, 0, captures), finish(no, 0, captures)});
  for (std::size_t i = 0; i < written.size(); ++i) outer->write(written[i], results[given + i]);
  return results_of(*outer, results, given);
}

std::vector<Tensor> traced_while(const TensorFunction& condition, const TensorFunction& body,
                                 const std::vector<Tensor>& variables, std::int64_t maximum) {
  return TracedLoop(traced_graph("while_loop"), condition, body, variables).run(maximum);
}

}  // namespace samegrad
