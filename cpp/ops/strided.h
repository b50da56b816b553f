// Copies between strided arrays.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "base/shape.h"

namespace samegrad {

// Nested axes, from the outermost to the innermost; steps in elements.
class StridedCopy {
 public:
  void add_axis(std::int64_t size, std::int64_t to_step, std::int64_t from_step);

  void run(void* to, const void* from, DType dtype) const;

  // The number of parts that the copy can be cut into, and a run of parts [begin, end).
  std::int64_t parts() const;
  void run(void* to, const void* from, DType dtype, std::int64_t begin, std::int64_t end) const;

 private:
  struct Axis {
    std::int64_t size, to, from;
  };

  template <class T>
  void run_typed(T* to, const T* from) const;
  void interchange_loops();
  // The axis that is cut: the outermost one, if it is long.
  int cut_axis() const;

  int rank_ = 0;
  bool empty_ = false;
  std::array<Axis, 2 * kMaxRank> axes_;
};

// Elements from one index of each axis to the next, in contiguous memory.
std::array<std::int64_t, kMaxRank> contiguous_steps(const Shape& shape);

}  // namespace samegrad
