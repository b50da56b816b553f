// Replay: adds the nodes of a program to another one. The rules of the ops infer each node again,
// as operands and sizes may differ.
#pragma once

#include <optional>
#include <vector>

#include "ir/builder.h"

namespace samegrad {

// The ordinal of a draw in its trace; absent: the attributes are not of a draw that has one.
std::optional<std::int64_t> ordinal_of(const Attrs& attrs);

class Replay {
 public:
  // kCore: ops whose decomposition has their bits, and their derivatives', are decomposed.
  enum class Ops { kAll, kCore };
  Replay(const Graph& from, Builder& to, Ops rows = Ops::kAll);

  // A symbol of the program over there. The sizes made of those that are given follow.
  void set_size(int symbol, const Size& size) { sizes_[std::size_t(symbol)] = size; }
  // A value that no node makes, which whoever replays provides.
  void set_value(Value old, Value fresh) { map_[old] = fresh; }
  // The ordinal over there of the first draw.
  void set_first_draw(std::int64_t ordinal) { first_draw_ = ordinal; }
  Value operator()(Value old) const { return map_[old]; }
  Values operator()(const std::vector<Value>& old) const;
  // A symbol or a type over there. ValueError for a symbol that nothing decides.
  const Size& size(int symbol);
  ValueType type(ValueType type);

  // Adds all nodes, in calls as they were.
  void run();
  // Adds outputs, writes, rereads and locations as well: the graph over there becomes this program.
  void run_whole();

 private:
  Replay(const Graph& from, Builder& to, const Replay& outer);

  void add(const Node& node);
  Values apply(const Node& node, const Values& inputs);
  struct Regions {
    Attrs attrs;
    std::vector<GraphPtr> graphs;
  };
  Regions regions(const Node& node, const Values& inputs);
  bool is_varying(const Node& node, const Values& inputs, const Graph& first) const;
  bool join(const std::vector<GraphPtr>& graphs, bool varying,
            std::vector<Placement>& carried) const;
  std::vector<Placement> placements(const Node& node, const Graph& region, const Values& inputs,
                                    const std::vector<Placement>& carried) const;
  GraphPtr region(const Graph& graph, const std::vector<Placement>& arguments);
  void adopt(const Replay& inside, const Symbols& symbols);
  static void share(const Replay& known, Replay& asks);
  Size made(const Symbol& symbol);
  Size sum(const Symbol& symbol);
  Size part(const Symbol& symbol);
  std::int64_t dim(std::int64_t dim);
  int count(int symbol);
  Symbols& symbols() { return to_.graph().symbols; }

  const Graph& from_;
  Builder& to_;
  Ops rows_;
  std::int64_t first_draw_ = 0;
  std::vector<std::optional<Size>> sizes_;  // by symbol; absent: nobody has asked
  PerValue<Value> map_;
};

}  // namespace samegrad
