// Loops over the rows of arrays while a step is traced.
#include "ops/stacked_iterations.h"
#include "train/carry.h"
#include "train/control.h"

namespace samegrad {
namespace {

class TracedScan {
 public:
  TracedScan(std::shared_ptr<GraphTrace> outer, const TensorFunction& body,
             const std::vector<Tensor>& rows, const std::vector<Tensor>& variables)
      : outer_(std::move(outer)),
        function_(body),
        rows_(lifted(rows)),
        carry_("scan", outer_, variables) {
    // Entries of floats have gradients, and so a history of their own.
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      (floats(outer_->type(rows_[i])) ? order_[0] : order_[1]).push_back(i);
    }
    const ValueType& first = outer_->type(rows_[0]);
    varying_ = outer_->replicas() > 1 &&
               differs_between_replicas(outer_->program().symbols, first.shape[0]);
  }

  std::vector<Tensor> run(bool reverse) {
    const std::int64_t ordinal = outer_->draws().ordinal;
    do {
      outer_->draws().ordinal = ordinal;
      trace();
    } while (carry_.join(*body_, outputs_, varying_));
    return build(reverse);
  }

 private:
  static bool floats(const ValueType& type) { return is_floating(type.dtype); }

  Values lifted(const std::vector<Tensor>& tensors) const {
    Values values;
    for (const Tensor& tensor : tensors) values.push_back(outer_->lift(tensor));
    return values;
  }

  void trace() {
    body_ = std::make_shared<BodyTrace>(outer_);
    std::vector<Tensor> arguments(rows_.size());
    for (const std::vector<std::size_t>& group : order_) {
      for (std::size_t i : group) {
        const ValueType& type = outer_->type(rows_[i]);
        const Placement placement = entry_placement(type, outer_->program().placement(rows_[i]));
        arguments[i] = body_->tensor(body_->add_argument(entry_type(type), placement));
      }
    }
    const std::vector<Tensor> carried = carry_.add_to(*body_);
    arguments.insert(arguments.end(), carried.begin(), carried.end());
    const Scope scope(with_trace(body_));
    outputs_.clear();
    for (const Tensor& result : function_(arguments)) outputs_.push_back(body_->lift(result));
    made_.assign(outputs_.begin() + std::ptrdiff_t(carry_.given()), outputs_.end());
    outputs_.resize(carry_.given());
    outer_->adopt_symbols(*body_);
  }

  // Histories of rows first, then the variables, then what the body reads.
  std::vector<Tensor> build(bool reverse) {
    const OpRegistry& registry = OpRegistry::instance();
    ReplayAttrs attrs;
    attrs.variables = std::int64_t(carry_.size());
    attrs.forward = !reverse;
    attrs.varying = varying_;
    Values inputs;
    for (const std::vector<std::size_t>& group : order_) {
      if (group.empty()) continue;
      Values arrays;
      for (std::size_t i : group) arrays.push_back(rows_[i]);
      inputs.push_back(outer_->apply(registry.get("unstack_rounds"), arrays)[0]);
      attrs.entries.push_back(std::int64_t(group.size()));
    }
    inputs.insert(inputs.end(), carry_.initial().begin(), carry_.initial().end());
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
        body_->finish(outputs_, rows_.size() + carry_.size(), captures));
    const Values results = outer_->apply(registry.get("replay"), inputs, attrs, {std::move(graph)});
    return results_of(results, made, stacks);
  }

  StackRoundsAttrs stack_of(const std::vector<std::size_t>& group) {
    StackRoundsAttrs stack;
    stack.rounds = outer_->type(rows_[0]).shape[0];
    for (std::size_t i : group) {
      const ValueType& type = body_->type(made_[i]);
      const Placement placement = entry_placement(type, body_->program().placement(made_[i]));
      stack.add(type, varying_ ? Placement::kVarying : placement);
      outputs_.push_back(made_[i]);
    }
    return stack;
  }

  std::vector<Tensor> results_of(const Values& results, const std::vector<std::size_t> (&made)[2],
                                 const std::vector<StackRoundsAttrs>& stacks) {
    carry_.write(results);
    std::vector<Tensor> all;
    const std::size_t given = carry_.given();
    for (std::size_t i = 0; i < given; ++i) all.push_back(outer_->tensor(results[i]));
    all.resize(given + made_.size());
    std::size_t next = 0;
    for (const std::vector<std::size_t>& group : made) {
      if (group.empty()) continue;
      const Values stacked = outer_->apply(OpRegistry::instance().get("stack_rounds"),
                                           {{results[carry_.size() + 1 + next]}}, stacks[next]);
      for (std::size_t i = 0; i < group.size(); ++i) {
        all[given + group[i]] = outer_->tensor(stacked[i]);
      }
      ++next;
    }
    return all;
  }

  std::shared_ptr<GraphTrace> outer_;
  std::shared_ptr<BodyTrace> body_;
  const TensorFunction& function_;
  Values rows_;
  Carry carry_;
  std::vector<std::size_t> order_[2];  // rows: those of floats, then the others
  Values outputs_, made_;              // of the body: what it carries; what it makes of the rows
  bool varying_ = false;
};

}  // namespace

std::vector<Tensor> traced_scan(const TensorFunction& body, const std::vector<Tensor>& rows,
                                const std::vector<Tensor>& variables, bool reverse) {
  return TracedScan(traced_graph("scan"), body, rows, variables).run(reverse);
}

}  // namespace samegrad
