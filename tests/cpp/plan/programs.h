// Programs of operations that exist for the tests alone.
#pragma once

#include <memory>

#include "base/error.h"
#include "ir/builder.h"
#include "ir/op_def.h"
#include "plan/buffers.h"
#include "runtime/executor.h"

namespace samegrad {

inline Inferred as_first(const InferArgs& args) {
  return {{args.in[0]}, Locality::kFullBatch};
}

// y[i] = x[i] + x2[i] + ...
inline const OpDef& sum_op() {
  static const OpDef op = [] {
    OpDef row;
    row.name = "fake_sum";
    row.max_arity = -1;
    row.traits = kElementwise | kNoGradient;
    row.infer = as_first;
    row.kernel = [](const KernelArgs& args) {
      for (std::int64_t i = 0; i < args.out[0].size(); ++i) {
        float sum = 0;
        for (const View& x : args.in) sum += x.as<float>()[i];
        args.out[0].as<float>()[i] = sum;
      }
    };
    return row;
  }();
  return op;
}

// y[i] = x[n - 1 - i]; cannot be done in place, and may raise as far as the plan knows.
inline const OpDef& reverse_op() {
  static const OpDef op = [] {
    OpDef row;
    row.name = "fake_reverse";
    row.traits = kNoGradient;
    row.infer = as_first;
    row.kernel = [](const KernelArgs& args) {
      const std::int64_t n = args.out[0].size();
      for (std::int64_t i = 0; i < n; ++i) {
        args.out[0].as<float>()[i] = args.in[0].as<float>()[n - 1 - i];
      }
    };
    return row;
  }();
  return op;
}

inline const OpDef& alias_op() {
  static const OpDef op = [] {
    OpDef row;
    row.name = "fake_alias";
    row.traits = kAliases | kNoGradient;
    row.infer = as_first;
    row.kernel = [](const KernelArgs&) {};
    return row;
  }();
  return op;
}

class Cell final : public StateCell {
 public:
  explicit Cell(float first) : components_{Array(DType::kFloat32, {5})} {
    for (int i = 0; i < 5; ++i) components_[0].data<float>()[i] = first + float(i);
  }
  PerReplica<Array>& components() override { return components_; }
  const float* data() { return components_[0].data<float>(); }

 private:
  PerReplica<Array> components_;
};

// A graph over variables of five floats, v0 = {0, 1, 2, 3, 4}, v1 = {10, 11, ...}, ...
class Fake {
 public:
  explicit Fake(int variables) : builder_(graph_) {
    for (int v = 0; v < variables; ++v) {
      const SlotId slot = graph_.variables.push_back({"v" + std::to_string(v), 1});
      old_.push_back(graph_.add_read(slot, {DType::kFloat32, {5}, {}}));
      cells_.push_back(std::make_shared<Cell>(10.f * float(v)));
    }
  }

  Value old(int variable) const { return old_[std::size_t(variable)]; }
  Value apply(const OpDef& op, const Values& inputs) { return builder_.apply(op, inputs)[0]; }
  Value sum(const Values& inputs) { return apply(sum_op(), inputs); }
  void write(int variable, Value value) { graph_.writes.push_back({SlotId(variable), value}); }
  void output(Value value) { graph_.outputs.push_back(value); }

  Plan plan(bool in_place = true) const {
    PlanOptions options;
    options.passes = PassOptions::none();
    options.write_in_place = in_place;
    return compile(graph_, options);
  }
  // Runs once; the outputs.
  std::vector<PerReplica<Array>> run(bool in_place = true) {
    Executable executable(plan(in_place));
    return run(executable);
  }
  std::vector<PerReplica<Array>> run(Executable& executable) {
    ExecuteParams call;
    call.variables = cells_;
    call.counts = {{}};
    return executable.run(call);
  }
  std::vector<PerReplica<Array>> run_dry(Executable& executable, std::vector<StepUsage>& usages) {
    ExecuteParams call;
    call.variables = cells_;
    call.counts = {{}};
    call.dry = true;
    call.usages = &usages;
    return executable.run(call);
  }
  Cell& cell(int variable) { return static_cast<Cell&>(*cells_[std::size_t(variable)]); }
  Graph& graph() { return graph_; }

 private:
  Graph graph_;
  Builder builder_;
  Values old_;
  std::vector<std::shared_ptr<StateCell>> cells_;
};

}  // namespace samegrad
