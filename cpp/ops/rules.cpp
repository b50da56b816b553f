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

// "operand", or its name where the row has several.
std::string role_of(const OpDef& op, int operand) {
  const bool named = operand < int(op.operands.size()) && op.operands.size() > 1;
  return named ? text("'", op.operands[std::size_t(operand)], "'") : "the operand";
}

// One axis of a broadcast result, merged from the operands seen so far.
struct MergedAxis {
  std::int64_t size = 1;  // kBatchDim: examples
  ExampleAxis batch = {};
  bool mixed = false;   // examples of this replica met rows that are none
  bool shared = false;  // examples of all replicas did
};

class Broadcast {
 public:
  explicit Broadcast(const InferArgs& args) : args_(args) {}

  Inferred infer(DType dtype) {
    int rank = 0;
    for (const ValueType& type : args_.in) rank = std::max(rank, type.shape.rank());
    ValueType result{dtype, {}, {}};
    bool mixed = false, shared = false;
    for (int axis = 0; axis < rank; ++axis) {
      MergedAxis merged = merge(axis - rank);
      // A second axis of examples (all pairs, say) becomes an ordinary one.
      if (merged.batch.exists() && result.batched()) make_ordinary(merged);
      if (merged.batch.exists()) {
        result.batch = merged.batch;
        result.batch.axis = axis;
      }
      result.shape.push_back(merged.size);
      mixed |= merged.mixed;
      shared |= merged.shared;
    }
    if (mixed || (shared && !result.batched())) return {{result}, Locality::kFullBatch};
    return shared ? Inferred{{result}, Locality::kInnerExample} : one_result(args_, result);
  }

 private:
  // Axis counted from the end: -1 is the last.
  MergedAxis merge(int axis_from_end) {
    MergedAxis merged;
    for (const ValueType& type : args_.in) {
      const int axis = axis_from_end + type.shape.rank();
      if (axis < 0) continue;
      MergedAxis next{type.shape[axis]};
      if (type.batched() && type.batch.axis == axis) next.batch = type.batch;
      join(merged, next);
    }
    return merged;
  }

  void join(MergedAxis& merged, const MergedAxis& next) {
    if (!next.batch.exists() && next.size == 1) return;
    const bool mixed = merged.mixed, shared = merged.shared;
    if (!merged.batch.exists() && merged.size == 1) {
      merged = next;
    } else if (merged.batch.exists() && next.batch.exists()) {
      join_examples(merged, next);
    } else if (merged.batch.exists() || next.batch.exists()) {
      join_examples_with_size(merged, next);
    } else if (merged.size != next.size) {
      join_sizes(merged, next);
    }
    merged.mixed |= mixed;
    merged.shared |= shared;
  }

  // Two batches, or parts of one, meet as the rows that they have.
  void join_examples(MergedAxis& merged, const MergedAxis& next) {
    if (merged.batch.symbol == next.batch.symbol) {
      if (!same_size(args_, size_of(args_.symbols, merged.batch.rows_per_example),
                     size_of(args_.symbols, next.batch.rows_per_example))) {
        fail_sizes(merged, next);
      }
    } else if (repeats(merged, next, &Broadcast::is_single_row)) {
      merged.mixed = true;
    } else if (same_size(args_, rows_of(merged), rows_of(next))) {
      // The given one is the batch, not a number of rows that it happens to have.
      const bool number = rows_of(merged).number() || rows_of(next).number();
      if (rows_of(merged).number()) merged.batch = next.batch;
      merged.mixed |= !number;
    } else if (repeats(merged, next, &Broadcast::is_one)) {
      merged.mixed = true;
    } else {
      fail_sizes(merged, next);
    }
  }

  // True if one axis is a single row that the other repeats; `merged` becomes the other axis.
  bool repeats(MergedAxis& merged, const MergedAxis& next,
               bool (Broadcast::*is_row)(const MergedAxis&) const) const {
    if ((this->*is_row)(next)) return true;
    if (!(this->*is_row)(merged)) return false;
    merged = next;
    return true;
  }

  void join_sizes(MergedAxis& merged, const MergedAxis& next) {
    if (same_size(args_, rows_of(merged), rows_of(next))) {
      if (is_symbolic(next.size)) merged.size = next.size;
    } else if (is_one(merged)) {
      merged = next;
    } else if (!is_one(next)) {
      fail_sizes(merged, next);
    }
  }

