#include "ops/rules.h"

#include <algorithm>

namespace samegrad {
namespace {

// "a", "a and b", "a, b and c"
template <class Item>
std::string listed(int first, int last, const char* final_word, Item item) {
  std::string out;
  for (int i = first; i < last; ++i) {
    if (i > first) out += i + 1 == last ? final_word : ", ";
    out += item(i);
  }
  return out;
}

std::string names_of(DTypes dtypes) {
  std::vector<std::string> names;
  for (int i = 0; i < kDTypeCount; ++i) {
    if (dtypes & (1u << i)) names.push_back(name_of(DType(i)));
  }
  return listed(0, int(names.size()), " or ", [&](int i) { return names[std::size_t(i)]; });
}

// "operand", or its name where the row has several.
std::string role_of(const OpDef& op, int operand) {
  const bool named = operand < int(op.operands.size()) && op.operands.size() > 1;
  return named ? text("'", op.operands[std::size_t(operand)], "'") : "the operand";
}

// Each example of the result is made of the same example of the operands, on whatever axis.
Inferred by_example(const ValueType& result, Locality locality) {
  Inferred inferred{{result}, locality};
  if (result.batched()) inferred.of_rows = Placement::kRows;
  return inferred;
}

// What the operands seen so far make of one axis of a broadcast result.
struct MergedAxis {
  std::int64_t size = 1;  // kRows: examples
  ExampleAxis batch;
  bool fixed = false;  // the trace's count was looked at
};

class Broadcast {
 public:
  explicit Broadcast(const InferArgs& args) : args_(args) {}

  Inferred infer(DType dtype) {
    int rank = 0;
    for (const ValueType& type : args_.in) rank = std::max(rank, type.shape.rank());
    ValueType result{dtype, {}, {}};
    bool fixed = false;
    for (int axis = 0; axis < rank; ++axis) {
      MergedAxis merged = merge(axis - rank);
      // A second axis of examples (all pairs, say) becomes an ordinary one.
      if (merged.batch.exists() && result.batched()) fix(merged);
      if (merged.batch.exists()) {
        result.batch = merged.batch;
        result.batch.axis = axis;
      }
      result.shape.push_back(merged.size);
      fixed |= merged.fixed;
    }
    const Locality locality = locality_of(args_.in, {&result, 1});
    if (fixed) return {{result}, Locality::kWhole};
    return by_example(result, locality);
  }

 private:
  // Axis counted from the end: -1 is the last.
  MergedAxis merge(int axis_from_end) {
    MergedAxis merged;
    for (const ValueType& type : args_.in) {
      const int axis = axis_from_end + type.shape.rank();
      if (axis < 0) continue;
      MergedAxis next{type.shape[axis], {}, false};
      if (type.batched() && type.batch.axis == axis) next.batch = type.batch;
      join(merged, next);
    }
    return merged;
  }

  void join(MergedAxis& merged, const MergedAxis& next) {
    if (!next.batch.exists() && next.size == 1) return;
    if (!merged.batch.exists() && merged.size == 1) {
      const bool fixed = merged.fixed;
      merged = next;
      merged.fixed |= fixed;
    } else if (merged.batch.exists() && next.batch.exists()) {
      join_examples(merged, next);
    } else if (merged.batch.exists() || next.batch.exists()) {
      join_examples_with_size(merged, next);
    } else if (merged.size != next.size) {
      fail_sizes(merged.size, next.size);
    }
  }

  void join_examples(const MergedAxis& merged, const MergedAxis& next) {
    if (merged.batch.symbol != next.batch.symbol) {
      fail(ErrorKind::kValue, args_.op.name, "shapes ", shapes_of_operands(args_),
           " belong to different batches, whose sizes may differ at another step: take both "
           "from one dataset (Dataset.zip).");
    }
    if (merged.batch.rows_per_example != next.batch.rows_per_example) {
      fail_sizes(rows_of(merged), rows_of(next));
    }
  }

