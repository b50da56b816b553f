#include "runtime/layout.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "plan/cost.h"
#include "plan/memory.h"

namespace samegrad {
namespace {

// The live range of a value in a tile, and its offset.
struct Lifetime {
  std::int64_t offset = -1;
  std::int32_t first = -1, last = -1;  // positions in the loop
};

Operand make_operand(const Plan& plan, Value value) {
  const ValueType& type = plan.graph.type(value);
  Operand operand;
  operand.root = plan.root[value];
  operand.inner = plan.inner_value[value];
  if (type.batched()) {
    operand.rows = type.batch.rows_per_example;
    operand.stride = example_bytes(type);
  }
  return operand;
}

class TileAssignment {
 public:
  TileAssignment(const Plan& plan, const LoopStep& loop) : plan_(plan), loop_(loop) {}

  LoopLayout run() {
    collect_nodes();
    layout_.tile_examples = loop_.tile_examples;
    find_lifetimes();
    place_tiles();
    return std::move(layout_);
  }

 private:
  void collect_nodes() {
    for (NodeId index : loop_.nodes) {
      const Node& node = plan_.graph.nodes[index];
      LoopNode code;
      code.node = &node;
      code.index = index;
      code.inputs = std::int32_t(node.inputs.size());
      code.prepacked_slot = plan_.prepacked_slot[index];
      code.skip = node.op->has(kAliases);
      code.first_view = layout_.views.size();
      for (Value value : node.inputs) add_operand(code, value);
      for (Value value : node.outputs) add_operand(code, value);
      for (std::int32_t k = 0; k < code.inputs; ++k) {
        code.operands[std::size_t(k)].type_only = !node.op->reads(std::size_t(k));
      }
      if (node.locality == Locality::kBatchReduction) add_tree(code);
      layout_.work += work_of_example(plan_.graph, node);
      layout_.nodes.push_back(std::move(code));
    }
  }

  void add_operand(LoopNode& code, Value value) {
    const ValueType& type = plan_.graph.type(value);
    code.operands.push_back(make_operand(plan_, value));
    layout_.views.push_back({nullptr, type.shape, type.dtype, type.batched() ? 0 : -1,
                             std::max<std::int64_t>(code.operands.back().rows, 1)});
  }

  void add_tree(LoopNode& code) {
    const Node& node = *code.node;
    code.operands.back().type_only = true;
    code.tree = std::int32_t(layout_.trees.size());
    std::vector<View> in;
    for (Value value : node.inputs) in.push_back(view_of_example(plan_.graph.type(value)));
    const View result = view_of_example(plan_.graph.type(node.outputs[0]));
    layout_.trees.emplace_back(node.op->tree, node.attrs, in, result);
  }

  void find_lifetimes() {
    lifetimes_.resize(plan_.graph.values.size());
    for (std::size_t p = 0; p < layout_.nodes.size(); ++p) {
      for (const Operand& operand : layout_.nodes[p].operands) {
        const Value root = operand.root;
        if (plan_.storage[root] != Storage::kTile || operand.type_only) continue;
        Lifetime& life = lifetimes_[root];
        if (life.first < 0) life.first = std::int32_t(p);
        life.last = std::int32_t(p);
      }
    }
    // All values that an inner loop touches are alive from its first node on. Its nodes run again
    // for the next example.
    for (const LoopStep::Inner& inner : loop_.inner) {
      for (Lifetime& life : lifetimes_) {
        if (life.first < 0 || life.last < inner.begin || life.first >= inner.end) continue;
        life.first = std::min(life.first, inner.begin);
      }
    }
  }

  std::int64_t bytes_of(Value root, std::int64_t examples) const {
    const bool inner = plan_.inner_value[root];
    return aligned(example_bytes(plan_.graph.type(root)) * (inner ? 1 : examples));
  }

