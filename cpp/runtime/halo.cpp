#include "runtime/halo.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace samegrad {
namespace {

// Rows of an argument along its example axis, in order, in one piece of memory: those of all that
// is before the axis one after the other.
class ExampleBuffer {
 public:
  ExampleBuffer(const ValueType& type, const Array& like, std::int64_t examples)
      : type_(type), shape_(like.shape()) {
    shape_[type.batch.axis] = examples * type.batch.rows_per_example;
    array_ = Array(like.dtype(), shape_);
  }

  const Array& array() const { return array_; }
  // Copies examples [begin, end) of `from` to where example `at` is.
  void put(const Array& from, std::int64_t begin, std::int64_t end, std::int64_t at) {
    const std::int64_t outer = shape_.size(0, type_.batch.axis);
    const auto example = std::int64_t(size_of(array_.dtype())) * type_.batch.rows_per_example *
                         shape_.size(type_.batch.axis + 1, shape_.rank());
    const std::int64_t own = shape_[type_.batch.axis] / type_.batch.rows_per_example;
    const std::int64_t theirs = from.shape()[type_.batch.axis] / type_.batch.rows_per_example;
    for (std::int64_t o = 0; o < outer; ++o) {
      const std::byte* x = from.raw() + (o * theirs + begin) * example;
      std::copy_n(x, (end - begin) * example, array_.raw() + (o * own + at) * example);
    }
  }

 private:
  const ValueType& type_;
  Shape shape_;
  Array array_;
};

TreeRange common(TreeRange a, TreeRange b) {
  return {std::max(a.begin, b.begin), std::max(std::max(a.begin, b.begin), std::min(a.end, b.end))};
}

class HaloExchange {
 public:
  HaloExchange(const Graph& graph, ExecuteParams& call)
      : graph_(graph),
        call_(call),
        world_(*call.communicator),
        trees_(example_trees(graph.symbols, call.world_counts, world_)) {}

  bool any() const {
    for (const auto& tree : trees_) {
      for (int rank = 0; tree && rank < world_.size(); ++rank) {
        if (tree->after(rank).size() > 0) return true;
      }
    }
    return false;
  }

  void run() {
    for (Value v : graph_.values.ids()) {
      const ValueInfo& info = graph_.values[v];
      if (info.source != Source::kArgument || !has_rows(v)) continue;
      trade(info.type, per_replica(call_.arguments[info.argument()]));
    }
    world_.exchange(sends_, receives_);
    if (needs_none()) return;
    for (const HaloPiece& piece : pieces_) {
      piece.to->put(piece.rows->array(), 0, piece.examples, piece.at);
    }
    extend();
  }

 private:
  // Examples of another process.
  struct HaloPiece {
    ExampleBuffer* to;
    std::unique_ptr<ExampleBuffer> rows;
    std::int64_t examples, at;
  };

  bool has_rows(Value v) const {
    return graph_.placement(v) == Placement::kSharded && graph_.type(v).batched() &&
           trees_[std::size_t(graph_.type(v).batch.symbol)];
  }
  bool needs_none() const {
    return std::ranges::all_of(
        trees_, [&](const auto& tree) { return !tree || tree->after(world_.rank()).size() == 0; });
  }

  // One array for each, though all may share it.
  PerReplica<Array> per_replica(const PerReplica<Array>& arrays) const {
    const auto own = std::size_t(world_.own().end - world_.own().begin);
    return arrays.size() == own ? arrays : PerReplica<Array>(own, arrays[0]);
  }

