#include "runtime/row_update.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "base/thresholds.h"
#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "ops/attributes.h"
#include "runtime/threads.h"
#include "runtime/tree.h"
#include "tensor/tree.h"

namespace samegrad {
namespace {

// Of a replica's reduction.
KernelArgs args_of(const Plan& plan, NodeId tree, std::size_t replica, Context& context,
                   Scratch& scratch) {
  const Node& node = plan.graph.nodes[tree];
  const NodeBinding& of = context.node(tree);
  const std::span<const View> views = of.views[std::min(replica, of.views.size() - 1)];
  return {.attrs = node.attrs,
          .in = views.first(node.inputs.size()),
          .out = views.subspan(node.inputs.size()),
          .examples = of.examples[std::min(replica, of.views.size() - 1)],
          .symbol = std::max(of.symbol, 0),
          .replica_context = context.of_replica(int(replica)),
          .scratch = scratch};
}

std::size_t copies_of(const ReduceUpdate::Sum& sum, const Context& context) {
  return context.node(sum.tree).views.size();
}

// Sorts by rows; places stay in order. Two arrays of n, the numbers in the first; the result is in
// the one that is returned.
NamedRow* sort_by_rows(NamedRow* from, NamedRow* to, std::int64_t n, std::int64_t rows) {
  constexpr int kBits = 11;
  constexpr std::size_t kDigits = std::size_t(1) << kBits;
  const int bits = std::bit_width(std::uint64_t(std::max<std::int64_t>(rows - 1, 0)));
  for (int shift = 0; shift < bits; shift += kBits) {
    std::array<std::int64_t, kDigits> next{};
    const auto digit = [shift](const NamedRow& named) {
      return std::size_t(named.row >> shift) % kDigits;
    };
    for (std::int64_t i = 0; i < n; ++i) ++next[digit(from[i])];
    std::int64_t sum = 0;
    for (std::int64_t& each : next) sum += std::exchange(each, sum);
    for (std::int64_t i = 0; i < n; ++i) to[next[digit(from[i])]++] = from[i];
    std::swap(from, to);
  }
  return from;
}

class RowUpdater {
 public:
  RowUpdater(const Plan& plan, const RowUpdate& step, RowBinding& binding, Context& context)
      : plan_(plan),
        step_(step),
        binding_(binding),
        context_(context),
        row_(RowBinding::as<std::int64_t>(binding.row)),
        begin_(RowBinding::as<std::int64_t>(binding.begin)),
        place_(RowBinding::as<std::int64_t>(binding.place)) {}

  void run() {
    sparse_ = leaves_rows_alone();
    if (sparse_) keep_other_rows();
    const std::int64_t rows = sparse_ ? binding_.count : binding_.rows;
    const std::int64_t blocks = (rows + binding_.block_rows - 1) / binding_.block_rows;
    const ParallelFor& loops = parallel_loops();
    const std::int64_t work = rows * binding_.width * std::int64_t(4 * binding_.slots.size());
    if (loops.threads() == 1 || blocks < 2 || work < thresholds().parallel_tree_work) {
      return run_blocks(0, blocks, context_.main_task().scratch);
    }
    // One pointer: a function that captures more takes memory.
    const struct {
      const RowUpdater* all;
      std::int64_t blocks, count;
    } parts{this, blocks, std::min(blocks, loops.threads() * thresholds().parts_per_thread)};
    loops.run(parts.count, [&parts](std::int64_t i) {
      const Context::Lease lease(parts.all->context_);
      parts.all->run_blocks(parts.blocks * i / parts.count, parts.blocks * (i + 1) / parts.count,
                            (*lease).scratch);
    });
  }

 private:
  struct Rows {
    std::int64_t count;
    std::int64_t* row;           // which of the variable
    const std::int64_t** begin;  // the places of each, up to those of the next
    const std::int64_t** end;
  };

  std::byte* base(Value value) const { return context_.base(0, plan_.root[value]); }

  // With the numbers that this run has.
  bool leaves_rows_alone() const {
    const RowProgram& program = binding_.program;
    program.set_operands(binding_.registers, [&](std::size_t k) {
      const Value value = program.numbers[k].value;
      return KnownValue::number_at(base(value), plan_.graph.type(value).dtype);
    });
    return program.leaves_rows_alone(binding_.registers);
  }

