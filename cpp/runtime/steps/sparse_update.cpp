// Updates by sparse gradients.
#include "runtime/step_run.h"

#include <cstring>

#include "base/rounding.h"
#include "base/thresholds.h"
#include "kernels/table.h"
#include "runtime/hashes.h"
#include "runtime/steps/sparse_rows.h"
#include "runtime/threads.h"

namespace samegrad {
namespace {

class SparseUpdater {
 public:
  SparseUpdater(const Plan& plan, const SparseUpdate& step, SparseUpdateBinding& binding,
                const ExecuteParams& call, ExecutionContext& context)
      : plan_(plan),
        step_(step),
        binding_(binding),
        hashes_(hashes_replicated(call) ? call.hashes : nullptr),
        context_(context),
        blocks_(plan, step, binding, binding.update, context) {}

  void run() {
    blocks_.sparse = step_.leaves_rows_alone &&
                     binding_.update.program.leaves_rows_alone(step_, blocks_.registers());
    if (blocks_.sparse) {
      keep_other_rows();
    } else {
      blocks_.find_direct_results();
    }
    if (blocks_.sparse && hashes_) mark_changes();
    const std::int64_t rows = blocks_.count();
    const std::int64_t blocks = divide_up(rows, blocks_.rows_of_block());
    const ParallelFor& loops = parallel_loops();
    if (loops.threads() == 1 || blocks < 2 || blocks_.work() < thresholds().parallel_tree_work) {
      return run_blocks(0, blocks, context_.main_task().scratch);
    }
    // One pointer: a function that captures more takes memory.
    const struct {
      const SparseUpdater* all;
      std::int64_t blocks, count;
    } parts{this, blocks, std::min(blocks, loops.threads() * thresholds().parts_per_thread)};
    loops.run(parts.count, [&parts](std::int64_t i) {
      const ExecutionContext::TaskLease lease(parts.all->context_);
      parts.all->run_blocks(parts.blocks * i / parts.count, parts.blocks * (i + 1) / parts.count,
                            (*lease).scratch);
    });
  }

 private:
  std::byte* base(Value value) const { return context_.base(0, plan_.root[value]); }

  // Copies rows that the update leaves as they are, if the result is not in the variable's memory.
  void keep_other_rows() const {
    for (std::size_t k = 0; k < binding_.left.size(); ++k) {
      const SparsePassBinding::PassOperand& slot = binding_.left[k];
      std::byte* to = base(slot.value);
      const std::byte* from = base(binding_.old[k]);
      if (to != from) std::memcpy(to, from, std::size_t(binding_.rows * slot.row_bytes));
    }
  }

  void mark_changes() const {
    for (const SparsePassBinding::PassOperand& slot : binding_.left) {
      if (hashes_->has(slot.value)) hashes_->mark_change(slot.value);
    }
  }

  void run_blocks(std::int64_t first, std::int64_t last, Scratch& scratch) const {
    const Scratch::Frame frame(scratch);
    blocks_.take_at_once(scratch);
    SparseBlocks::Rows rows = blocks_.take_rows(scratch), next = blocks_.take_rows(scratch);
    const auto find = [&](std::int64_t block, SparseBlocks::Rows& to) {
      if (block < last) blocks_.find(block * blocks_.rows_of_block(), blocks_.count(), to);
    };
    find(first, rows);
    for (std::int64_t block = first; block < last; ++block) {
      find(block + 1, next);
      if (block + 1 < last) blocks_.prefetch(next);
      blocks_.run(rows, scratch);
      if (hashes_) add_hashes(rows);
      scatter(rows);
      std::swap(rows, next);
    }
  }

  // Adds the hashes of rows, or their change where rows without a gradient stay as they are.
  void add_hashes(const SparseBlocks::Rows& rows) const {
    for (const std::int32_t s : step_.update.sums) {
      const Value sum = step_.sums[std::size_t(s)].result;
      if (hashes_->has(sum)) add_hash(sum, blocks_.at(sum, rows), nullptr, rows);
    }
    for (const SparsePassBinding::PassOperand& slot : binding_.left) {
      const std::byte* old = blocks_.sparse ? base(slot.value) : nullptr;
      if (hashes_->has(slot.value)) add_hash(slot.value, blocks_.at(slot.value, rows), old, rows);
    }
  }
  void add_hash(Value value, const std::byte* fresh, const std::byte* old,
                const SparseBlocks::Rows& rows) const {
    const DType dtype = plan_.graph.type(value).dtype;
    const std::int64_t width = binding_.width, bytes = width * std::int64_t(size_of(dtype));
    const HashKernel hash = kernels().hash(dtype);
    std::uint64_t sum = 0;
    for (std::int64_t i = 0; i < rows.count; ++i) {
      const std::int64_t row = rows.row[i];
      sum += hash(fresh + i * bytes, width, row * width);
      if (old) sum -= hash(old + row * bytes, width, row * width);
    }
    hashes_->add(value, sum);
  }

  void scatter(const SparseBlocks::Rows& rows) const {
    for (const SparsePassBinding::PassOperand& slot : binding_.left) {
      std::byte* to = base(slot.value);
      const std::byte* from = blocks_.at(slot.value, rows);
      const std::int64_t bytes = slot.row_bytes;
      if (!blocks_.sparse) {
        std::byte* const there = to + rows.row[0] * bytes;
        if (from != there) std::memcpy(there, from, std::size_t(rows.count * bytes));
        continue;
      }
      for (std::int64_t i = 0; i < rows.count; ++i) {
        std::memcpy(to + rows.row[i] * bytes, from + i * bytes, std::size_t(bytes));
      }
    }
  }

  const Plan& plan_;
  const SparseUpdate& step_;
  SparseUpdateBinding& binding_;
  Hashes* hashes_;  // null: there are none, or another process adds to them
  ExecutionContext& context_;
  SparseBlocks blocks_;
};

}  // namespace

void run_step(const SparseUpdateStep& step, const StepRun& run) {
  const SparseUpdate& update = run.plan.sparse_updates[step.update];
  SparseUpdater(run.plan, update, run.context.sparse_update(step.update), run.call, run.context)
      .run();
}

}  // namespace samegrad