  void join_examples_with_size(MergedAxis& merged, const MergedAxis& next) {
    MergedAxis examples = merged.batch.exists() ? merged : next;
    const std::int64_t size = merged.batch.exists() ? next.size : merged.size;
    const std::int64_t rows = rows_of(examples);
    if (rows != size && rows != 1) fail_sizes(rows_of(merged), rows_of(next));
    args_.symbols[std::size_t(examples.batch.symbol)].fixed = true;
    merged = rows == size ? examples : MergedAxis{size, {}, true};
    merged.fixed = true;
  }

  std::int64_t rows_of(const MergedAxis& axis) const {
    if (!axis.batch.exists()) return axis.size;
    return args_.symbols[std::size_t(axis.batch.symbol)].traced_count * axis.batch.rows_per_example;
  }

  void fix(MergedAxis& axis) {
    args_.symbols[std::size_t(axis.batch.symbol)].fixed = true;
    axis = {rows_of(axis), {}, true};
  }

  [[noreturn]] void fail_sizes(std::int64_t a, std::int64_t b) {
    fail(ErrorKind::kValue, args_.op.name, "shapes ", shapes_of_operands(args_),
         " do not broadcast: sizes ", a, " and ", b,
         " meet on one axis, counted from the last; they must be equal or 1 (see reshape).");
  }

  const InferArgs& args_;
};

}  // namespace

std::string dtypes_of_operands(const InferArgs& args, int first, int last) {
  return listed(first, last, " and ",
                [&](int i) { return std::string(name_of(args.in[std::size_t(i)].dtype)); });
}

std::string shapes_of_operands(const InferArgs& args) {
  return listed(0, int(args.in.size()), " and ", [&](int i) { return args.shape_of(i); });
}

void check_dtype(const InferArgs& args, int operand, DTypes allowed) {
  const DType dtype = args.in[std::size_t(operand)].dtype;
  if (allowed & bit_of(dtype)) return;
  fail(ErrorKind::kType, args.op.name, role_of(args.op, operand), " must be ", names_of(allowed),
       ": got ", name_of(dtype), "; convert it with samegrad.cast.");
}

void check_same_dtype(const InferArgs& args, int first, int last) {
  for (int i = first + 1; i < last; ++i) {
    if (args.in[std::size_t(i)].dtype == args.in[std::size_t(first)].dtype) continue;
    fail(ErrorKind::kType, args.op.name, "operands must have one dtype: got ",
         dtypes_of_operands(args, first, last), "; convert one with samegrad.cast.");
  }
}

void check_min_rank(const InferArgs& args, int operand, int rank) {
  if (args.in[std::size_t(operand)].shape.rank() >= rank) return;
  fail(ErrorKind::kValue, args.op.name, role_of(args.op, operand), " must have at least ", rank,
       rank == 1 ? " axis" : " axes", ": got shape ", args.shape_of(operand),
       "; add axes with reshape.");
}

std::int64_t traced_size(const InferArgs& args, const ValueType& type, int axis) {
  if (!type.batched() || type.batch.axis != axis) return type.shape[axis];
  return args.symbols[std::size_t(type.batch.symbol)].traced_count * type.batch.rows_per_example;
}

ValueType fixed_type(const InferArgs& args, const ValueType& type) {
  ValueType result = type;
  if (!type.batched()) return result;
  result.shape[type.batch.axis] = traced_size(args, type, type.batch.axis);
  result.batch = {};
  args.symbols[std::size_t(type.batch.symbol)].fixed = true;
  return result;
}

Locality locality_of(std::span<const ValueType> in, std::span<const ValueType> out) {
  const auto elsewhere = [](const ValueType& type) { return type.batch.axis > 0; };
  const auto batched = [](const ValueType& type) { return type.batched(); };
  if (std::ranges::any_of(in, elsewhere) || !std::ranges::all_of(out, batched)) {
    return Locality::kWhole;
  }
  return std::ranges::any_of(out, elsewhere) ? Locality::kWhole : Locality::kExample;
}

Inferred one_result(const InferArgs& args, const ValueType& type) {
  return by_example(type, locality_of(args.in, {&type, 1}));
}

Inferred same_as_input(const InferArgs& args) {
  return one_result(args, args.in[0]);
}

Inferred broadcast_rule(const InferArgs& args, DType result) {
  return Broadcast(args).infer(result);
}

}  // namespace samegrad
