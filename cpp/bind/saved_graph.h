// Programs as plain data (dicts, lists, numbers and strings), as saved models hold them.
#pragma once

#include <pybind11/pybind11.h>

#include <array>
#include <vector>

#include "ir/op_def.h"
#include "ops/attributes.h"
#include "train/program.h"

namespace samegrad {

inline constexpr const char* kSavedModel = "saved_model";
inline constexpr int kGraphVersion = 1;
// By Symbol::Kind.
inline constexpr std::array kSymbolKinds = {"input",  "length", "sum",     "slice",
                                            "global", "size",   "quotient"};

// A relation that a trace may take for granted of a size.
struct Relation {
  const char* name;
  bool (*holds)(std::int64_t);
};
inline constexpr std::array<Relation, 6> kRelations = {{
    {"== 0", [](std::int64_t n) { return n == 0; }},
    {"!= 0", [](std::int64_t n) { return n != 0; }},
    {"< 0", [](std::int64_t n) { return n < 0; }},
    {"<= 0", [](std::int64_t n) { return n <= 0; }},
    {"> 0", [](std::int64_t n) { return n > 0; }},
    {">= 0", [](std::int64_t n) { return n >= 0; }},
}};

// True for a collective whose attributes hold the number of replicas.
inline bool is_for_some_replicas(const OpDef& op) {
  return op.has(kCollective) && op.attrs == schema_of<AllGatherAttrs>();
}

// The program of one replica in core rows; its arrays go to `constants`. NotImplementedError, with
// the user's line, for functions of Python and for what one number of replicas can do only;
// `op_name` is the operation that it names.
pybind11::dict data_of_graph(const Graph& graph, std::vector<Array>& constants,
                             const std::string& op_name);

// The graph that such data describes; ValueError or TypeError where it describes none.
Graph graph_from_data(const pybind11::dict& data, const std::vector<Array>& constants);

}  // namespace samegrad
