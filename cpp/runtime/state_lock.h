// Lock of the variables: plans share variables, so there is one lock.
#pragma once

namespace samegrad {

class StateLock {
 public:
  enum class Use { kRead, kWrite };  // readers share it
  enum class Blocking { kWait, kTry };
  // RuntimeError where a child was forked while its parent wrote. RuntimeError as well for a writer
  // inside another use by the same thread (a signal handler that runs a step); a reader is allowed.
  explicit StateLock(Use use, Blocking blocking = Blocking::kWait);
  ~StateLock();
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;

  bool held() const { return held_; }
  // Waits, if it is not held. A running step may need Python's lock: do not wait with it.
  void wait();

 private:
  struct State;
  static State& state();

  Use use_;
  bool held_ = false;
  bool nested_ = false;  // an outer StateLock of this thread holds it
  State* state_;
};

}  // namespace samegrad
