// Checks the contract of kernels: pure functions of their operands, with the same bits for every
// partition of a call. Builds with assertions do so under SAMEGRAD_CHECK_KERNELS=1.
#pragma once

#include "ir/located_error.h"
#include "ir/op_def.h"
#include "tensor/tree_accumulator.h"

namespace samegrad {

#ifdef SAMEGRAD_ASSERTIONS

bool checks_kernels();

class KernelCheck {
 public:
  // Runs the kernel twice, on private results: at once, and cut at an example or a unit. Results
  // and scratch hold another pattern each time, and guard bytes follow both.
  KernelCheck(const Node& node, const KernelArgs& args);
  ~KernelCheck();
  // Compares what the engine's own calls gave, which may be on operands.
  void compare() const;

 private:
  class Results;
  void run_cut(Results& results, std::int64_t cut) const;
  void check_counts() const;
  void check_operands(std::span<const View> results) const;

  const Node& node_;
  const KernelArgs& args_;
  std::vector<std::vector<std::byte>> operands_;  // copies
  std::unique_ptr<Results> expected_;             // none: the kernel has raised, or has effects
};

// Folds the examples of a reduction a second time, in other pieces and one block.
class TreeCheck {
 public:
  // Checks the reduction of the examples [begin, end).
  TreeCheck(const TreeReduction& reduction, std::int64_t begin, std::int64_t end);
  TreeCheck(const TreeCheck&) = delete;
  TreeCheck& operator=(const TreeCheck&) = delete;
  // Takes the arguments of TreeAccumulator::feed.
  void feed(const void* operands, std::int64_t first, std::int64_t begin, std::int64_t end,
            Scratch& scratch);
  // Compares with the engine's own state of all examples.
  void compare(const Node& node, const Accumulator& state) const;

 private:
  const TreeReduction& reduction_;
  std::vector<std::byte> memory_;
  Accumulator state_;
  TreeAccumulator accumulator_;
};

#endif

// Runs `run`, which calls the node's kernel for all that the arguments cover.
template <class Run>
void call_kernel(const Node& node, const KernelArgs& args, const Run& run) {
#ifdef SAMEGRAD_ASSERTIONS
  if (checks_kernels()) {
    const KernelCheck check(node, args);
    run_located(node, run);
    return check.compare();
  }
#endif
  static_cast<void>(args);
  run_located(node, run);
}

}  // namespace samegrad
