// Thread-local state: the current trace and random state.
#pragma once

#include <cstdint>
#include <memory>

#include "train/random_state.h"

namespace samegrad {

class Trace;

struct Current {
  std::shared_ptr<Trace> trace;         // null: operations run at once
  std::shared_ptr<RandomState> random;  // null: that of the process
  std::shared_ptr<void> context;        // what the bindings keep; null: their default
};

const Current& current();
// The trace that operations of this thread go to, or null.
std::shared_ptr<Trace> current_trace();
// The present state, with another trace.
Current with_trace(std::shared_ptr<Trace> trace);
// Replaces one trace by the other wherever it is current, or will be again.
void replace_current(const std::shared_ptr<Trace>& old, const std::shared_ptr<Trace>& fresh);

// Makes another state current during its lifetime. Its end makes the former state current again,
// whatever was entered since and not left. An exception can arrive between any two instructions of
// Python, so that nothing may depend on the second one. In another thread the end does nothing.
class Scope {
 public:
  explicit Scope(Current next);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  std::uint64_t number_;
};

}  // namespace samegrad
