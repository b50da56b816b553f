// Quotients and multiples, rounded up.
#include <cstdint>

#include "base/rounding.h"
#include "check.h"

using namespace samegrad;

namespace {

TEST("quotients and multiples are the least that are not less") {
  for (std::int64_t n = 0; n < 40; ++n) {
    for (std::int64_t by = 1; by < 9; ++by) {
      CHECK(divide_up(n, by) * by >= n && divide_up(n, by) * by < n + by);
      CHECK_EQ(round_up(n, by), divide_up(n, by) * by);
    }
  }
}

}  // namespace
