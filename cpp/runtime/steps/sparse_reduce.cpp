// Numbers that sparse gradients are reduced to, as for a norm: the blocks of the reduction order
// that have a named row, and no others.
#include "runtime/step_run.h"

#include <array>
#include <cstring>

#include "base/rounding.h"
#include "base/thresholds.h"
#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "runtime/steps/sparse_rows.h"
#include "runtime/threads.h"

namespace samegrad {
namespace {

using Number = std::array<std::byte, kMaxElementBytes>;

// True if the reduction of any count of the number is the number itself.
bool joins_to_itself(ReduceFn fn, const LatticeValue& known, DType dtype) {
  if (known.kind != LatticeValue::kNumber) return false;
  if (fn == ReduceFn::kSum) return known == LatticeValue::number_of(0.0, dtype);
  if (fn == ReduceFn::kProd) return known == LatticeValue::number_of(1.0, dtype);
  return true;
}

class SparseReducer {
 public:
  SparseReducer(const Plan& plan, const SparseUpdate& step,
                const SparseUpdate::Reduction& reduction, SparseUpdateBinding& binding,
                SparsePassBinding& pass, ExecutionContext& context)
      : binding_(binding),
        context_(context),
        operand_(plan.graph.nodes[reduction.node].inputs[0]),
        fn_(ReduceFn(plan.graph.nodes[reduction.node].op->block.fn)),
        dtype_(plan.graph.type(operand_).dtype),
        item_(std::int64_t(size_of(dtype_))),
        elements_(binding.rows * binding.width),
        result_(context.base(0, plan.root[plan.graph.nodes[reduction.node].outputs[0]])),
        blocks_(plan, step, binding, pass, context) {
    const LatticeValue& known = blocks_.registers()[pass.program.register_of(operand_)];
    blocks_.sparse = joins_to_itself(fn_, known, dtype_);
    other_ = known.number;
  }

  void run() const {
    const TreeRange all{0, elements_};
    const int levels = subtree_levels();
    if (levels == 0) {
      const Number number = reduce(all, context_.main_task().scratch);
      std::memcpy(result_, number.data(), std::size_t(item_));
      return;
    }
    std::array<Number, std::size_t(1) << kMaxLevels> parts;
    const std::int64_t count = std::int64_t(1) << levels;
    parallel_loops().run(count, [&](std::int64_t i) {
      const ExecutionContext::TaskLease lease(context_);
      parts[std::size_t(i)] = reduce(kRowTree.subtree(all, levels, i), (*lease).scratch);
    });
    join_levels(count, levels, [&](std::int64_t left, std::int64_t right) {
      join(parts[std::size_t(left)], parts[std::size_t(right)]);
    });
    std::memcpy(result_, parts[0].data(), std::size_t(item_));
  }

 private:
  static constexpr int kMaxLevels = 6;

  // The levels of subtrees that threads take; named rows are often close to each other.
  int subtree_levels() const {
    if (parallel_loops().threads() == 1) return 0;
    if (blocks_.work() < thresholds().parallel_tree_work) return 0;
    int levels = 0;
    while (levels < kMaxLevels && kRowTree.units(elements_) >> (levels + 1) > 0) ++levels;
    return levels;
  }

  // The position of a task in the rows.
  struct SparseCursor {
    SparseBlocks::Rows rows;
    std::int64_t position, end;  // of the row that is next
    std::int64_t first = 0;      // of the rows
    std::byte* leaf = nullptr;   // memory for one
    Scratch& scratch;
  };

  Number reduce(TreeRange elements, Scratch& scratch) const {
    const Scratch::Frame frame(scratch);
    blocks_.take_at_once(scratch);
    SparseCursor cursor{blocks_.take_rows(scratch),
                        blocks_.position_of(elements.begin / binding_.width),
                        blocks_.position_of(divide_up(elements.end, binding_.width)),
                        0,
                        nullptr,
                        scratch};
    cursor.rows.count = 0;
    cursor.leaf = static_cast<std::byte*>(scratch.take(std::size_t(kRowBlock * item_)));
    // A range without a named row has a number without a leaf.
    const auto is_other = [&](TreeRange of) {
      return cursor.position == cursor.end ||
             blocks_.row_at(cursor.position) * binding_.width >= of.end;
    };
    struct NamedTree : Halving<kRowBlock> {
      const decltype(is_other)& is_named_by_none;
      bool is_leaf(TreeRange of) const { return is_named_by_none(of) || Halving::is_leaf(of); }
    };
    return reduce_tree(
        NamedTree{{}, is_other}, elements,
        [&](TreeRange of) { return is_other(of) ? other_ : reduce_leaf(of, cursor); },
        [&](Number left, const Number& right) {
          join(left, right);
          return left;
        });
  }

  Number reduce_leaf(TreeRange of, SparseCursor& cursor) const {
    const auto [begin, end] = of;
    if (blocks_.sparse) fill(cursor.leaf, end - begin);
    while (cursor.position < cursor.end) {
      const std::int64_t row = blocks_.row_at(cursor.position) * binding_.width;
      if (row >= end) break;
      load(cursor);
      const std::int64_t from = std::max(row, begin), to = std::min(row + binding_.width, end);
      const std::byte* numbers = blocks_.at(operand_, cursor.rows) +
                                 (cursor.position - cursor.first) * binding_.width * item_;
      std::memcpy(cursor.leaf + (from - begin) * item_, numbers + (from - row) * item_,
                  std::size_t((to - from) * item_));
      if (row + binding_.width > end) break;  // goes on in the next leaf
      ++cursor.position;
    }
    Number number;
    kernels().row_reduce(fn_, dtype_)(cursor.leaf, number.data(), 1, end - begin);
    return number;
  }

  // The block that the next row is in.
  void load(SparseCursor& cursor) const {
    if (cursor.position < cursor.first + cursor.rows.count) return;
    cursor.first = cursor.position;
    blocks_.find(cursor.position, cursor.end, cursor.rows);
    blocks_.run(cursor.rows, cursor.scratch);
  }

  void fill(std::byte* to, std::int64_t n) const {
    const bool zeros = std::ranges::all_of(other_, [](std::byte b) { return b == std::byte(0); });
    if (zeros) {
      std::memset(to, 0, std::size_t(n * item_));
      return;
    }
    for (std::int64_t i = 0; i < n; ++i) {
      std::memcpy(to + i * item_, other_.data(), std::size_t(item_));
    }
  }

  void join(Number& left, const Number& right) const {
    kernels().column_reduce(fn_, dtype_)(right.data(), left.data(), 1, 1, 1, true);
  }

  const SparseUpdateBinding& binding_;
  ExecutionContext& context_;
  Value operand_;
  ReduceFn fn_;
  DType dtype_;
  std::int64_t item_, elements_;
  std::byte* result_;
  SparseBlocks blocks_;
  Number other_;  // the operand in rows without gradient, and the result of any of them
};

}  // namespace

void run_step(const SparseReduceStep& step, const StepRun& run) {
  const SparseUpdate& update = run.plan.sparse_updates[step.update];
  const SparseUpdate::Reduction& reduction = update.reduction_of(step.nodes.back());
  SparseUpdateBinding& binding = run.context.sparse_update(step.update);
  SparsePassBinding& pass = binding.reductions[std::size_t(&reduction - update.reductions.data())];
  SparseReducer(run.plan, update, reduction, binding, pass, run.context).run();
}

}  // namespace samegrad
