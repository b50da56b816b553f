// The top of the tree over the replicas of all processes: what is summed of the largest subtrees
// that each of them has.
#pragma once

#include <span>
#include <vector>

#include "base/dtype.h"
#include "runtime/communicator.h"

namespace samegrad {

class WorldTree {
 public:
  struct Subtree {
    int rank;
    ReplicaRange replicas;  // of the world
  };

  explicit WorldTree(const Communicator& communicator);

  // Of all ranks, from left to right.
  const std::vector<Subtree>& all() const { return all_; }
  // Of this process; replicas are numbered from its first one.
  const std::vector<ReplicaRange>& own() const { return own_; }
  // Of a rank.
  std::int64_t most() const { return most_; }

  // x[i] is where all()[i] has the numbers. Those of bfloat16 are added in float32, and rounded
  // once.
  void add(DType dtype, std::span<const std::byte* const> x, std::int64_t n, std::byte* out) const;

 private:
  void add_block(DType dtype, std::span<const std::byte* const> x, std::int64_t n,
                 std::byte* out) const;
  void add_narrow_block(std::span<const std::byte* const> x, std::int64_t n, std::byte* out) const;

  int replicas_;
  std::vector<Subtree> all_;
  std::vector<ReplicaRange> own_;
  std::int64_t most_ = 1;
};

}  // namespace samegrad
