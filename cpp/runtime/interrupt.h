// Interrupts: let the user stop a loop that runs inside the engine.
#pragma once

namespace samegrad {

// Sets the function that throws if the user wants the run to stop. The host of the engine sets it.
void set_interrupt_check(void (*check)());

// Calls the function between the iterations of a loop, at most every 50 ms.
void poll_interrupt();

}  // namespace samegrad
