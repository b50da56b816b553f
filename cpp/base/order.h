// Everything that a reduction order depends on, and nothing else decides one: cost, machine,
// threads and thresholds choose among plans of equal bits. A change that changes bits raises
// kReductionOrder (base/numerics_version.h).
#pragma once

#include <cstdint>

namespace samegrad {

// ---- over examples: the tree ----

// A leaf holds at most this many examples, summed in order; larger ranges are halved.
inline constexpr std::int64_t kLeafExamples = 4;

// The size of the first part of [0, n): the larger half.
constexpr std::int64_t tree_split(std::int64_t n) {
  return (n + 1) / 2;
}

// ---- inside an example: blocks, joined by the same halving, so that the error of a sum stays
// bounded by the length of a block and the depth of the tree ----

// Lanes of a sum along a row: one for each number in this many bytes.
inline constexpr std::int64_t kLaneBytes = 64;
// Numbers of a row that its lanes add one after the other.
inline constexpr std::int64_t kRowBlock = 1024;
// Rows that are added to each other one after the other, column by column.
inline constexpr std::int64_t kColumnBlock = 128;
// Products that one chain of fused multiply-adds adds up.
inline constexpr std::int64_t kContractionBlock = 4096;

}  // namespace samegrad