  // Where a result does not go to the variable's memory.
  void keep_other_rows() const {
    for (std::size_t k = 0; k < binding_.left.size(); ++k) {
      const RowBinding::Slot& slot = binding_.left[k];
      std::byte* to = base(slot.value);
      const std::byte* from = base(binding_.old[k]);
      if (to != from) std::memcpy(to, from, std::size_t(binding_.rows * slot.row_bytes));
    }
  }

  void run_blocks(std::int64_t first, std::int64_t last, Scratch& scratch) const {
    const Scratch::Frame frame(scratch);
    {
      const Scratch::Frame at_once(scratch);
      scratch.take(binding_.task_bytes);
    }
    Rows rows = take_rows(scratch), next = take_rows(scratch);
    auto* memory = static_cast<std::byte*>(scratch.take(binding_.block_bytes));
    if (first < last) find_rows(first, rows);
    for (std::int64_t block = first; block < last; ++block) {
      if (block + 1 < last) find_rows(block + 1, next);
      gather(rows, memory);
      if (block + 1 < last) prefetch(next);
      for (std::size_t s = 0; s < step_.sums.size(); ++s) sum(s, rows, memory, scratch);
      for (NodeId node : step_.nodes) run_node(node, rows.count, memory, scratch);
      scatter(rows, memory);
      std::swap(rows, next);
    }
  }

  Rows take_rows(Scratch& scratch) const {
    const auto n = std::size_t(binding_.block_rows);
    const auto take = [&](std::size_t item) { return scratch.take(n * item); };
    return {0, static_cast<std::int64_t*>(take(sizeof(std::int64_t))),
            static_cast<const std::int64_t**>(take(sizeof(std::int64_t*))),
            static_cast<const std::int64_t**>(take(sizeof(std::int64_t*)))};
  }

  // Those of a block: of the named ones, or of all, most of which have no place.
  void find_rows(std::int64_t block, Rows& rows) const {
    const std::int64_t first = block * binding_.block_rows;
    const std::int64_t all = sparse_ ? binding_.count : binding_.rows;
    rows.count = std::min(binding_.block_rows, all - first);
    std::int64_t at = sparse_ ? first : std::lower_bound(row_, row_ + binding_.count, first) - row_;
    for (std::int64_t i = 0; i < rows.count; ++i) {
      rows.row[i] = sparse_ ? row_[at] : first + i;
      const bool named = at < binding_.count && row_[at] == rows.row[i];
      rows.begin[i] = place_ + begin_[at];
      if (named) ++at;
      rows.end[i] = place_ + begin_[at];
    }
  }

  void gather(const Rows& rows, std::byte* memory) const {
    for (std::size_t k = 0; k < binding_.program.whole.size(); ++k) {
      const RowBinding::Slot& slot = binding_.slots[step_.sums.size() + k];
      const std::byte* from = base(slot.value);
      const std::int64_t bytes = slot.row_bytes;
      for (std::int64_t i = 0; i < rows.count; ++i) {
        std::memcpy(memory + slot.offset + i * bytes, from + rows.row[i] * bytes,
                    std::size_t(bytes));
      }
    }
  }

  // Named rows lie anywhere in memory, where no processor looks for them.
  void prefetch(const Rows& rows) const {
    constexpr std::int64_t kLine = 64, kMost = 1 << 10;
    for (std::size_t k = 0; k < binding_.program.whole.size(); ++k) {
      const RowBinding::Slot& slot = binding_.slots[step_.sums.size() + k];
      const std::byte* from = base(slot.value);
      for (std::int64_t i = 0; i < rows.count; ++i) {
        const std::byte* row = from + rows.row[i] * slot.row_bytes;
        for (std::int64_t at = 0; at < std::min(slot.row_bytes, kMost); at += kLine) {
          __builtin_prefetch(row + at);
        }
      }
    }
  }

  void scatter(const Rows& rows, const std::byte* memory) const {
    for (const RowBinding::Slot& slot : binding_.left) {
      std::byte* to = base(slot.value);
      const std::int64_t bytes = slot.row_bytes;
      for (std::int64_t i = 0; i < rows.count; ++i) {
        std::memcpy(to + rows.row[i] * bytes, memory + slot.offset + i * bytes, std::size_t(bytes));
      }
    }
  }

