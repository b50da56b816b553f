// A compiled step: a traced program with the plan that runs it.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/executor.h"

namespace samegrad {

class Step {
 public:
  Step(Graph program, const PlanOptions& options);

  const Graph& program() const { return program_; }
  const PlanOptions& options() const { return options_; }
  // The program without writes and effects, for gradients of a run.
  const Graph& pure();
  const Plan& plan() const { return executable_.plan(); }
  // The program looked at a count of examples: it is right for the traced counts only.
  bool fixed() const { return fixed_; }

  // Arguments: one array each, or one per replica. ValueError where arrays and program do not fit.
  std::vector<std::vector<Array>> run(const std::vector<std::vector<Array>>& arguments,
                                      bool check_finite) {
    return run_numbered(arguments, check_finite).outputs;
  }
  // A step draws by its number; one that is repeated draws the same.
  struct Result {
    std::vector<std::vector<Array>> outputs;
    std::uint64_t number = 0;
  };
  Result run_numbered(const std::vector<std::vector<Array>>& arguments, bool check_finite);
  std::vector<std::vector<Array>> repeat(const std::vector<std::vector<Array>>& arguments,
                                         bool check_finite, std::uint64_t number);
  // What run() would return next; nothing moves on, neither variables (there are no writes) nor the
  // random numbers.
  std::vector<std::vector<Array>> look(const std::vector<std::vector<Array>>& arguments);
  // Counts of examples of the arguments, per replica and symbol.
  std::vector<std::vector<std::int64_t>> counts_of(
      const std::vector<std::vector<Array>>& arguments) const;

 private:
  Executable& executable(bool check_finite);
  // ValueError where arrays and program do not fit.
  Call call_of(const std::vector<std::vector<Array>>& arguments) const;
  void check_argument(std::size_t index, const std::vector<Array>& arrays) const;

  Graph program_;
  PlanOptions options_;
  Executable executable_;
  // The same bits with every operation by itself, for messages that name it; made when asked for.
  std::once_flag unfused_once_;
  std::unique_ptr<Executable> unfused_;
  std::once_flag pure_once_;
  Graph pure_;
  std::vector<ValueType> argument_types_;
  bool fixed_ = false;
};

// The step for a program; equal programs share one (the most recent ones are kept).
std::shared_ptr<Step> compile_step(Graph program, const PlanOptions& options);

}  // namespace samegrad
