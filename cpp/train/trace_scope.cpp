#include "train/trace_scope.h"

#include <utility>

namespace samegrad {

TraceScope::TraceScope(const std::shared_ptr<Trace>& trace)
    : eager_(std::dynamic_pointer_cast<EagerTrace>(trace)) {
  std::shared_ptr<EagerTrace> below = current_eager_trace();
  if (eager_ && below && below != eager_) {
    below->follow(eager_);
    below_ = std::move(below);
  }
  scope_.emplace(with_trace(trace));
}

TraceScope::~TraceScope() {
  scope_.reset();
  if (below_) below_->unfollow(*eager_);
}

void TraceScope::replace(const std::shared_ptr<EagerTrace>& fresh) {
  replace_current(eager_, fresh);
  if (below_) {
    below_->import_followed();
    below_->unfollow(*eager_);
    below_->follow(fresh);
  }
  eager_ = fresh;
}

}  // namespace samegrad