  // A sum of the rows of a block over all examples of all replicas.
  void sum(std::size_t s, const Rows& rows, std::byte* memory, Scratch& scratch) const {
    const RowBinding::Slot& slot = binding_.slots[s];
    const std::size_t copies = copies_of(step_.sums[s], context_);
    const std::int64_t* first = binding_.first.data() + first_of(s);
    std::byte* to = memory + slot.offset;
    for (std::int64_t i = 0; i < rows.count; ++i, to += slot.row_bytes) {
      const std::int64_t* begin = rows.begin[i];
      const std::int64_t* end = rows.end[i];
      if (step_.sums.size() > 1) {
        begin = std::lower_bound(begin, end, first[0]);
        end = std::lower_bound(begin, end, first[copies]);
      }
      if (begin == end) {
        std::memset(to, 0, std::size_t(slot.row_bytes));
      } else {
        sum_replicas({s, 0, copies}, begin, end, to, scratch);
      }
    }
    const NodeId all_reduce = step_.sums[s].all_reduce;
    if (!all_reduce.exists() || !is_mean(plan_.graph.nodes[all_reduce])) return;
    divide(memory + slot.offset, rows.count * binding_.width, binding_.divisors[s]);
  }

  std::size_t first_of(std::size_t s) const {
    std::size_t at = 0;
    for (std::size_t k = 0; k < s; ++k) at += copies_of(step_.sums[k], context_);
    return at;
  }

  struct Replicas {
    std::size_t sum, begin, end;
  };
  // Replicas without a place have +0, and no sum is -0: they change nothing.
  void sum_replicas(const Replicas& of, const std::int64_t* begin, const std::int64_t* end,
                    std::byte* to, Scratch& scratch) const {
    const std::int64_t* first = binding_.first.data() + first_of(of.sum);
    if (of.end - of.begin == 1) {
      const NodeId tree = step_.sums[of.sum].tree;
      const KernelArgs args = args_of(plan_, tree, of.begin, context_, scratch);
      const OpDef& op = *plan_.graph.nodes[tree].op;
      return op.rows.sum({args, first[of.begin], begin, end, to});
    }
    const std::size_t middle = of.begin + std::size_t(tree_split(std::int64_t(of.end - of.begin)));
    const std::int64_t* split = std::lower_bound(begin, end, first[middle]);
    if (split == end) return sum_replicas({of.sum, of.begin, middle}, begin, end, to, scratch);
    if (split == begin) return sum_replicas({of.sum, middle, of.end}, begin, end, to, scratch);
    const Scratch::Frame frame(scratch);
    const DType dtype = dtype_of(of.sum);
    auto* right =
        static_cast<std::byte*>(scratch.take(std::size_t(binding_.slots[of.sum].row_bytes)));
    sum_replicas({of.sum, of.begin, middle}, begin, split, to, scratch);
    sum_replicas({of.sum, middle, of.end}, split, end, right, scratch);
    kernels().binary(BinaryFn::k_add, dtype)(to, right, to, binding_.width, 1, 1);
  }

  DType dtype_of(std::size_t s) const { return plan_.graph.type(step_.sums[s].result).dtype; }

  void run_node(NodeId index, std::int64_t rows, std::byte* memory, Scratch& scratch) const {
    const Scratch::Frame frame(scratch);
    const Node& node = plan_.graph.nodes[index];
    const std::vector<View>& whole = context_.node(index).views[0];
    auto* views = static_cast<View*>(scratch.take(whole.size() * sizeof(View)));
    std::uninitialized_copy(whole.begin(), whole.end(), views);
    const std::size_t inputs = node.inputs.size();
    for (std::size_t k = 0; k < whole.size(); ++k) {
      const Value value = k < inputs ? node.inputs[k] : node.outputs[k - inputs];
      const auto slot = std::ranges::find(binding_.slots, value, &RowBinding::Slot::value);
      if (slot == binding_.slots.end()) continue;  // a number
      views[k].data = memory + slot->offset;
      views[k].shape[0] = rows;
    }
    const std::span<const View> all(views, whole.size());
    node.op->kernel({.attrs = node.attrs,
                     .in = all.first(inputs),
                     .out = all.subspan(inputs),
                     .replica_context = context_.of_replica(0),
                     .scratch = scratch});
  }

