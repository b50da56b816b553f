// Interrupts: let the user stop a loop that runs inside the engine.
#pragma once

#include <functional>

namespace samegrad {

// The poll between iterations; it throws to stop the run. Set by the bindings.
extern std::function<void()> on_interrupt_poll;

// Asks, at most every 50 ms.
void poll_interrupt();

}  // namespace samegrad
