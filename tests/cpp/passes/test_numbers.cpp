// What passes do with numbers.
#include <limits>

#include "base/scalar.h"
#include "check.h"
#include "ir/builder.h"
#include "ops/attributes.h"
#include "ops/registry.h"
#include "passes/passes.h"

namespace samegrad::testing {
namespace {

struct NumberProgram {
  NumberProgram() { register_all_ops(); }
  Value argument() { return graph.add_argument({DType::kFloat64, Shape({3}), {}}); }
  Graph graph;
  Builder b{graph};
};

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST("a number is what was written, as a double or as 64 bits") {
  const std::int64_t big = (std::int64_t(1) << 53) + 1;
  CHECK_EQ(Scalar(big).as<std::int64_t>(), big);
  CHECK_EQ(Scalar(1e300).as<std::int32_t>(), std::numeric_limits<std::int32_t>::max());
  CHECK_EQ(Scalar(-1.5).as<std::uint8_t>(), 0);
  CHECK_EQ(Scalar(kNaN).as<std::int64_t>(), 0);
  CHECK_EQ(Scalar(9223372036854775808.0).as<std::int64_t>(),
           std::numeric_limits<std::int64_t>::max());
  CHECK(Scalar(kNaN) == Scalar(kNaN) && !(Scalar(0.0) == Scalar(-0.0)));
  CHECK(!(Scalar(1000000.25) == Scalar(1000000.0)));
  CHECK_EQ(to_string(Attrs(FullAttrs{1000000.25})), "value=1000000.25");
  CHECK_EQ(to_string(Attrs(FullAttrs{0.1})), "value=0.1");
}

TEST("nodes become one if their numbers have the same bits") {
  const double values[] = {1000000.25, 1000000.0, 0.0, -0.0, kNaN};
  for (const double u : values) {
    for (const double v : values) {
      NumberProgram p;
      const Value x = p.argument();
      const auto pad = [&](double value) {
        return p.b("pad", {x}, PadAttrs{.paddings = {1, 0}, .value = Scalar(value)});
      };
      p.graph.outputs = {pad(u), pad(v)};
      const Graph one = eliminate_dead(eliminate_common(p.graph));
      const bool same = Scalar(u) == Scalar(v);
      CHECK_EQ(one.nodes.size(), same ? 1u : 2u);
      CHECK(!same || one.nodes[NodeId(0)].attrs.hash() == p.graph.nodes[NodeId(1)].attrs.hash());
    }
  }
}

TEST("what would raise stays in the graph: it may be in a branch that never runs") {
  NumberProgram p;
  const Value one = p.b.number(DType::kInt32, 1), zero = p.b.number(DType::kInt32, 0);
  p.graph.outputs = {p.b("floor_div", {one, zero}), p.b("floor_div", {zero, one})};
  const Graph folded = fold_constants(p.graph);
  CHECK_EQ(folded.nodes.size(), 1u);
  CHECK(may_raise(folded, folded.nodes[NodeId(0)]));
}

TEST("only integers make a division that may raise, and it is not fused") {
  NumberProgram p;
  const Value x = p.argument();
  const Value n = p.graph.add_argument({DType::kInt64, Shape({3}), {}});
  p.graph.outputs = {p.b("add", {p.b("floor_div", {x, x}), x}),
                     p.b("add", {p.b("floor_div", {n, n}), n})};
  CHECK(!may_raise(p.graph, p.graph.nodes[NodeId(0)]) &&
        may_raise(p.graph, p.graph.nodes[NodeId(2)]));
  int raising = 0;
  const Graph fused = fuse_elementwise(p.graph);
  for (const Node& node : fused.nodes) raising += node.op->name == "floor_div";
  CHECK_EQ(raising, 1);
}

TEST("an operand beyond the 32nd is read as the last bit of the mask says") {
  register_all_ops();
  const OpDef& joined = OpRegistry::instance().get("concat_grad");
  CHECK(joined.reads(0) && !joined.reads(1) && !joined.reads(31) && !joined.reads(100));
  const OpDef& concat = OpRegistry::instance().get("concat");
  CHECK(concat.reads(0) && concat.reads(31) && concat.reads(64));
}

}  // namespace
}  // namespace samegrad::testing
