#include "base/float_environment.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace samegrad {

#if defined(__x86_64__)
FloatEnvironment::FloatEnvironment() : saved_(_mm_getcsr()) {
  constexpr unsigned kDefault = 0x1F80;  // all exceptions masked, nearest, no FTZ, no DAZ
  if ((saved_ & ~0x3Fu) != kDefault) _mm_setcsr(kDefault);
}
FloatEnvironment::~FloatEnvironment() {
  constexpr unsigned kDefault = 0x1F80;
  if ((saved_ & ~0x3Fu) != kDefault) _mm_setcsr(saved_);
}
#else
FloatEnvironment::FloatEnvironment() : saved_(0) {}
FloatEnvironment::~FloatEnvironment() = default;
#endif

}  // namespace samegrad
