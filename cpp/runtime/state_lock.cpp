#include "runtime/state_lock.h"

#include <atomic>
#include <shared_mutex>

#include "base/error.h"
#include "base/fork.h"
#include "runtime/shared_parameters.h"

namespace samegrad {
namespace {

thread_local int uses_of_this_thread = 0;

}  // namespace

struct StateLock::State {
  enum class Values { kKnown, kHalfWritten, kOfTheJob };
  explicit State(Values found) : values(found) {}
  const std::uint64_t generation = process_generation();
  const Values values;
  std::shared_mutex mutex;
  std::atomic<bool> writing{false};
};

StateLock::State& StateLock::state() {
  // Never destroyed: threads may outlive static destruction.
  static std::atomic<State*> current{new State(State::Values::kKnown)};
  State* known = current.load();
  while (known->generation != process_generation()) {
    // The thread that held the parent's mutex does not exist in this process.
    State::Values values = known->values;
    if (has_shared_parameters()) values = State::Values::kOfTheJob;
    if (known->writing) values = State::Values::kHalfWritten;
    auto* fresh = new State(values);
    if (current.compare_exchange_strong(known, fresh)) return *fresh;
    delete fresh;
  }
  return *known;
}

StateLock::StateLock(Use use, Blocking blocking) : use_(use), state_(&state()) {
  if (state_->values == State::Values::kOfTheJob) {
    fail(ErrorKind::kRuntime, "step",
         "this process was forked from one of several processes that have their variables "
         "together, and go on writing them; use multiprocessing's start method 'spawn'.");
  }
  if (state_->values == State::Values::kHalfWritten) {
    fail(ErrorKind::kRuntime, "step",
         "this process was forked while another thread wrote variables, whose values are therefore "
         "unknown here; fork between steps, or use multiprocessing's start method 'spawn'.");
  }
  nested_ = uses_of_this_thread > 0;
  if (nested_) {
    if (use == Use::kWrite) {
      fail(ErrorKind::kRuntime, "step",
           "variables cannot be changed in the middle of a step, by a signal handler for instance; "
           "set a flag there, and look at it between steps.");
    }
    held_ = true;
    return;
  }
  if (blocking == Blocking::kWait) {
    wait();
    return;
  }
  held_ = use == Use::kRead ? state_->mutex.try_lock_shared() : state_->mutex.try_lock();
  if (!held_) return;
  ++uses_of_this_thread;
  if (use == Use::kWrite) state_->writing = true;
}

void StateLock::wait() {
  if (held_) return;
  if (use_ == Use::kRead) {
    state_->mutex.lock_shared();
  } else {
    state_->mutex.lock();
    state_->writing = true;
  }
  ++uses_of_this_thread;
  held_ = true;
}

StateLock::~StateLock() {
  if (!held_ || nested_) return;
  --uses_of_this_thread;
  if (use_ == Use::kRead) {
    state_->mutex.unlock_shared();
  } else {
    state_->writing = false;
    state_->mutex.unlock();
  }
}

}  // namespace samegrad
