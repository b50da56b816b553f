// Records of steps: hashes of a step's inputs and results, which two runs can compare without each
// other's arrays.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/hashes.h"
#include "train/compiled_function.h"

namespace samegrad {

// A value of a step that has a hash in its records.
struct StepEntry {
  enum class Kind { kArgument, kOutput, kGradient, kVariable } kind;
  std::int32_t index;  // argument, output, or slot of the variable
  std::string name;    // of the variable
  ValueType type;
  Placement placement;
};
// Arguments, results, gradients, and the variables that the step writes.
std::vector<StepEntry> entries_of(CompiledFunction& step);

// An operation of a step, or of a body in it, where all run one by one.
struct OperationHash {
  std::string op, type, line;
  Placement placement = Placement::kReplicated;
  // Operands: an operation of the list (in loops also a later one), or -1 - n for an argument,
  // variable or constant, n being its value.
  std::vector<std::int32_t> inputs;
  std::vector<std::uint64_t> hashes;  // per result
};
// A value that a step of the plan leaves in memory, or sums up.
struct StoredHash {
  std::string title, op, type, line;  // title: of the step of the plan
  std::uint64_t hash = 0;
};

struct StepRecord {
  std::int64_t index = 0;  // of the recorded steps of the run
  std::uint64_t seed = 0;
  std::optional<std::uint64_t> draw;   // the number that it drew with, if it draws
  std::vector<std::int64_t> examples;  // of all replicas, per symbol
  std::vector<std::uint64_t> hashes;   // per entry
  // Variables that were not recorded before, or that others have written since: slot, hash.
  std::vector<std::pair<std::int32_t, std::uint64_t>> before;
  // Arguments with examples on axis 0: index, hash of each example, counted as the first one.
  std::vector<std::pair<std::int32_t, std::vector<std::uint64_t>>> example_hashes;
  // Only there for the step that is looked at in detail.
  std::vector<OperationHash> operations;
  std::vector<StoredHash> stored;
  std::vector<PerReplica<Array>> variables;  // components of this process, before the step
};

// State that the records of a run have in common.
class StepRecorder {
 public:
  // Step number `detail` is looked at in detail; below 0: none.
  explicit StepRecorder(std::int64_t detail) : detail_(detail) {}

 private:
  friend class StepHashes;
  struct CachedHash {
    std::uint64_t version, hash;
  };
  using Cell = std::weak_ptr<StateCell>;

  // Entries and values of a step, for all its runs.
  struct Layout {
    std::vector<StepEntry> entries;
    std::vector<Value> results;  // of the plan: per gradient and variable among the entries
    std::unique_ptr<Hashes> hashes;
  };
  using Program = std::weak_ptr<CompiledProgram>;
  Layout& layout_of(CompiledFunction& step);

  std::int64_t detail_, next_ = 0;
  std::map<Cell, CachedHash, std::owner_less<Cell>> known_;
  std::map<Program, Layout, std::owner_less<Program>> layouts_;
};

// Hashes of one run of a step. All processes make them at the same time, and get those of all.
class StepHashes {
 public:
  explicit StepHashes(StepRecorder& recorder) : recorder_(recorder) {}

  void begin(CompiledFunction& step, ExecuteParams& call);
  void end(CompiledFunction& step, const ExecuteParams& call,
           const std::vector<PerReplica<Array>>& outputs);
  StepRecord& record() { return record_; }

 private:
  const std::vector<StepEntry>& entries() const { return layout_->entries; }
  void hash_arguments(CompiledFunction& step, const ExecuteParams& call);
  void hash_variables(const ExecuteParams& call);
  void hash_operations(CompiledFunction& step, ExecuteParams call);
  void hash_outputs(CompiledFunction& step, const ExecuteParams& call,
                    const std::vector<PerReplica<Array>>& outputs);
  void hash_results(const CompiledFunction& step, const Hashes& hashes);
  void add_up(const ExecuteParams& call);
  void remember(const ExecuteParams& call);

  StepRecorder& recorder_;
  StepRecord record_;
  bool detailed_ = false;
  StepRecorder::Layout* layout_ = nullptr;
  std::unique_ptr<Hashes> of_all_;     // results of the plan, of a step in detail
  std::vector<char> is_before_;        // per slot: it is in record_.before
  std::vector<std::uint64_t> before_;  // per slot
};

}  // namespace samegrad
