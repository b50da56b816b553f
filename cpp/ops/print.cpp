// Values shown while a step runs.
#include "ops/print.h"

#include <sstream>

#include "ops/attributes.h"
#include "ops/rules.h"

namespace samegrad {
namespace {

void print_element(std::ostringstream& out, const View& x, std::int64_t i) {
  visit(x.dtype, [&]<class T>() {
    const T number = x.as<const T>()[i];
    if constexpr (sizeof(T) == 1) {
      out << int(number);  // no letter
    } else {
      out << number;
    }
  });
}

// [1 2 3 ... 8 9 10], axis by axis; `begin` counts elements.
void print_axis(std::ostringstream& out, const View& x, int axis, std::int64_t begin,
                std::int64_t edge) {
  if (axis == x.shape.rank()) return print_element(out, x, begin);
  const std::int64_t stride = x.shape.size(axis + 1, x.shape.rank());
  const std::int64_t size = x.shape[axis];
  const bool last = axis + 1 == x.shape.rank();
  out << '[';
  for (std::int64_t i = 0; i < size; ++i) {
    if (i > 0) out << (last ? " " : "\n" + std::string(std::size_t(axis) + 1, ' '));
    if (edge >= 0 && i == edge && size > 2 * edge) {
      out << "...";
      i = size - edge - 1;
      continue;
    }
    print_axis(out, x, axis + 1, begin + i * stride, edge);
  }
  out << ']';
}

Inferred print_rule(const InferArgs&) {
  return {{{DType::kBool, {}, {}}}, Locality::kFullBatch};
}

void print_kernel(const KernelArgs& args) {
  const std::string& text = args.attrs.as<PrintAttrs>().text;
  std::ostringstream out;
  const bool for_output = text.starts_with(kForStandardOutput);
  if (for_output) out << kForStandardOutput;
  if (args.replica_context.replicas > 1) out << "[replica " << args.replica_context.replica << "] ";
  std::size_t at = for_output ? 1 : 0;
  for (const View& x : args.in) {
    const std::size_t place = text.find('\0', at);
    out << text.substr(at, place - at);
    at = place + 1;
    print_axis(out, x, 0, 0, args.attrs.as<PrintAttrs>().edge);
  }
  out << text.substr(at);
  if (args.replica_context.messages) args.replica_context.messages->add(out.str());
  *args.out[0].as<bool>() = true;
}

}  // namespace

std::vector<OpDef> print_ops() {
  OpDef op;
  op.name = "print";
  op.doc = "Shows values when the step is over.";
  op.min_arity = 0;
  op.max_arity = -1;
  op.operands = {"xs"};
  op.attrs = schema_of<PrintAttrs>();
  op.traits = kSideEffect | kNoGradient | kReplicaDependent | kBackward;
  op.infer = print_rule;
  op.kernel = print_kernel;
  return {op};
}

}  // namespace samegrad
