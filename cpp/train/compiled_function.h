// A compiled function: a traced program, the plan that runs it, and the variables that it uses.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "train/program.h"

namespace samegrad {

class StepHashes;

class CompiledFunction {
 public:
  CompiledFunction(Program program, const PlanOptions& options, Sharing sharing = Sharing::kNone);

  const Graph& program() const { return compiled_->graph(); }
  const Plan& plan() const { return compiled_->plan(); }
  CompiledProgram& compiled() const { return *compiled_; }
  const std::shared_ptr<CompiledProgram>& shared() const { return compiled_; }
  const Binding& binding() const { return binding_; }
  // The program without writes and effects, for gradients of a run.
  const Graph& pure();
  // Over which processes the program's replicas are spread (Program::processes).
  const std::vector<int>& processes() const { return processes_; }
  // The program looked at a count of examples: it is right for the traced counts only.
  bool fixed() const { return fixed_; }
  // For people, with the lines of this program and the names of its variables.
  std::string program_text() const;
  // The reasons that its bits depend on the replicas; empty: they do not.
  std::vector<BitsReason> bits_reasons() const;
  // Explains a run with these arguments (null: with the traced counts of examples). Measures the
  // times of `runs` dry runs, which change nothing.
  Explanation explanation(const std::vector<PerReplica<Array>>* arguments, int runs);

  // Arguments: one array each, or one per replica. ValueError where arrays and program do not fit.
  // What the step prints goes to `messages`, when it fails.
  std::vector<PerReplica<Array>> run(const std::vector<PerReplica<Array>>& arguments,
                                     bool check_finite, PrintBuffer* messages = nullptr) {
    return run_numbered(arguments, check_finite, messages).outputs;
  }
  // A step draws by its number; one that is repeated draws the same.
  struct RunResult {
    std::vector<PerReplica<Array>> outputs;
    std::uint64_t number = 0;
  };
  RunResult run_numbered(const std::vector<PerReplica<Array>>& arguments, bool check_finite,
                         PrintBuffer* messages = nullptr, StepHashes* hashes = nullptr);
  std::vector<PerReplica<Array>> repeat(const std::vector<PerReplica<Array>>& arguments,
                                        bool check_finite, std::uint64_t number);
  // The results of the next run(), which changes nothing: neither variables (there are no writes)
  // nor the random state.
  std::vector<PerReplica<Array>> evaluate(const std::vector<PerReplica<Array>>& arguments);
  // Counts of examples of the arguments, per replica and symbol.
  Counts counts_of(const std::vector<PerReplica<Array>>& arguments) const;

 private:
  using Arguments = std::vector<PerReplica<Array>>;
  // ValueError where arrays and program do not fit. `storage` holds the constants of the call and
  // the arrays of this process's replicas.
  ExecuteParams call_of(const Arguments& arguments, Arguments& storage) const;
  void keep_own(ExecuteParams& call, Arguments& storage) const;
  // Returns the results of this process's replicas as values of all replicas.
  Arguments run_call(const ExecuteParams& call, bool check_finite);
  Arguments run_agreed(const ExecuteParams& call, bool check_finite);
  // ValueError if the program is bound to other counts.
  void check_bound(const Counts& counts) const;
  void check_argument(std::size_t index, const PerReplica<Array>& arrays) const;
  Graph labelled(Graph graph) const;

  std::shared_ptr<CompiledProgram> compiled_;
  Binding binding_;
  std::once_flag pure_once_;
  Graph pure_;
  bool fixed_ = false;
  std::vector<int> processes_;
  std::uint64_t fingerprint_ = 0;  // of program and plan, where there are several processes
};

}  // namespace samegrad