  const Plan& plan_;
  const RowUpdate& step_;
  RowBinding& binding_;
  Context& context_;
  const std::int64_t *row_, *begin_, *place_;
  bool sparse_ = true;
};

// The slots of a block, and the scratch that they and the sums take.
void lay_out_block(const Plan& plan, const RowUpdate& update, Context& context,
                   RowBinding& binding) {
  const auto add = [&](Value value) {
    const std::int64_t row_bytes =
        binding.width * std::int64_t(size_of(plan.graph.type(value).dtype));
    binding.slots.push_back({value, row_bytes, std::int64_t(binding.block_bytes)});
    binding.block_bytes += std::size_t(aligned(binding.block_rows * row_bytes));
  };
  for (const ReduceUpdate::Sum& sum : update.sums) add(sum.result);
  for (Value value : binding.program.whole) add(value);
  std::size_t views = 0;
  for (NodeId n : update.nodes) {
    const Node& node = plan.graph.nodes[n];
    for (Value output : node.outputs) add(output);
    views = std::max(views, (node.inputs.size() + node.outputs.size()) * sizeof(View));
  }
  std::size_t most = 0;
  Scratch none;
  for (std::size_t s = 0; s < update.sums.size(); ++s) {
    const ReduceUpdate::Sum& sum = update.sums[s];
    const OpDef& op = *plan.graph.nodes[sum.tree].op;
    const std::size_t copies = copies_of(sum, context);
    const std::int64_t levels = tree_levels(std::int64_t(copies), 1);
    for (std::size_t r = 0; r < copies; ++r) {
      const std::size_t bytes = op.rows.sum_bytes(args_of(plan, sum.tree, r, context, none));
      most = std::max(most, bytes + std::size_t(levels * aligned(binding.slots[s].row_bytes)));
    }
  }
  const std::size_t lists = 6 * std::size_t(aligned(binding.block_rows * 8));
  // The kernels of the update take small pieces.
  binding.task_bytes = binding.block_bytes + lists + most + views + Scratch::kBlockBytes;
}

}  // namespace

RowBinding bind_row_update(const Plan& plan, const RowUpdate& update, Context& context) {
  RowBinding binding(plan.graph, update);
  binding.registers.resize(std::size_t(binding.program.known.registers()));
  const Shape& shape = plan.graph.type(update.sums[0].result).shape;
  binding.rows = shape[0];
  binding.width = shape.size(1, shape.rank());
  binding.block_rows = std::max<std::int64_t>(
      1, std::min(binding.rows, 2 * thresholds().fused_block / binding.width));
  for (const ReduceUpdate::Sum& sum : update.sums) {
    const OpDef& op = *plan.graph.nodes[sum.tree].op;
    for (const std::vector<View>& views : context.node(sum.tree).views) {
      binding.first.push_back(binding.places);
      binding.places += op.rows.places(views);
    }
    const DType dtype = plan.graph.type(sum.result).dtype;
    binding.divisors.push_back(Array::number(dtype, double(context.replicas())));
  }
  binding.first.push_back(binding.places);
  lay_out_block(plan, update, context, binding);
  for (const RowUpdate::Result& result : update.results) {
    binding.left.push_back(
        *std::ranges::find(binding.slots, result.value, &RowBinding::Slot::value));
    binding.old.push_back(*std::ranges::find_if(binding.program.whole, [&](Value value) {
      const ValueInfo& info = plan.graph.values[value];
      return info.source == Source::kVariable && info.slot() == result.variable;
    }));
  }
  return binding;
}

void name_rows(const Plan& plan, RowUpdateId update, Context& context) {
  const RowUpdate& step = plan.row_updates[update];
  RowBinding& binding = context.row_update(update);
  auto* named = RowBinding::as<NamedRow>(binding.named);
  std::size_t part = 0;
  for (const ReduceUpdate::Sum& sum : step.sums) {
    const OpDef& op = *plan.graph.nodes[sum.tree].op;
    for (std::size_t r = 0; r < copies_of(sum, context); ++r, ++part) {
      const std::int64_t first = binding.first[part];
      Scratch& scratch = context.main_task().scratch;
      op.rows.name(args_of(plan, sum.tree, r, context, scratch), first, named + first);
    }
  }
  const std::int64_t n = binding.places;
  const NamedRow* sorted = sort_by_rows(named, named + n, n, binding.rows);
  auto* row = RowBinding::as<std::int64_t>(binding.row);
  auto* begin = RowBinding::as<std::int64_t>(binding.begin);
  auto* place = RowBinding::as<std::int64_t>(binding.place);
  binding.count = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    place[i] = sorted[i].place;
    if (i > 0 && sorted[i].row == sorted[i - 1].row) continue;
    row[binding.count] = sorted[i].row;
    begin[binding.count++] = i;
  }
  begin[binding.count] = n;
}

void run_row_update(const Plan& plan, RowUpdateId update, Context& context) {
  const RowUpdate& step = plan.row_updates[update];
  RowUpdater(plan, step, context.row_update(update), context).run();
}

}  // namespace samegrad
