#include "base/float_environment.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace samegrad {
namespace {

// The register that controls arithmetic. kDefault: rounding to nearest, denormals are neither read
// nor written as zero, operations return the NaN they read, no exception stops. kRecorded: bits
// that record exceptions.
#if defined(__x86_64__)
constexpr unsigned kDefault = 0x1F80, kRecorded = 0x3F;
unsigned control() {
  return _mm_getcsr();
}
void set_control(unsigned value) {
  _mm_setcsr(value);
}
#elif defined(__aarch64__)
constexpr unsigned kDefault = 0, kRecorded = 0;  // FPCR; exceptions are recorded in FPSR
unsigned control() {
  unsigned long value;
  asm volatile("mrs %0, fpcr" : "=r"(value));
  return static_cast<unsigned>(value);
}
void set_control(unsigned value) {
  asm volatile("msr fpcr, %0" : : "r"(static_cast<unsigned long>(value)) : "memory");
}
#else
constexpr unsigned kDefault = 0, kRecorded = 0;
unsigned control() {
  return kDefault;
}
void set_control(unsigned) {}
#endif

}  // namespace

FloatEnvironment::FloatEnvironment() : saved_(control()) {
  if ((saved_ & ~kRecorded) != kDefault) set_control(kDefault);
}
FloatEnvironment::~FloatEnvironment() {
  if ((saved_ & ~kRecorded) != kDefault) set_control(saved_);
}

}  // namespace samegrad
