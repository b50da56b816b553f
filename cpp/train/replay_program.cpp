#include "train/replay_program.h"

#include <algorithm>

#include "base/error.h"
#include "ir/regions.h"
#include "ops/as_type.h"
#include "passes/replay.h"

namespace samegrad {
namespace {

constexpr const char* kWho = "saved_model";

class ProgramReplay {
 public:
  ProgramReplay(GraphTrace& trace, const Graph& program,
                const std::vector<std::shared_ptr<Variable>>& variables)
      : trace_(trace),
        program_(program),
        variables_(variables),
        replay_(program, trace),
        known_(program.symbols.size(), false) {}

  std::vector<Tensor> run(const std::vector<Tensor>& arguments) {
    SG_CHECK_VALUE(arguments.size() == program_.arguments.size(), kWho, "the function takes ",
                   program_.arguments.size(), " tensors: got ", arguments.size(), ".");
    SG_CHECK_VALUE(variables_.size() == program_.variables.size(), kWho, "the function uses ",
                   program_.variables.size(), " variables: got ", variables_.size(), ".");
    Values given;
    for (const Tensor& argument : arguments) given.push_back(trace_.lift(argument));
    for (const ValueInfo& info : program_.values) {
      if (info.source == Source::kArgument) fit(info.argument(), info.type, given[info.argument()]);
    }
    check_sizes();
    enter(given);
    const std::int64_t first = trace_.draws().ordinal;
    replay_.set_first_draw(first);
    replay_.run();
    trace_.draws().ordinal = first + count_draws(program_);
    write();
    std::vector<Tensor> results;
    for (Value output : program_.outputs) results.push_back(trace_.tensor(replay_(output)));
    return results;
  }

 private:
  Symbols& symbols() { return trace_.graph().symbols; }

  // Takes the sizes of an argument for those of the program.
  void fit(std::size_t index, const ValueType& wanted, Value value) {
    const ValueType given = trace_.type(value);
    SG_CHECK_TYPE(given.dtype == wanted.dtype, kWho, "argument ", index, " must be ",
                  name_of(wanted.dtype), ": got ", name_of(given.dtype), "; cast it.");
    SG_CHECK_VALUE(given.shape.rank() == wanted.shape.rank(), kWho, "argument ", index,
                   " must have ", wanted.shape.rank(), " axes: got ", to_string(given.shape),
                   "; reshape it.");
    for (int axis = 0; axis < wanted.shape.rank(); ++axis) {
      const Size size = size_of(symbols(), given, axis);
      if (axis == wanted.batch.axis && wanted.batched()) {
        const auto examples = size.over(wanted.batch.rows_per_example);
        SG_CHECK_VALUE(examples.has_value(), kWho, "argument ", index, " must have ",
                       wanted.batch.rows_per_example, " rows for each example: got ",
                       to_string(given.shape), ".");
        take(wanted.batch.symbol, *examples, index, axis);
      } else if (is_symbolic(wanted.shape[axis])) {
        take(int(wanted.shape[axis] - kSymbols), size, index, axis);
      } else {
        check_equal(size, wanted.shape[axis], index, axis);
      }
    }
  }

  void take(int symbol, const Size& size, std::size_t argument, int axis) {
    if (known_[std::size_t(symbol)]) {
      return check_equal(size, replay_.size(symbol), argument, axis);
    }
    known_[std::size_t(symbol)] = true;
    replay_.set_size(symbol, size);
  }

  void check_equal(const Size& got, const Size& wanted, std::size_t argument, int axis) {
    const bool equal = decide(symbols(), got - wanted, [](std::int64_t n) { return n == 0; });
    SG_CHECK_VALUE(equal, kWho, "the size of axis ", axis, " of argument ", argument,
                   " must be the one that the function was saved with",
                   wanted.number() ? text(", ", *wanted.number()) : "",
                   ": got another one; save the function with that axis open, as None.");
  }

  // Guards of the program must be true of these sizes.
  void check_sizes() {
    for (std::size_t s = 0; s < program_.symbols.size(); ++s) {
      const Symbol& symbol = program_.symbols[s];
      if (!symbol.fixed) continue;
      const Size size = replay_.size(int(s));
      SG_CHECK_VALUE(
          bound_size(symbols(), size) == symbol.traced_count, kWho,
          "the function looked at a size and was saved for ", symbol.traced_count,
          " only: got another one; save it again, or do not ask for the size in Python.");
    }
    for (const LengthGuard& guard : program_.symbols.guards) {
      const Size size = guard.size.with_sizes([this](int part) { return replay_.size(part); });
      SG_CHECK_VALUE(decide(symbols(), size, guard.holds) == guard.outcome, kWho,
                     "the function was saved for other lengths, as it asks for them in Python",
                     guard.location.empty() ? "" : text(" (", guard.location, ")"),
                     "; save it for these lengths.");
    }
  }

  void enter(const Values& given) {
    for (Value v : program_.values.ids()) {
      const ValueInfo& info = program_.values[v];
      if (info.source == Source::kNode) continue;
      replay_.set_value(v, source(info, given));
    }
  }

  Value source(const ValueInfo& info, const Values& given) {
    switch (info.source) {
      case Source::kArgument:
        return as_type(trace_, given[info.argument()], replay_.type(info.type));
      case Source::kVariable:
        return read(info);
      default:
        return trace_.lift(make_tensor(program_.constants[info.constant()]));
    }
  }

  Value read(const ValueInfo& info) {
    const std::shared_ptr<Variable>& variable = variables_[info.slot().index()];
    SG_CHECK_VALUE(variable->dtype() == info.type.dtype && variable->shape() == info.type.shape,
                   kWho, "variable '", variable->name(), "' must be ", to_string(info.type),
                   ": got ", name_of(variable->dtype()), " ", to_string(variable->shape()), ".");
    return trace_.read(variable);
  }

  void write() {
    for (const StateWrite& write : program_.writes) {
      trace_.write(variables_[write.variable.index()], replay_(write.value));
    }
    for (const StateWrite& read : program_.rereads) {
      trace_.variables().add_read(*variables_[read.variable.index()], replay_(read.value));
    }
  }

  GraphTrace& trace_;
  const Graph& program_;
  const std::vector<std::shared_ptr<Variable>>& variables_;
  Replay replay_;
  std::vector<bool> known_;
};

}  // namespace

std::vector<Tensor> replay_program(GraphTrace& trace, const Graph& program,
                                   const std::vector<Tensor>& arguments,
                                   const std::vector<std::shared_ptr<Variable>>& variables) {
  return ProgramReplay(trace, program, variables).run(arguments);
}

std::int64_t count_draws(const Graph& program) {
  std::int64_t count = 0;
  walk_nodes(program, [&](const Graph&, const Node& node) {
    if (const auto ordinal = ordinal_of(node.attrs)) count = std::max(count, *ordinal + 1);
  });
  return count;
}

}  // namespace samegrad
