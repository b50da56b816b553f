#include "ir/op_def.h"

#include <algorithm>
#include <initializer_list>

#include "base/error.h"

namespace samegrad {
namespace {

// Members of a group are all given or all absent.
void check_group(const OpDef& op, std::string_view group, std::initializer_list<bool> members) {
  const bool first = *members.begin();
  const bool whole = std::ranges::all_of(members, [&](bool given) { return given == first; });
  SG_CHECK_VALUE(whole, "op table", "'", op.name, "' has some members of '", group,
                 "' without the others.");
}

void check_groups(const OpDef& op) {
  check_group(op, "parts", {op.parts.count != nullptr, op.parts.run != nullptr});
  check_group(op, "parts' state", {op.parts.state_bytes != nullptr, op.parts.finish != nullptr});
  const TreeKernel& tree = op.tree;
  check_group(op, "tree",
              {tree.state != nullptr, tree.open != nullptr, tree.leaf != nullptr,
               tree.combine != nullptr, tree.neutral != nullptr});
  const SparseTree& rows = op.rows;
  check_group(op, "rows",
              {rows.applies != nullptr, rows.places != nullptr, rows.name != nullptr,
               rows.sum != nullptr, rows.sum_bytes != nullptr});
  const Prepacking& packs = op.prepacking;
  check_group(
      op, "prepacking",
      {packs.operand >= 0, packs.bytes != nullptr, packs.columns != nullptr, packs.run != nullptr});
  check_group(op, "grouped", {op.grouped.run != nullptr, op.grouped.allows != nullptr});
  SG_CHECK_VALUE(op.prepacking || !op.grouped, "op table", "'", op.name,
                 "' has a grouped product, but no prepacked operand.");
  SG_CHECK_VALUE(op.exchange || !op.exchange.first_only, "op table", "'", op.name,
                 "' says which replicas an exchange reads, but has no exchange.");
}

}  // namespace

std::string InferArgs::shape_of(int operand) const {
  const ValueType& type = in[std::size_t(operand)];
  return to_string(concrete_shape(type, traced_counts(symbols)[0]));
}

OpRegistry& OpRegistry::instance() {
  static OpRegistry registry;
  return registry;
}

void OpRegistry::add(OpDef def) {
  check_groups(def);
  ops_.push_back(std::make_unique<OpDef>(std::move(def)));
}

const OpDef* OpRegistry::find(std::string_view name) const {
  for (const auto& op : ops_) {
    if (op->name == name) return op.get();
  }
  return nullptr;
}

const OpDef& OpRegistry::get(std::string_view name) const {
  const OpDef* op = find(name);
  if (!op) fail(ErrorKind::kValue, "op table", "there is no op named '", name, "'.");
  return *op;
}

std::vector<const OpDef*> OpRegistry::all() const {
  std::vector<const OpDef*> ops;
  for (const auto& op : ops_) ops.push_back(op.get());
  return ops;
}

bool computes(const OpDef& op) {
  return !op.has(Trait(kAnyType | kAliases | kControl | kRandomOp)) &&
         op.block.kind != BlockFn::kSelect && op.block.kind != BlockFn::kCast;
}

double flops_of(const OpDef& op, const CostArgs& args) {
  if (op.has(kAliases)) return 0;
  if (op.flops) return op.flops(args);
  std::int64_t most = 0;
  for (const View& result : args.out) most = std::max(most, result.size());
  if (op.has(kAnyType)) return double(most);  // moved elements, however large the operand is
  for (std::size_t k = 0; k < args.in.size(); ++k) {
    if (op.reads(k)) most = std::max(most, args.in[k].size());
  }
  return double(most);
}

bool may_raise(const Graph& graph, const Node& node) {
  return node.op->has(kMayRaise) &&
         !(node.op->has(kElementwise) && is_floating(graph.type(node.inputs[0]).dtype));
}

bool holds(const Node& node, std::uint32_t traits) {
  return (node.op->traits & traits) != 0 ||
         std::ranges::any_of(node.regions,
                             [&](const GraphPtr& region) { return contains(*region, traits); });
}

bool contains(const Graph& graph, std::uint32_t traits) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const Node& node) { return holds(node, traits); });
}

}  // namespace samegrad
