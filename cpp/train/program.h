// Programs: the results of a trace, and the compiled plans that equal programs share.
#pragma once

#include <memory>
#include <vector>

#include "runtime/executor.h"

namespace samegrad {

// A graph and the variables of its slots.
struct Program {
  Graph graph;
  std::vector<std::shared_ptr<StateCell>> variables;
  // The replicas of each process (communicator_of); empty: this one has all.
  std::vector<int> processes = {};
};

// Constants larger than this stay with their program, which brings them to each call: what is
// compiled would hold them for as long as it is kept.
inline constexpr std::size_t kLargeConstant = std::size_t(64) << 10;

// The compiled form that equal programs share. It has neither variables nor lines of source, and
// holds no memory between runs.
class CompiledProgram {
 public:
  CompiledProgram(GraphPtr graph, const PlanOptions& options);

  const Graph& graph() const { return *graph_; }
  const Plan& plan() const { return executable_.plan(); }
  const std::vector<ValueType>& argument_types() const { return argument_types_; }
  // The executable of the program. To check every number, it runs every operation by itself (the
  // bits are the same).
  Executable& executable(bool check_finite);

 private:
  GraphPtr graph_;
  PlanOptions options_;
  Executable executable_;
  Synchronized<std::unique_ptr<Executable>> unfused_;  // made when asked for
  std::vector<ValueType> argument_types_;
};

// A program's own part.
struct Binding {
  std::vector<std::shared_ptr<StateCell>> variables;
  std::vector<std::string> names;  // of the variables
  Locations locations;
  std::vector<Array> constants;   // further arguments, after those of the caller
  std::vector<ConstantId> taken;  // which constants of the program those were
};
struct BoundProgram {
  std::shared_ptr<CompiledProgram> compiled;
  Binding binding;
};

enum class Sharing {
  kNone,    // compiled for this program alone
  kEqual,   // equal programs share it, the most recent ones are kept
  kNumbers  // and programs that differ in numbers: those become arguments
};
// The programs that one function is for replicas with different counts, and the lines at which they
// became several, as one program: see passes/merge_specializations.h.
Program join_programs(std::vector<Program> programs, const std::vector<std::string>& split_at);

BoundProgram compile_program(Program program, const PlanOptions& options, Sharing sharing);

}  // namespace samegrad
