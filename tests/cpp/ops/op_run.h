// Runs one row of the op table on arrays, without an executor.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "check.h"
#include "error_message.h"
#include "ir/builder.h"
#include "ops/attributes.h"
#include "ops/registry.h"
#include "tensor/tree_accumulator.h"

namespace samegrad::testing {

struct Operand {
  Array array;
  int example_axis = -1;
  std::int64_t rows_per_example = 1;
};

// Examples [first, first + count) of the operands.
struct Tile {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// How a tree reduction is run: all at once, or in some way that must give the same bits.
struct Folding {
  std::int64_t piece = 0;     // examples that are handed over together; 0: all
  bool subtrees = true;       // by TreeKernel::subtree where the row has it
  bool small_blocks = false;  // each as small as the row allows, on its own
  std::int64_t leaf = 0;      // examples of a leaf, for measurements; 0: as the row says
};

// Blocks of the least size that the row allows.
inline std::vector<Rect> smallest_blocks(const AccumulatorShape& state) {
  const std::int64_t rows = state.row_grain ? state.row_grain : state.rows;
  const std::int64_t columns = state.column_grain ? state.column_grain : state.columns;
  std::vector<Rect> blocks;
  for (std::int64_t r = 0; r < state.rows; r += rows) {
    for (std::int64_t c = 0; c < state.columns; c += columns) {
      blocks.push_back(
          {r, c, std::min(rows, state.rows - r), std::min(columns, state.columns - c)});
    }
  }
  return blocks;
}

// The tree over all examples of the operands.
inline void fold_examples(const TreeKernel& tree, const KernelArgs& args, Folding how = {}) {
  TreeReduction reduction(tree, args.attrs, args.in, args.out[0]);
  if (!how.subtrees) reduction.state.subtrees = false;
  if (how.leaf) reduction.tree.leaf = how.leaf;
  const TileSet& whole = reduction.whole;
  auto* memory = args.out[0].as<std::byte>();
  if (tree.finish) {
    memory = static_cast<std::byte*>(args.scratch.take(std::size_t(whole.bytes)));
  }
  const Accumulator state = whole.at(memory);
  const void* operands = args.examples ? tree.open(args) : nullptr;
  const std::int64_t piece = how.piece ? how.piece : args.examples;
  const std::vector<Rect> blocks =
      how.small_blocks ? smallest_blocks(reduction.state) : std::vector<Rect>{whole.block};
  for (const Rect& block : blocks) {
    const TileSet extent(reduction.state, block);
    void* partials = args.scratch.take(
        std::size_t(TreeAccumulator::partial_bytes(reduction, extent, args.examples)));
    TreeAccumulator accumulator(reduction, extent, 0, args.examples, whole.part(state, block),
                                static_cast<std::byte*>(partials));
    for (std::int64_t i = 0; i < args.examples; i += piece) {
      accumulator.feed(operands, 0, i, std::min(i + piece, args.examples), args.scratch);
    }
  }
  if (tree.finish) tree.finish({args.attrs, reduction.state, state, args.out});
}

class OpRun {
 public:
  OpRun(const std::string& op, std::vector<Operand> operands, Attrs attrs = {})
      : operands_(std::move(operands)) {
    register_all_ops();
    op_ = &OpRegistry::instance().get(op);
    attrs_ = complete_attrs(*op_, std::move(attrs));
    for (const Operand& operand : operands_) {
      ValueType type{operand.array.dtype(), operand.array.shape(), {}};
      if (operand.example_axis >= 0) {
        type.batch = {operand.example_axis, operand.rows_per_example, 0};
        examples_ = type.shape[operand.example_axis] / operand.rows_per_example;
        type.shape[operand.example_axis] = kBatchDim;
      }
      types_.push_back(type);
    }
    symbols_.push_back({});
    symbols_[0].traced_count = examples_;
    inferred_ = op_->infer({*op_, types_, attrs_, symbols_});
    replica_context.local_examples = replica_context.global_examples = {examples_};
    replica_context.first_example = {0};
  }

  const OpDef& op() const { return *op_; }
  const Attrs& attrs() const { return attrs_; }
  const Inferred& inferred() const { return inferred_; }
  const ValueType& type(int result = 0) const { return inferred_.types[std::size_t(result)]; }
  std::int64_t examples() const { return examples_; }
  bool symbol_fixed() const { return symbols_[0].fixed; }

  std::vector<Array> run() const { return run(Tile{0, examples_}); }
  std::vector<Array> fold(Folding how) const { return run(Tile{0, examples_}, how); }

  // The results for a tile (the operands' examples are on axis 0 unless the tile is everything).
  std::vector<Array> run(const Tile& tile, Folding how = {}) const {
    std::vector<Array> results;
    std::vector<std::int64_t> counts{tile.count};
    complete_counts(symbols_, counts);
    for (const ValueType& type : inferred_.types) {
      results.emplace_back(type.dtype, concrete_shape(type, counts));
    }
    run_into(tile, results, how);
    return results;
  }

