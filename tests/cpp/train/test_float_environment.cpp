// Rounding and denormals of the engine, on threads whose caller has set others.
#if defined(__x86_64__) || defined(__aarch64__)
#include <cfenv>
#include <utility>

#include "base/float_environment.h"
#include "check.h"
#include "ir/builder.h"
#include "ops/registry.h"
#include "passes/passes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace samegrad;

namespace {

#if defined(__x86_64__)
constexpr unsigned kFlush = 0x8040;  // flush to zero, denormals are zero
unsigned control() {
  return _mm_getcsr();
}
void set_control(unsigned value) {
  _mm_setcsr(value);
}
#else
constexpr unsigned kFlush = 1u << 24;  // of FPCR
unsigned control() {
  unsigned long value;
  asm volatile("mrs %0, fpcr" : "=r"(value));
  return static_cast<unsigned>(value);
}
void set_control(unsigned value) {
  asm volatile("msr fpcr, %0" : : "r"(static_cast<unsigned long>(value)) : "memory");
}
#endif

// Sets bits of the control register in a scope.
class Changed {
 public:
  explicit Changed(unsigned bits) : before_(control()) { set_control(before_ | bits); }
  ~Changed() { set_control(before_); }

 private:
  unsigned before_;
};

[[gnu::noinline]] float product(float a, float b) {
  volatile float x = a, y = b;
  return x * y;
}

}  // namespace

TEST("arithmetic in a float environment keeps denormals, and the caller's control comes back") {
  const Changed flush(kFlush);
  const unsigned before = control();
  CHECK_EQ(product(1e-39f, 1), 0.0f);
  {
    const FloatEnvironment environment;
    CHECK_EQ(product(1e-39f, 1), 1e-39f);
    CHECK_EQ(control() & kFlush, 0u);
  }
  CHECK_EQ(control() & kFlush, before & kFlush);
  CHECK_EQ(product(1e-39f, 1), 0.0f);
}

// One number that rounding to nearest makes smaller, one that it makes larger.
std::pair<float, float> rounded() {
  volatile float two = 2, three = 3;
  const float larger = two / three;
  return {product(1.00000012f, 1.00000012f), larger};
}

TEST("arithmetic in a float environment rounds to nearest, and the caller's rounding comes back") {
  const std::pair<float, float> expected = rounded();
  for (const int rounding : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    CHECK_EQ(std::fesetround(rounding), 0);
    const std::pair<float, float> outside = rounded();
    const std::pair<float, float> inside = [] {
      const FloatEnvironment environment;
      return rounded();
    }();
    const int after = std::fegetround();
    std::fesetround(FE_TONEAREST);
    CHECK_EQ(after, rounding);
    CHECK(outside != expected && inside == expected, rounding);
  }
}

TEST("constants are folded as steps run: with denormals, whatever the caller's thread does") {
  register_all_ops();
  Graph graph;
  Builder b{graph};
  const Value tiny = graph.add_constant(Array::scalar(1e-39f));
  const Value one = b.number(DType::kFloat32, 1);
  graph.outputs = {b("mul", {tiny, one})};
  const Graph folded = [&] {
    const Changed flush(kFlush);
    return fold_constants(graph);
  }();
  const ValueInfo& result = folded.values[folded.outputs[0]];
  CHECK(result.source == Source::kConstant);
  CHECK_EQ(*folded.constants[result.constant()].data<float>(), 1e-39f);
}
#endif
