// Source lines of the nodes of a graph, each listed once in Graph::locations.
#pragma once

#include <map>
#include <string>

#include "ir/graph.h"
#include "train/host.h"

namespace samegrad {

class SourceLines {
 public:
  SourceLines(const Host& host, Graph& graph) : host_(host), graph_(graph) {}

  // True if the host tells lines.
  bool known() const { return host_.locate != nullptr; }
  // The line of user code that runs now; empty if lines are unknown.
  std::string current() const { return known() ? host_.locate() : std::string(); }
  // Its index in the graph.
  std::int32_t current_index() { return index_of(current()); }
  std::int32_t index_of(const std::string& line) {
    const auto [at, is_new] = indices_.try_emplace(line, std::int32_t(graph_.locations.size()));
    if (is_new) graph_.locations.push_back(line);
    return at->second;
  }

 private:
  const Host& host_;
  Graph& graph_;
  std::map<std::string, std::int32_t> indices_;
};

}  // namespace samegrad
