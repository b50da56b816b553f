// The rounding mode under which everything that decides bits runs.
#pragma once

namespace samegrad {

// Round to nearest, denormals kept, in this thread until the end of the scope.
class FloatEnvironment {
 public:
  FloatEnvironment();
  ~FloatEnvironment();
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  unsigned saved_;
};

}  // namespace samegrad
