#include "runtime/steps/sparse_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "base/prefetch.h"
#include "base/rounding.h"
#include "base/thresholds.h"
#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "runtime/check_kernel.h"
#include "runtime/step_run.h"
#include "runtime/steps/sparse_exchange.h"
#include "runtime/threads.h"
#include "runtime/tree.h"

namespace samegrad {
namespace {

// The kernel arguments of a replica's reduction.
KernelArgs args_of(const Plan& plan, NodeId tree, std::size_t replica, ExecutionContext& context,
                   Scratch& scratch) {
  const Node& node = plan.graph.nodes[tree];
  const NodeBinding& of = context.node(tree);
  const std::span<const View> views = of.views[std::min(replica, of.views.size() - 1)];
  return {.attrs = node.attrs,
          .in = views.first(node.inputs.size()),
          .out = views.subspan(node.inputs.size()),
          .examples = of.examples[std::min(replica, of.views.size() - 1)],
          .symbol = std::max(of.symbol, 0),
          .replica_context = of.joint ? context.of_joint() : context.of_replica(int(replica)),
          .scratch = scratch};
}

std::size_t copies_of(const ExampleSum& sum, const ExecutionContext& context) {
  return context.node(sum.tree).views.size();
}

// Sorts by rows; places stay in order. Two arrays of n, the numbers in the first; the result is in
// the one that is returned.
TouchedRow* sort_by_rows(TouchedRow* from, TouchedRow* to, std::int64_t n, std::int64_t rows) {
  constexpr int kBits = 11;
  constexpr std::size_t kDigits = std::size_t(1) << kBits;
  const auto bits = int(std::bit_width(std::uint64_t(std::max<std::int64_t>(rows - 1, 0))));
  for (int shift = 0; shift < bits; shift += kBits) {
    std::array<std::int64_t, kDigits> next{};
    const auto digit = [shift](const TouchedRow& named) {
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

// The number of the first share of a sum among those of all.
std::size_t first_of(const SparseUpdate& step, std::size_t s, const ExecutionContext& context) {
  std::size_t at = 0;
  for (std::size_t k = 0; k < s; ++k) at += copies_of(step.sums[k], context);
  return at;
}

// The slots of a block, and the scratch that they and the sums take.
void lay_out_block(const Plan& plan, const SparseUpdate& update, ExecutionContext& context,
                   const SparseUpdateBinding& binding, SparsePassBinding& pass) {
  const auto add = [&](Value value) {
    const std::int64_t row_bytes =
        binding.width * std::int64_t(size_of(plan.graph.type(value).dtype));
    pass.slots.push_back({value, row_bytes, std::int64_t(pass.block_bytes)});
    pass.block_bytes += std::size_t(aligned(binding.most_rows * row_bytes));
  };
  for (const std::int32_t s : pass.pass.sums) add(update.sums[std::size_t(s)].result);
  for (Value value : pass.program.whole) add(value);
  std::size_t views = 0;
  for (NodeId n : pass.pass.nodes) {
    const Node& node = plan.graph.nodes[n];
    for (Value output : node.outputs) add(output);
    views = std::max(views, (node.inputs.size() + node.outputs.size()) * sizeof(View));
  }
  std::size_t most = 0;
  Scratch none;
  for (std::size_t k = 0; k < pass.pass.sums.size(); ++k) {
    const ExampleSum& sum = update.sums[std::size_t(pass.pass.sums[k])];
    const OpDef& op = *plan.graph.nodes[sum.tree].op;
    const std::size_t copies = copies_of(sum, context);
    const std::int64_t levels = kReplicaTree.levels(std::int64_t(copies));
    for (std::size_t r = 0; r < copies; ++r) {
      const std::size_t bytes = op.rows.sum_bytes(args_of(plan, sum.tree, r, context, none));
      most = std::max(most, bytes + std::size_t(levels * aligned(pass.slots[k].row_bytes)));
    }
  }
  const std::size_t lists = 6 * std::size_t(aligned(binding.most_rows * 8));
  // The kernels of the update take small pieces.
  pass.task_bytes = 2 * pass.block_bytes + lists + most + views + Scratch::kBlockBytes;
}

}  // namespace

SparseBlocks::SparseBlocks(const Plan& plan, const SparseUpdate& step, SparseUpdateBinding& binding,
                           SparsePassBinding& pass, ExecutionContext& context)
    : plan_(plan),
      step_(step),
      binding_(binding),
      pass_(pass),
      context_(context),
      row_(SparseUpdateBinding::as<std::int64_t>(binding.named.row)),
      begin_(SparseUpdateBinding::as<std::int64_t>(binding.named.begin)),
      place_(SparseUpdateBinding::as<std::int64_t>(binding.named.place)) {}

std::span<LatticeValue> SparseBlocks::registers() const {
  const SparseProgram& program = pass_.program;
  program.set_operands(pass_.registers, [&](std::size_t k) {
    const Value value = program.numbers[k].value;
    return LatticeValue::number_at(base(value), plan_.graph.type(value).dtype);
  });
  program.known.run(pass_.registers);
  return pass_.registers;
}

std::int64_t SparseBlocks::position_of(std::int64_t row) const {
  return sparse ? std::lower_bound(row_, row_ + binding_.named.count, row) - row_
                : std::min(row, binding_.rows);
}

void SparseBlocks::take_at_once(Scratch& scratch) const {
  const Scratch::Frame frame(scratch);
  scratch.take(pass_.task_bytes);
}

SparseBlocks::Rows SparseBlocks::take_rows(Scratch& scratch) const {
  const auto n = std::size_t(binding_.most_rows);
  const auto take = [&](std::size_t item) { return scratch.take(n * item); };
  return {0,
          0,
          static_cast<std::int64_t*>(take(sizeof(std::int64_t))),
          static_cast<const std::int64_t**>(take(sizeof(std::int64_t*))),
          static_cast<const std::int64_t**>(take(sizeof(std::int64_t*))),
          static_cast<std::byte*>(scratch.take(pass_.block_bytes))};
}

// In a pass over all rows, most rows have no places.
void SparseBlocks::find(std::int64_t position, std::int64_t end, Rows& rows) const {
  rows.count = std::min(rows_of_block(), end - position);
  std::int64_t at =
      sparse ? position : std::lower_bound(row_, row_ + binding_.named.count, position) - row_;
  rows.named = at;
  for (std::int64_t i = 0; i < rows.count; ++i) {
    rows.row[i] = row_at(position + i);
    const bool named = at < binding_.named.count && row_[at] == rows.row[i];
    rows.begin[i] = place_ + begin_[at];
    if (named) ++at;
    rows.end[i] = place_ + begin_[at];
  }
}

// All rows are one after the other in the operands, and named ones in sums that are stored.
std::byte* SparseBlocks::slot_at(const SparsePassBinding::PassOperand& slot,
                                 const Rows& rows) const {
  const std::span<const SparsePassBinding::PassOperand> whole = whole_slots();
  const bool is_whole = &slot >= whole.data() && &slot < whole.data() + whole.size();
  if (!sparse && (is_whole || slot.direct)) return base(slot.value) + rows.row[0] * slot.row_bytes;
  const auto k = std::size_t(&slot - pass_.slots.data());
  const bool is_summed = sparse && k < sum_slots().size() && !binding_.named.summed_at.empty();
  return is_summed ? summed_at(std::size_t(pass_.pass.sums[k]), rows.named)
                   : rows.memory + slot.offset;
}

// The rows of a result may replace those of operands that no node reads afterwards.
bool SparseBlocks::is_direct(const SparsePassBinding::PassOperand& slot) const {
  const auto is_replaced = [&](Value value) {
    return std::ranges::any_of(whole_slots(), [&](const SparsePassBinding::PassOperand& operand) {
      return operand.value == value && base(value) == base(slot.value);
    });
  };
  bool made = false;
  for (NodeId n : pass_.pass.nodes) {
    const Node& node = plan_.graph.nodes[n];
    const auto result = std::ranges::find(node.outputs, slot.value) - node.outputs.begin();
    const bool makes = result < std::ssize(node.outputs);
    for (std::size_t k = 0; k < node.inputs.size() && (made || makes); ++k) {
      if (!is_replaced(node.inputs[k])) continue;
      if (made) return false;
      const auto allows = node.op->may_overwrite;
      if (!node.op->has(kElementwise)) return false;
      if (allows && !allows(node, k, std::size_t(result))) return false;
    }
    made = made || makes;
  }
  return made;
}

void SparseBlocks::find_direct_results() {
  const std::size_t first = sum_slots().size() + whole_slots().size();
  for (SparsePassBinding::PassOperand& slot : std::span(pass_.slots).subspan(first)) {
    const bool left =
        std::ranges::find(step_.results, slot.value, &SparseUpdate::UpdatedVariable::value) !=
        step_.results.end();
    slot.direct = left && is_direct(slot);
  }
}

void SparseBlocks::gather(const Rows& rows) const {
  for (const SparsePassBinding::PassOperand& slot : whole_slots()) {
    const std::byte* from = base(slot.value);
    const std::int64_t bytes = slot.row_bytes;
    for (std::int64_t i = 0; i < rows.count; ++i) {
      std::memcpy(rows.memory + slot.offset + i * bytes, from + rows.row[i] * bytes,
                  std::size_t(bytes));
    }
  }
}

// Named rows are anywhere in memory, where no processor looks for them.
void SparseBlocks::prefetch(const Rows& rows) const {
  if (!sparse) return;
  for (const SparsePassBinding::PassOperand& slot : whole_slots()) {
    const std::byte* from = base(slot.value);
    for (std::int64_t i = 0; i < rows.count; ++i) {
      prefetch_bytes(from + rows.row[i] * slot.row_bytes, slot.row_bytes, 1 << 10);
    }
  }
}

void SparseBlocks::run(const Rows& rows, Scratch& scratch) const {
  if (sparse) gather(rows);
  for (std::size_t k = 0; k < pass_.pass.sums.size(); ++k) {
    const auto s = std::size_t(pass_.pass.sums[k]);
    std::byte* to = rows.memory + pass_.slots[k].offset;
    if (binding_.named.summed_at.empty()) {
      sum(s, rows, to, scratch);
    } else if (!sparse) {
      take_sums(s, rows, to);
    }
  }
  for (NodeId node : pass_.pass.nodes) run_node(node, rows, scratch);
}

void SparseBlocks::store_sums() const {
  const std::int64_t blocks = divide_up(binding_.named.count, binding_.block_rows);
  const auto store = [&](std::int64_t first, std::int64_t last, Scratch& scratch) {
    const Scratch::Frame frame(scratch);
    take_at_once(scratch);
    Rows rows = take_rows(scratch);
    for (std::int64_t block = first; block < last; ++block) {
      find(block * binding_.block_rows, binding_.named.count, rows);
      for (std::size_t s = 0; s < step_.sums.size(); ++s) {
        sum(s, rows, summed_at(s, rows.named), scratch);
      }
    }
  };
  const ParallelFor& loops = parallel_loops();
  if (loops.threads() == 1 || work_of_sums() < thresholds().parallel_tree_work)
    return store(0, blocks, context_.main_task().scratch);
  const std::int64_t parts = std::min(blocks, loops.threads() * thresholds().parts_per_thread);
  loops.run(parts, [&](std::int64_t i) {
    const ExecutionContext::TaskLease lease(context_);
    store(blocks * i / parts, blocks * (i + 1) / parts, (*lease).scratch);
  });
}

std::int64_t SparseBlocks::row_bytes(std::size_t s) const {
  return binding_.width * std::int64_t(size_of(plan_.graph.type(step_.sums[s].result).dtype));
}

// Copies sums to their rows in a pass over all rows; rows without places get zeros.
void SparseBlocks::take_sums(std::size_t s, const Rows& rows, std::byte* to) const {
  const std::int64_t bytes = row_bytes(s);
  const std::byte* from = summed_at(s, rows.named);
  for (std::int64_t i = 0; i < rows.count; ++i, to += bytes) {
    if (rows.begin[i] == rows.end[i]) {
      std::memset(to, 0, std::size_t(bytes));
    } else {
      std::memcpy(to, from, std::size_t(bytes));
      from += bytes;
    }
  }
}

// A sum of the rows of a block over all examples of all replicas.
void SparseBlocks::sum(std::size_t s, const Rows& rows, std::byte* to, Scratch& scratch) const {
  const std::size_t copies = copies_of(step_.sums[s], context_);
  const std::int64_t* first = binding_.first.data() + first_of(step_, s, context_);
  const std::int64_t bytes = row_bytes(s);
  std::byte* const sums = to;
  const TreeRange whole{
      0, is_list(s) ? context_.node(step_.sums[s].tree).examples[0] : std::int64_t(copies)};
  for (std::int64_t i = 0; i < rows.count; ++i, to += bytes) {
    const std::int64_t* begin = rows.begin[i];
    const std::int64_t* end = rows.end[i];
    if (step_.sums.size() > 1 && begin != end) {
      begin = std::lower_bound(begin, end, first[0]);
      end = std::lower_bound(begin, end, first[copies]);
    }
    if (begin == end) {
      std::memset(to, 0, std::size_t(bytes));
    } else {
      sum_places(s, whole, {begin, end}, to, scratch);
    }
  }
  const NodeId all_reduce = step_.sums[s].all_reduce;
  if (!all_reduce.exists() || !is_mean(plan_.graph.nodes[all_reduce])) return;
  divide(sums, rows.count * binding_.width, binding_.divisors[s]);
}

// Replicas without a place have +0, and no sum is -0: they change nothing.
void SparseBlocks::sum_replicas(std::size_t s, const NamedRange& replicas, std::byte* to,
                                Scratch& scratch) const {
  const Scratch::Frame frame(scratch);
  const std::int64_t* first = binding_.first.data() + first_of(step_, s, context_);
  const NodeId tree = step_.sums[s].tree;
  const std::int64_t bytes = aligned(row_bytes(s));
  const std::int64_t others = kReplicaTree.levels(replicas.range.size()) - 1;
  auto* memory = static_cast<std::byte*>(scratch.take(std::size_t(others * bytes)));
  const auto at = [&](int level) { return level == 0 ? to : memory + (level - 1) * bytes; };
  const auto split = [first](const NamedRange& of, std::int64_t replica) {
    return std::lower_bound(of.begin, of.end, first[replica]);
  };
  const BinaryKernel add =
      kernels().binary(BinaryFn::k_add, plan_.graph.type(step_.sums[s].result).dtype);
  walk_tree(
      NamedHalving<decltype(split)>{kReplicaTree, split}, replicas,
      [&](const NamedRange& of, int level) {
        const auto replica = std::size_t(of.range.begin);
        const KernelArgs args = args_of(plan_, tree, replica, context_, scratch);
        plan_.graph.nodes[tree].op->rows.sum({args, first[replica], of.begin, of.end, at(level)});
      },
      [&](int level) { add(at(level), at(level + 1), at(level), binding_.width, 1, 1); });
}

// Each example of a list has as many places.
SparseBlocks::Places SparseBlocks::places_of(std::size_t s, TreeRange of,
                                             std::int64_t named) const {
  const std::int64_t* first = binding_.first.data() + first_of(step_, s, context_);
  const std::int64_t *begin = place_ + begin_[named], *end = place_ + begin_[named + 1];
  TreeRange places{};
  if (is_list(s)) {
    const std::int64_t examples = context_.node(step_.sums[s].tree).examples[0];
    const std::int64_t each = examples ? (first[1] - first[0]) / examples : 0;
    places = {first[0] + of.begin * each, first[0] + of.end * each};
  } else {
    places = {first[of.begin], first[of.end]};
  }
  begin = std::lower_bound(begin, end, places.begin);
  return {begin, std::lower_bound(begin, end, places.end)};
}

bool SparseBlocks::is_named(std::size_t s, TreeRange of, std::int64_t named) const {
  const Places places = places_of(s, of, named);
  return places.begin != places.end;
}

void SparseBlocks::sum_named(std::size_t s, TreeRange of, std::int64_t named, std::byte* to,
                             Scratch& scratch) const {
  sum_places(s, of, places_of(s, of, named), to, scratch);
}

void SparseBlocks::sum_places(std::size_t s, TreeRange of, const Places& places, std::byte* to,
                              Scratch& scratch) const {
  if (!is_list(s)) return sum_replicas(s, {of, places.begin, places.end}, to, scratch);
  const NodeId tree = step_.sums[s].tree;
  const KernelArgs args = args_of(plan_, tree, 0, context_, scratch);
  const std::int64_t first = binding_.first[first_of(step_, s, context_)];
  plan_.graph.nodes[tree].op->rows.sum(
      {args, first, places.begin, places.end, to, of.begin, of.end});
}

void SparseBlocks::run_node(NodeId index, const Rows& rows, Scratch& scratch) const {
  const Scratch::Frame frame(scratch);
  const Node& node = plan_.graph.nodes[index];
  const std::vector<View>& whole = context_.node(index).views[0];
  auto* views = static_cast<View*>(scratch.take(whole.size() * sizeof(View)));
  std::uninitialized_copy(whole.begin(), whole.end(), views);
  const std::size_t inputs = node.inputs.size();
  for (std::size_t k = 0; k < whole.size(); ++k) {
    const Value value = k < inputs ? node.inputs[k] : node.outputs[k - inputs];
    const auto slot = std::ranges::find(pass_.slots, value, &SparsePassBinding::PassOperand::value);
    if (slot == pass_.slots.end()) continue;  // a number
    views[k].data = slot_at(*slot, rows);
    views[k].shape[0] = rows.count;
  }
  const std::span<const View> all(views, whole.size());
  const KernelArgs args{.attrs = node.attrs,
                        .in = all.first(inputs),
                        .out = all.subspan(inputs),
                        .replica_context = context_.of_replica(0),
                        .scratch = scratch,
                        .far_operands = !sparse};
  call_kernel(node, args, [&] { node.op->kernel(args); });
}

namespace {

// Reserves memory from the first step on: other sparse updates may name their rows in between.
void reserve_places(const Plan& plan, ExecutionContext& context, SparseUpdateBinding& binding) {
  const auto reserve = [&](std::int64_t count, std::size_t item) {
    return context.reserve(size_product(count, std::int64_t(item)), StepId(0),
                           plan.steps.next_id() - 1);
  };
  const std::int64_t n = binding.places;
  binding.reserved.sorted = reserve(2 * n, sizeof(TouchedRow));
  binding.reserved.row = reserve(n, sizeof(std::int64_t));
  binding.reserved.begin = reserve(n + 1, sizeof(std::int64_t));
  binding.reserved.place = reserve(n, sizeof(std::int64_t));
  binding.reserved.summed = reserve(binding.summed_bytes, 1);
}

}  // namespace

SparseUpdateBinding bind_sparse_update(const Plan& plan, const SparseUpdate& update,
                                       ExecutionContext& context) {
  SparseUpdateBinding binding(plan.graph, update);
  const Shape& shape = plan.graph.type(update.sums[0].result).shape;
  binding.rows = shape[0];
  binding.width = shape.size(1, shape.rank());
  binding.block_rows = std::max<std::int64_t>(
      1, std::min(binding.rows, 2 * thresholds().fused_block / binding.width));
  // A block of touched rows is fetched while the one before is updated, other rows come in order.
  binding.most_rows = std::min(binding.rows, 8 * binding.block_rows);
  for (const ExampleSum& sum : update.sums) {
    const OpDef& op = *plan.graph.nodes[sum.tree].op;
    for (const std::vector<View>& views : context.node(sum.tree).views) {
      binding.first.push_back(binding.places);
      binding.places += op.rows.places(views);
    }
    const DType dtype = plan.graph.type(sum.result).dtype;
    binding.divisors.push_back(Array::number(dtype, double(context.replicas_of_world())));
  }
  binding.first.push_back(binding.places);
  if (!update.reductions.empty()) {
    for (const ExampleSum& sum : update.sums) {
      const std::int64_t item = std::int64_t(size_of(plan.graph.type(sum.result).dtype));
      binding.own.summed_at.push_back(binding.summed_bytes);
      binding.summed_bytes +=
          aligned(std::min(binding.places, binding.rows) * binding.width * item);
    }
  }
  lay_out_block(plan, update, context, binding, binding.update);
  for (SparsePassBinding& pass : binding.reductions) {
    lay_out_block(plan, update, context, binding, pass);
  }
  for (const SparseUpdate::UpdatedVariable& result : update.results) {
    binding.left.push_back(*std::ranges::find(binding.update.slots, result.value,
                                              &SparsePassBinding::PassOperand::value));
    const std::vector<Value>& whole = binding.update.program.whole;
    const auto old = std::ranges::find_if(whole, [&](Value value) {
      const ValueInfo& info = plan.graph.values[value];
      return info.source == Source::kVariable && info.slot() == result.variable;
    });
    binding.old.push_back(old == whole.end() ? kNoValue : *old);
  }
  reserve_places(plan, context, binding);
  return binding;
}

void run_step(const SparseRowsStep& sparse, const StepRun& run) {
  const Plan& plan = run.plan;
  ExecutionContext& context = run.context;
  const SparseUpdate& step = plan.sparse_updates[sparse.update];
  SparseUpdateBinding& binding = context.sparse_update(sparse.update);
  auto* named = SparseUpdateBinding::as<TouchedRow>(context.at(binding.reserved.sorted));
  binding.own.row = context.at(binding.reserved.row);
  binding.own.begin = context.at(binding.reserved.begin);
  binding.own.place = context.at(binding.reserved.place);
  binding.own.summed = context.at(binding.reserved.summed);
  std::size_t part = 0;
  for (const ExampleSum& sum : step.sums) {
    const OpDef& op = *plan.graph.nodes[sum.tree].op;
    for (std::size_t r = 0; r < copies_of(sum, context); ++r, ++part) {
      const std::int64_t first = binding.first[part];
      Scratch& scratch = context.main_task().scratch;
      op.rows.name(args_of(plan, sum.tree, r, context, scratch), first, named + first);
    }
  }
  const std::int64_t n = binding.places;
  const TouchedRow* sorted = sort_by_rows(named, named + n, n, binding.rows);
  auto* row = SparseUpdateBinding::as<std::int64_t>(binding.own.row);
  auto* begin = SparseUpdateBinding::as<std::int64_t>(binding.own.begin);
  auto* place = SparseUpdateBinding::as<std::int64_t>(binding.own.place);
  std::int64_t& count = binding.own.count = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    place[i] = sorted[i].place;
    if (i > 0 && sorted[i].row == sorted[i - 1].row) continue;
    row[count] = sorted[i].row;
    begin[count++] = i;
  }
  begin[count] = n;
  binding.named = binding.own;
  if (run.call.communicator) return exchange_rows(plan, step, binding, run.call, context);
  if (binding.named.summed_at.empty()) return;
  SparseBlocks(plan, step, binding, binding.update, context).store_sums();
}

}  // namespace samegrad
