// Sparse tree reductions: an op whose result is +0 except for the rows (elements of axis 0) that
// the examples name. So a step may cost what it names, not what the result has.
#pragma once

#include "tensor/kernel_args.h"

namespace samegrad {

// A place among the operands names a row. The places of an operand are numbered in the order of its
// examples.
struct TouchedRow {
  std::int64_t row, place;
};

struct SparseSum {
  const KernelArgs& args;           // args.out has a shape, but no memory
  std::int64_t first;               // the number of the operands' first place
  const std::int64_t *begin, *end;  // the places that name the row, in order: one or more
  std::byte* to;
  // The subtree that the places are of; none: all examples.
  std::int64_t first_example = 0, end_example = -1;
};

struct SparseTree {
  // True if operands of these shapes (the examples of one replica, or a single one) are supported.
  bool (*applies)(std::span<const View> in, const Attrs& attrs) = nullptr;
  std::int64_t (*places)(std::span<const View> in) = nullptr;
  // Writes which row each place names, numbered from `first`; raises where it names none.
  void (*name)(const KernelArgs& args, std::int64_t first, TouchedRow* to) = nullptr;
  // The row of the tree over all examples, which never is -0.
  void (*sum)(const SparseSum& sum) = nullptr;
  // Scratch that `sum` takes at most.
  std::size_t (*sum_bytes)(const KernelArgs& args) = nullptr;

  explicit operator bool() const { return sum != nullptr; }
};

}  // namespace samegrad
