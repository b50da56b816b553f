// Python's access to the state of variables.
#pragma once

#include <pybind11/pybind11.h>

#include "runtime/state_lock.h"

namespace samegrad {

// Calls f with the state of variables locked. Steps of other threads may hold it and need the GIL.
template <class F>
auto with_state(StateLock::Use use, const F& f) {
  StateLock lock(use, StateLock::Blocking::kTry);
  if (!lock.held()) {
    const pybind11::gil_scoped_release release;
    lock.wait();
  }
  return f();
}

}  // namespace samegrad
