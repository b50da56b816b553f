// Sums over the replicas of all processes, in the order of the tree over them. A process adds up
// the largest subtrees that lie in its replicas by itself, and only these travel.
#pragma once

#include "base/dtype.h"
#include "runtime/communicator.h"
#include "runtime/subtrees.h"
#include "tensor/buffer_pool.h"

namespace samegrad {

// Numbers of one type that lie at `offset` (a multiple of 64) in a packed row of bytes.
struct Packed {
  DType dtype;
  std::int64_t offset;
  std::int64_t elements;
};

class WorldSum {
 public:
  WorldSum(Communicator& communicator, std::vector<Packed> packed);

  // Of this process; replicas are numbered from its first one.
  std::span<const ReplicaRange> subtrees() const { return own_; }
  // Where the sum over subtree i is expected, as packed.
  std::byte* of_subtree(std::size_t i) const { return states_.data() + std::int64_t(i) * bytes_; }
  // The sum over all replicas, as packed: where much travels, each rank adds up a part of the
  // bytes for all.
  std::byte* exchange();

 private:
  struct Part {
    std::int64_t begin, end;
    std::int64_t bytes() const { return end - begin; }
  };
  struct Subtree {
    int rank;
    ReplicaRange replicas;  // of the world
  };

  bool is_small() const;
  Part part_of(int rank) const;
  void collect(Part part, std::span<std::byte* const> from);
  void add(Part part, std::span<std::byte* const> from);
  void add_packed(const Packed& packed, Part part, std::span<std::byte* const> from);
  void add_block(DType dtype, std::span<const std::byte* const> x, std::int64_t n,
                 std::byte* out) const;
  void distribute(Part own);

  Communicator& communicator_;
  std::vector<Packed> packed_;
  std::int64_t bytes_ = 0;
  std::vector<Subtree> all_;  // of all ranks, from left to right
  std::vector<ReplicaRange> own_;
  Leased states_, received_, sum_;
};

}  // namespace samegrad
