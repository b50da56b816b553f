// Assertions: conditions that only a defect of the engine breaks. Builds with SAMEGRAD_ASSERTIONS
// (debug, sanitizers, fuzzing) abort where one is false; release builds do not evaluate them.
#pragma once

#ifdef SAMEGRAD_ASSERTIONS

#include <cstdio>
#include <cstdlib>

#include "base/error.h"

namespace samegrad {

// Prints "FILE:LINE: assertion failed: CONDITION: VALUES" and aborts.
template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void assertion_failed(const char* file, int line,
                                                             const char* condition,
                                                             const Parts&... values) {
  const std::string said = text(values...);
  std::fprintf(stderr, "%s:%d: assertion failed: %s%s%s\n", file, line, condition,
               said.empty() ? "" : ": ", said.c_str());
  std::abort();
}

}  // namespace samegrad

// The values are printed one after the other.
#define SG_ASSERT(condition, ...) \
  ((condition)                    \
       ? void()                   \
       : ::samegrad::assertion_failed(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__))

#else

namespace samegrad {
template <class... Parts>
char unevaluated(const Parts&...);  // names the values, so that none is unused
}  // namespace samegrad

#define SG_ASSERT(condition, ...) \
  static_cast<void>(              \
      sizeof(::samegrad::unevaluated(static_cast<bool>(condition) __VA_OPT__(, ) __VA_ARGS__)))

#endif
