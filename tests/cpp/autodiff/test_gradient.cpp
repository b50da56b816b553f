// The reverse walk over rows of one number, whose derivatives are known by heart.
#include "autodiff/gradient.h"

#include <cmath>
#include <map>

#include "base/error.h"
#include "check.h"
#include "ops/attributes.h"

namespace samegrad::testing {
namespace {

Inferred same_as_first(const InferArgs& args) {
  return {{args.in[0]}};
}

OpDef row(const std::string& name, int arity, Values (*vjp)(const VjpArgs&),
          std::uint32_t traits = kElementwise) {
  OpDef op;
  op.name = name;
  op.min_arity = op.max_arity = arity;
  op.traits = traits;
  op.infer = same_as_first;
  op.vjp = vjp;
  return op;
}

void register_fake_rows() {
  OpRegistry& registry = OpRegistry::instance();
  if (registry.find("mul")) return;
  registry.add(row("add", 2, [](const VjpArgs& a) { return Values{a.ct[0], a.ct[0]}; }));
  registry.add(row("mul", 2, [](const VjpArgs& a) {
    return Values{a.b("mul", {a.ct[0], a.in[1]}), a.b("mul", {a.ct[0], a.in[0]})};
  }));
  registry.add(row("neg", 1, [](const VjpArgs& a) { return Values{a.b("neg", {a.ct[0]})}; }));
  registry.add(row("cos", 1, [](const VjpArgs& a) {
    return Values{a.b("neg", {a.b("mul", {a.ct[0], a.b("sin", {a.in[0]})})})};
  }));
  registry.add(row("sin", 1, [](const VjpArgs& a) {
    return Values{a.b("mul", {a.ct[0], a.b("cos", {a.in[0]})})};
  }));
  registry.add(row("stop", 1, nullptr, kNoGradient));
  registry.add(row("opaque", 1, nullptr, 0));
  // A fused row: its derivative is that of the plain rows.
  OpDef cube = row("cube", 1, nullptr, 0);
  cube.decompose = [](const VjpArgs& a) {
    return Values{a.b("mul", {a.b("mul", {a.in[0], a.in[0]}), a.in[0]})};
  };
  registry.add(std::move(cube));
  // Only the type of its operand is read.
  OpDef ones = row("full_like", 1, nullptr, kNoGradient);
  ones.type_only = 1;
  ones.attrs = schema_of<FullAttrs>();
  registry.add(std::move(ones));
}

class Program {
 public:
  Program() : b(graph) { register_fake_rows(); }

  Value argument(double number) {
    numbers_.push_back(number);
    return graph.add_argument({DType::kFloat64, {}, {}});
  }
  Values derive(const Values& targets, const Values& sources, const Values& seeds = {}) {
    return gradient(b, targets, seeds, sources, [](NodeId) { return true; });
  }
  double run(Value value) const {
    CHECK(value != kNoValue);
    const ValueInfo& info = graph.values[value];
    if (info.source == Source::kArgument) return numbers_[info.argument()];
    const Node& node = graph.nodes[info.node()];
    const std::string& op = node.op->name;
    if (op == "full_like") return node.attrs.as<FullAttrs>().value.as<double>();
    const double x = run(node.inputs[0]);
    if (op == "add") return x + run(node.inputs[1]);
    if (op == "mul") return x * run(node.inputs[1]);
    if (op == "neg") return -x;
    if (op == "sin") return std::sin(x);
    if (op == "cos") return std::cos(x);
    if (op == "cube") return x * x * x;
    return x;
  }

  Graph graph;
  Builder b;

 private:
  std::vector<double> numbers_;
};

void near(double found, double expected) {
  CHECK(std::abs(found - expected) < 1e-12, found, " should be ", expected);
}

TEST("derivatives of a product, to third order") {
  Program p;
  const Value x = p.argument(0.7);
  const Value y = p.b("mul", {p.b("sin", {x}), x});  // x sin x
  const Value first = p.derive({y}, {x})[0];
  const Value second = p.derive({first}, {x})[0];
  const Value third = p.derive({second}, {x})[0];
  near(p.run(first), std::sin(0.7) + 0.7 * std::cos(0.7));
  near(p.run(second), 2 * std::cos(0.7) - 0.7 * std::sin(0.7));
  near(p.run(third), -3 * std::sin(0.7) - 0.7 * std::cos(0.7));
}

TEST("all uses of a value are added") {
  Program p;
  const Value x = p.argument(3);
  Value sum = p.b("mul", {x, x});
  for (int i = 0; i < 4; ++i) sum = p.b("add", {sum, x});
  near(p.run(p.derive({sum}, {x})[0]), 10);
}

TEST("several targets are added, and each may have a weight") {
  Program p;
  const Value x = p.argument(2);
  const Value y = p.b("mul", {x, x}), z = p.b("neg", {x});
  near(p.run(p.derive({y, z}, {x})[0]), 3);
  near(p.run(p.derive({y, y}, {x})[0]), 8);
  near(p.run(p.derive({y, z}, {x}, {p.argument(10), p.argument(5)})[0]), 35);
  near(p.run(p.derive({y, z}, {x}, {kNoValue, p.argument(5)})[0]), -5);
}

TEST("a target that is its own source has derivative one") {
  Program p;
  const Value x = p.argument(2);
  near(p.run(p.derive({x}, {x})[0]), 1);
  near(p.run(p.derive({x, p.b("mul", {x, x})}, {x})[0]), 5);
}

TEST("nothing flows where nothing connects") {
  Program p;
  const Value x = p.argument(2), y = p.argument(3);
  const Value z = p.b("mul", {x, p.b("stop", {y})});
  const Values found = p.derive({z}, {x, y});
  near(p.run(found[0]), 3);
  CHECK_EQ(found[1], kNoValue);
}

TEST("a node that was not recorded lets nothing through") {
  Program p;
  const Value x = p.argument(2);
  const Value y = p.b("mul", {x, x});
  const Value z = p.b("mul", {y, x});
  const Values found =
      gradient(p.b, Values{z}, {}, Values{x}, [](NodeId n) { return n != NodeId(0); });
  near(p.run(found[0]), 4);
}

TEST("a fused row has the derivatives of its plain rows") {
  Program p;
  const Value x = p.argument(2);
  const Value first = p.derive({p.b("cube", {x})}, {x})[0];
  near(p.run(first), 12);
  near(p.run(p.derive({first}, {x})[0]), 12);
}

TEST("a row without a derivative is an error where one is asked for") {
  Program p;
  const Value x = p.argument(2);
  const Value y = p.b("opaque", {x});
  CHECK_THROWS(p.derive({y}, {x}), Error);
  CHECK_EQ(p.derive({p.argument(1)}, {x})[0], kNoValue);
}

}  // namespace
}  // namespace samegrad::testing
