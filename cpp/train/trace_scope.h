// Scope in which a trace is current.
#pragma once

#include <memory>
#include <optional>

#include "train/current.h"
#include "train/eager_trace.h"

namespace samegrad {

// An eager trace that was current before follows an eager one meanwhile.
class TraceScope {
 public:
  explicit TraceScope(const std::shared_ptr<Trace>& trace);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

  // Makes another eager trace current instead.
  void replace(const std::shared_ptr<EagerTrace>& fresh);
  // Imports the nodes that the following trace lacks.
  void import() const {
    if (below_) below_->import_followed();
  }
  bool has_follower() const { return below_ != nullptr; }

 private:
  std::shared_ptr<EagerTrace> eager_;  // null: the trace is a graph's
  std::shared_ptr<EagerTrace> below_;  // the one that follows
  std::optional<Scope> scope_;
};

}  // namespace samegrad