  void join_examples_with_size(MergedAxis& merged, const MergedAxis& next) {
    const MergedAxis examples = merged.batch.exists() ? merged : next;
    const MergedAxis& size = merged.batch.exists() ? next : merged;
    if (same_size(args_, rows_of(examples), rows_of(size)) || is_one(size)) {
      merged = examples;
    } else if (is_one(examples)) {
      merged = {size.size};
    } else {
      fail_sizes(merged, next);
    }
    meet_ordinary(merged, examples.batch);
  }

  // Note that examples are rows among others from here on.
  void meet_ordinary(MergedAxis& axis, const ExampleAxis& batch) const {
    const bool same = joins_replicas(args_.symbols, std::size_t(batch.symbol));
    (same ? axis.shared : axis.mixed) = true;
  }

  // One row on all replicas; nothing but that is then taken for granted.
  bool is_single_row(const MergedAxis& axis) const {
    const Size size = rows_of(axis);
    const auto counts = traced_counts(args_.symbols);
    return std::ranges::all_of(counts, [&](const auto& c) { return size.value(c) == 1; }) &&
           same_size(args_, size, 1);
  }

  // Asked where sizes differ, so the program is bound to the counts already.
  bool is_one(const MergedAxis& axis) const {
    const Size size = rows_of(axis);
    if (const auto number = size.number()) return *number == 1;
    return same_size(args_, size, 1);
  }

  Size rows_of(const MergedAxis& axis) const {
    if (!axis.batch.exists()) return size_of(args_.symbols, axis.size);
    return size_of(args_.symbols, axis.batch.rows_per_example) *
           size_of_symbol(args_.symbols, axis.batch.symbol);
  }

  void make_ordinary(MergedAxis& axis) const {
    meet_ordinary(axis, axis.batch);
    axis.size = dim_of(args_.symbols, rows_of(axis));
    axis.batch = {};
  }

  [[noreturn]] void fail_sizes(const MergedAxis& merged, const MergedAxis& next) const {
    const auto counts = traced_counts(args_.symbols);
    const std::int64_t a = rows_of(merged).value(counts[0]), b = rows_of(next).value(counts[0]);
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

Size size_along(const InferArgs& args, const ValueType& type, int axis) {
  return size_of(args.symbols, type, axis);
}

bool same_size(const InferArgs& args, const Size& a, const Size& b) {
  return decide(args.symbols, a - b, [](std::int64_t n) { return n == 0; });
}

bool same_shape(const InferArgs& args, const ValueType& a, const ValueType& b) {
  if (a.shape.rank() != b.shape.rank()) return false;
  for (int axis = 0; axis < a.shape.rank(); ++axis) {
    if (!same_size(args, size_along(args, a, axis), size_along(args, b, axis))) return false;
  }
  return true;
}

std::int64_t fixed_size(const InferArgs& args, const Size& size) {
  return bound_size(args.symbols, size);
}

ValueType ordinary_type(const InferArgs& args, const ValueType& type) {
  ValueType result = type;
  result.batch = {};
  if (type.batched()) {
    result.shape[type.batch.axis] = dim_of(args.symbols, size_along(args, type, type.batch.axis));
  }
  return result;
}

Locality per_example(std::span<const ValueType> in, std::span<const ValueType> out) {
  const auto is_inner = [](const ValueType& type) { return type.batch.axis > 0; };
  const auto batched = [](const ValueType& type) { return type.batched(); };
  if (!std::ranges::all_of(out, batched)) return Locality::kFullBatch;
  const bool inner = std::ranges::any_of(in, is_inner) || std::ranges::any_of(out, is_inner);
  return inner ? Locality::kInnerExample : Locality::kPerExample;
}

bool has_aligned_examples(const InferArgs& args, int end) {
  const ExampleAxis& batch = args.in[0].batch;
  return batch.exists() && batch.axis < end &&
         std::ranges::all_of(args.in, [&](const ValueType& type) { return type.batch == batch; });
}

Inferred one_result(const InferArgs& args, const ValueType& type) {
  return {{type}, per_example(args.in, {&type, 1})};
}

Inferred same_as_input(const InferArgs& args) {
  return one_result(args, args.in[0]);
}

Inferred broadcast_rule(const InferArgs& args, DType result) {
  return Broadcast(args).infer(result);
}

}  // namespace samegrad