  void run_into(const Tile& tile, std::vector<Array>& results, Folding how = {}) const {
    std::vector<View> in, out;
    std::vector<Array> slices;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const Operand& operand = operands_[i];
      Array array = operand.array;
      if (operand.example_axis == 0) {
        const std::int64_t rows = operand.rows_per_example;
        array = array.rows(tile.first * rows, (tile.first + tile.count) * rows);
      }
      slices.push_back(array);
      const bool read = !(op_->type_only >> i & 1u);
      in.push_back(view(array, operand.example_axis, operand.rows_per_example));
      if (!read) in.back().data = nullptr;
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      const ExampleAxis& batch = inferred_.types[i].batch;
      out.push_back(view(results[i], batch.axis, batch.rows_per_example));
    }
    Scratch scratch;
    const KernelArgs args{.attrs = attrs_,
                          .in = in,
                          .out = out,
                          .examples = tile.count,
                          .first_example = tile.first,
                          .replica_context = replica_context,
                          .scratch = scratch};
    if (inferred_.locality == Locality::kBatchReduction) {
      fold_examples(op_->tree, args, how);
    } else {
      op_->kernel(args);
    }
  }

  // As several threads do, in parts that begin at these units and run from the last to the first.
  std::vector<Array> run_parts(std::vector<std::int64_t> begins) const {
    std::vector<Array> results;
    std::vector<View> in, out;
    std::vector<std::int64_t> counts{examples_};
    complete_counts(symbols_, counts);
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const Operand& operand = operands_[i];
      in.push_back(view(operand.array, operand.example_axis, operand.rows_per_example));
      if (op_->type_only >> i & 1u) in.back().data = nullptr;
    }
    for (const ValueType& type : inferred_.types) {
      results.emplace_back(type.dtype, concrete_shape(type, counts));
      out.push_back(view(results.back(), type.batch.axis, type.batch.rows_per_example));
    }
    const CostArgs shapes{attrs_, in, out};
    Scratch scratch;
    const std::size_t bytes = op_->parts.state_bytes ? op_->parts.state_bytes(shapes) : 0;
    auto* state = bytes ? static_cast<std::byte*>(scratch.take(bytes)) : nullptr;
    const KernelArgs args{.attrs = attrs_,
                          .in = in,
                          .out = out,
                          .examples = examples_,
                          .replica_context = replica_context,
                          .scratch = scratch,
                          .state = state};
    begins.push_back(op_->parts.count(shapes));
    for (std::size_t i = begins.size() - 1; i > 0; --i) {
      op_->parts.run(args, begins[i - 1], begins[i]);
    }
    if (op_->parts.finish) op_->parts.finish(args);
    return results;
  }

  std::int64_t parts() const {
    std::vector<View> in, out;
    std::vector<std::int64_t> counts{examples_};
    complete_counts(symbols_, counts);
    for (const Operand& operand : operands_) {
      in.push_back(view(operand.array, operand.example_axis, operand.rows_per_example));
    }
    std::vector<Array> results;
    for (const ValueType& type : inferred_.types) {
      results.emplace_back(type.dtype, concrete_shape(type, counts));
      out.push_back(view(results.back(), type.batch.axis, type.batch.rows_per_example));
    }
    return op_->parts.count({attrs_, in, out});
  }

  ReplicaContext replica_context;

 private:
  static View view(const Array& array, int axis, std::int64_t rows_per_example) {
    View result{array.raw(), array.shape(), array.dtype()};
    result.example_axis = axis;
    result.rows_per_example = rows_per_example;
    return result;
  }

  const OpDef* op_;
  Attrs attrs_;
  std::vector<Operand> operands_;
  std::vector<ValueType> types_;
  Symbols symbols_;
  Inferred inferred_;
  std::int64_t examples_ = 0;
};

template <class T>
Array array_of(const Shape& shape, const std::vector<T>& values) {
  Array array(kDTypeOf<T>, shape);
  for (std::size_t i = 0; i < values.size(); ++i) array.data<T>()[i] = values[i];
  return array;
}

// Numbers that look random, in [low, high); whole ones in [0, integer_high).
inline Array filled(DType dtype, const Shape& shape, double low = -2, double high = 2,
                    double integer_high = 3) {
  Array array(dtype, shape);
  std::uint64_t state = 88172645463325252ull + std::uint64_t(shape.size());
  visit(dtype, [&]<class T>() {
    for (T& number : std::span(array.data<T>(), std::size_t(shape.size()))) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      const double u = double(state >> 11) * 0x1p-53;
      const bool real = is_floating(dtype);
      number = Scalar(real ? low + u * (high - low) : double(int(u * integer_high))).as<T>();
    }
  });
  return array;
}

inline bool same_bits(const Array& a, const Array& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

template <class T>
std::string values_of(const Array& array) {
  std::string out;
  for (std::int64_t i = 0; i < array.size(); ++i) {
    out += (i ? " " : "") + text(double(array.data<T>()[i]));
  }
  return out;
}

// The message of the Error that building the row throws; "" if it throws none.
inline std::string error_of(const std::string& op, std::vector<Operand> operands,
                            Attrs attrs = {}) {
  return message_of([&] { OpRun run(op, std::move(operands), std::move(attrs)); });
}

}  // namespace samegrad::testing
