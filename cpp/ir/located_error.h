// Errors of operations that run: they name the line of the user code that made the operation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"

namespace samegrad {

// Lines of user code, "train.py:31", by Node::location.
using Locations = std::vector<std::string>;

class LocatedError : public Error {
 public:
  LocatedError(const Error& error, const Node& node) : Error(error), location_(node.location) {}

  // Looks the line up, unless a body of the program has done so.
  void find_line(const Locations& locations) {
    if (line_.empty() && location_ >= 0) line_ = locations[std::size_t(location_)];
  }
  // Empty: the operation runs at once, from the line that asked for it.
  const std::string& line() const { return line_; }
  // For other processes.
  std::string with_line() const { return line_.empty() ? what() : text(what(), " (", line_, ")"); }

 private:
  std::int32_t location_;
  std::string line_;
};

// Calls `run`; errors in it are the node's, unless they are those of a node inside of it.
template <class Run>
void run_located(const Node& node, const Run& run) {
  try {
    run();
  } catch (const LocatedError&) {
    throw;
  } catch (const Error& error) {
    throw LocatedError(error, node);
  }
}

}  // namespace samegrad