  void place_tiles() {
    std::vector<Interval> intervals;
    for (Value v : lifetimes_.ids()) {
      const Lifetime& life = lifetimes_[v];
      if (life.first < 0) continue;
      intervals.push_back({bytes_of(v, layout_.tile_examples), life.first, life.last});
    }
    const Packing packing = pack(intervals);
    layout_.tile_bytes = packing.bytes;
    auto offset = packing.offsets.begin();
    for (Lifetime& life : lifetimes_) {
      if (life.first >= 0) life.offset = *offset++;
    }
    for (LoopNode& code : layout_.nodes) {
      for (Operand& operand : code.operands) operand.tile_offset = lifetimes_[operand.root].offset;
    }
  }

  const Plan& plan_;
  const LoopStep& loop_;
  LoopLayout layout_;
  PerValue<Lifetime> lifetimes_;
};

// Goes through the nodes as a task does, and keeps which value each line of the tile holds.
class TileVerifier {
 public:
  TileVerifier(const Plan& plan, const LoopStep& loop, const LoopLayout& layout)
      : plan_(plan),
        loop_(loop),
        layout_(layout),
        owners_(std::size_t(layout.tile_bytes / kLine), kNoValue) {}

  void run() {
    auto inner = loop_.inner.begin();
    for (std::size_t p = 0; p < layout_.nodes.size();) {
      if (inner == loop_.inner.end() || std::size_t(inner->begin) != p) {
        step(layout_.nodes[p++]);
        continue;
      }
      for (int example = 0; example < 2; ++example) {
        for (std::int32_t q = inner->begin; q < inner->end; ++q) {
          step(layout_.nodes[std::size_t(q)]);
        }
      }
      p = std::size_t(inner->end);
      ++inner;
    }
  }

 private:
  static constexpr std::int64_t kLine = aligned(1);

  void step(const LoopNode& code) {
    if (code.skip) return;
    const auto results = code.operands.begin() + code.inputs;
    std::for_each(code.operands.begin(), results, [&](const Operand& o) { check(code, o); });
    std::for_each(results, code.operands.end(), [&](const Operand& o) { fill(o); });
    // Results are not on operands of the node, nor on each other.
    for (const Operand& operand : code.operands) check(code, operand);
  }
  std::span<Value> lines_of(const Operand& operand) {
    if (operand.type_only || operand.tile_offset < 0) return {};
    const std::int64_t examples = operand.inner ? 1 : layout_.tile_examples;
    const std::int64_t bytes = aligned(example_bytes(plan_.graph.type(operand.root)) * examples);
    SG_CHECK_VALUE(operand.tile_offset + bytes <= layout_.tile_bytes, "plan", "the tile holds %",
                   operand.root, ": it ends at byte ", operand.tile_offset + bytes, " of ",
                   layout_.tile_bytes, ".");
    return std::span(owners_).subspan(std::size_t(operand.tile_offset / kLine),
                                      std::size_t(bytes / kLine));
  }
  void fill(const Operand& operand) { std::ranges::fill(lines_of(operand), operand.root); }
  void check(const LoopNode& code, const Operand& operand) {
    for (const Value owner : lines_of(operand)) {
      SG_CHECK_VALUE(owner == operand.root, "plan",
                     "values of a tile do not overlap: ", code.node->op->name, " (node ",
                     code.index, ") finds %", owner, " in place of %", operand.root, ".");
    }
  }

  const Plan& plan_;
  const LoopStep& loop_;
  const LoopLayout& layout_;
  std::vector<Value> owners_;
};

}  // namespace

View view_of(const ValueType& type, const Shape& shape, void* data) {
  return {data, shape, type.dtype, type.batch.axis, type.batch.rows_per_example};
}

View view_of_example(ValueType type, void* data) {
  if (type.batched()) type.shape[type.batch.axis] = type.batch.rows_per_example;
  return view_of(type, type.shape, data);
}

LoopLayout lay_out(const Plan& plan, const LoopStep& loop) {
  LoopLayout layout = TileAssignment(plan, loop).run();
  if (verifies_programs()) verify(plan, loop, layout);
  return layout;
}

void verify(const Plan& plan, const LoopStep& loop, const LoopLayout& layout) {
  TileVerifier(plan, loop, layout).run();
}

}  // namespace samegrad