  void trade(const ValueType& type, const PerReplica<Array>& arrays) {
    const WorldTree& tree = *trees_[std::size_t(type.batch.symbol)];
    for (int rank = 0; rank < world_.rank(); ++rank) send(type, arrays, tree, rank);
    const TreeRange needed = tree.after(world_.rank());
    halo_.push_back(std::make_unique<ExampleBuffer>(type, arrays[0], needed.size()));
    for (int rank = world_.rank() + 1; rank < world_.size(); ++rank) {
      const TreeRange range = common(needed, tree.range_of(rank));
      if (range.size() == 0) continue;
      auto rows = std::make_unique<ExampleBuffer>(type, arrays[0], range.size());
      receives_.push_back(message(rank, rows->array()));
      pieces_.push_back(
          {halo_.back().get(), std::move(rows), range.size(), range.begin - needed.begin});
    }
  }

  void send(const ValueType& type, const PerReplica<Array>& arrays, const WorldTree& tree,
            int rank) {
    const TreeRange range = common(tree.after(rank), tree.range_of(world_.rank()));
    if (range.size() == 0) return;
    ExampleBuffer& rows =
        *sent_.emplace_back(std::make_unique<ExampleBuffer>(type, arrays[0], range.size()));
    std::int64_t first = tree.range_of(world_.rank()).begin;
    for (const Array& array : arrays) {
      const std::int64_t examples = array.shape()[type.batch.axis] / type.batch.rows_per_example;
      const TreeRange part = common(range, {first, first + examples});
      if (part.size() > 0) {
        rows.put(array, part.begin - first, part.end - first, part.begin - range.begin);
      }
      first += examples;
    }
    sends_.push_back(message(rank, rows.array()));
  }

  static Message message(int rank, const Array& array) {
    return {rank, array.raw(), std::int64_t(array.bytes())};
  }

  // One replica more, which has the rows.
  void extend() {
    call_.halo.assign(graph_.symbols.size(), 0);
    for (std::size_t s = 0; s < trees_.size(); ++s) {
      call_.halo[s] = trees_[s] ? trees_[s]->after(world_.rank()).size() : call_.world_counts[0][s];
    }
    complete_counts(graph_.symbols, call_.halo);
    call_.counts.push_back(call_.halo);
    extended_.assign(call_.arguments.begin(), call_.arguments.end());
    std::size_t next = 0;
    for (Value v : graph_.values.ids()) {
      const ValueInfo& info = graph_.values[v];
      if (info.source != Source::kArgument || !graph_.varying(v)) continue;
      PerReplica<Array>& arrays = extended_[info.argument()];
      arrays = per_replica(arrays);
      // A replica's own value has no rows there, and no reader.
      arrays.push_back(has_rows(v) ? halo_[next++]->array() : arrays.back());
    }
    call_.extended = std::make_shared<std::vector<PerReplica<Array>>>(std::move(extended_));
    call_.arguments = *call_.extended;
  }

  const Graph& graph_;
  ExecuteParams& call_;
  Communicator& world_;
  const ExampleTrees trees_;
  std::vector<std::unique_ptr<ExampleBuffer>> halo_, sent_;
  std::vector<HaloPiece> pieces_;
  std::vector<Message> sends_, receives_;
  std::vector<PerReplica<Array>> extended_;
};

}  // namespace

ExampleTrees example_trees(const std::vector<Symbol>& symbols, const Counts& of_world,
                           const Communicator& world) {
  ExampleTrees trees;
  for (std::size_t s = 0; s < symbols.size(); ++s) {
    trees.emplace_back();
    if (joins_replicas(symbols, s)) continue;
    std::vector<std::int64_t> firsts{0};
    for (int rank = 0; rank < world.size(); ++rank) {
      const ReplicaRange own = world.replicas_of(rank);
      std::int64_t examples = 0;
      for (int r = own.begin; r < own.end; ++r) {
        examples += std::max<std::int64_t>(0, of_world[std::size_t(r)][s]);
      }
      firsts.push_back(firsts.back() + examples);
    }
    trees.back().emplace(std::move(firsts), kExampleTree, world.rank());
  }
  return trees;
}

void add_halo(const Graph& graph, ExecuteParams& call) {
  HaloExchange exchange(graph, call);
  if (exchange.any()) exchange.run();
}

}  // namespace samegrad
