#include "runtime/interrupt.h"

#include <atomic>
#include <chrono>

namespace samegrad {

namespace {
std::atomic<void (*)()> interrupt_check = nullptr;
}

void set_interrupt_check(void (*check)()) {
  interrupt_check = check;
}

void poll_interrupt() {
  using Clock = std::chrono::steady_clock;
  constexpr std::int64_t kPeriod = 50;
  static std::atomic<std::int64_t> last{0};
  const auto now =
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch())
          .count();
  if (now - last.load(std::memory_order_relaxed) < kPeriod) return;
  last.store(now, std::memory_order_relaxed);
  if (void (*check)() = interrupt_check) check();
}

}  // namespace samegrad
