#include "runtime/world_sum.h"

#include <algorithm>
#include <array>

#include "base/thresholds.h"
#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "runtime/layout.h"
#include "runtime/subtrees.h"
#include "runtime/threads.h"

namespace samegrad {
namespace {

// Up to here a second round of messages costs more than adding up everywhere what all have sent.
constexpr std::int64_t kOneRoundBytes = 16 << 10;
constexpr std::int64_t kLine = 64;

}  // namespace

WorldSum::WorldSum(Communicator& communicator, std::vector<Packed> packed)
    : communicator_(communicator), packed_(std::move(packed)) {
  for (const Packed& p : packed_) {
    bytes_ = std::max(bytes_, p.offset + aligned(p.elements * std::int64_t(size_of(p.dtype))));
  }
  for (int rank = 0; rank < communicator.size(); ++rank) {
    for (const ReplicaRange& subtree :
         maximal_subtrees(communicator.replicas(), communicator.replicas_of(rank))) {
      all_.push_back({rank, subtree});
      if (rank != communicator.rank()) continue;
      const int first = communicator.own().begin;
      own_.push_back({subtree.begin - first, subtree.end - first});
    }
  }
  states_ = Leased(std::size_t(bytes_) * std::max<std::size_t>(own_.size(), 1));
  sum_ = Leased(std::size_t(bytes_));
}

bool WorldSum::is_small() const {
  return bytes_ <= kOneRoundBytes;
}

// What a rank adds up for all.
WorldSum::Part WorldSum::part_of(int rank) const {
  if (is_small()) return {0, bytes_};
  const std::int64_t lines = bytes_ / kLine, ranks = communicator_.size();
  return {lines * rank / ranks * kLine, lines * (rank + 1) / ranks * kLine};
}

std::byte* WorldSum::exchange() {
  const Part part = part_of(communicator_.rank());
  const std::size_t others = all_.size() - own_.size();
  received_ = Leased(std::max<std::size_t>(1, others * std::size_t(part.bytes())));
  // Where the part of each subtree lies, or comes to lie.
  std::vector<std::byte*> from;
  std::size_t mine = 0, theirs = 0;
  for (const Subtree& subtree : all_) {
    from.push_back(subtree.rank == communicator_.rank()
                       ? of_subtree(mine++) + part.begin
                       : received_.data() + std::int64_t(theirs++) * part.bytes());
  }
  collect(part, from);
  add(part, from);
  if (!is_small()) distribute(part);
  return sum_.data();
}

// Everybody's states of what this rank adds up.
void WorldSum::collect(Part part, std::span<std::byte* const> from) {
  std::vector<Message> sends, receives;
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    const Part theirs = part_of(rank);
    if (rank == communicator_.rank() || theirs.bytes() == 0) continue;
    for (std::size_t i = 0; i < own_.size(); ++i) {
      sends.push_back({rank, of_subtree(i) + theirs.begin, theirs.bytes()});
    }
  }
  for (std::size_t i = 0; i < all_.size() && part.bytes() > 0; ++i) {
    if (all_[i].rank == communicator_.rank()) continue;
    receives.push_back({all_[i].rank, from[i], part.bytes()});
  }
  communicator_.exchange(sends, receives);
}

void WorldSum::add(Part part, std::span<std::byte* const> from) {
  for (const Packed& packed : packed_) {
    const std::int64_t end = packed.offset + packed.elements * std::int64_t(size_of(packed.dtype));
    const Part overlap{std::max(part.begin, packed.offset), std::min(part.end, end)};
    if (overlap.begin >= overlap.end) continue;
    std::vector<std::byte*> at;
    for (std::byte* state : from) at.push_back(state + (overlap.begin - part.begin));
    add_packed(packed, overlap, at);
  }
}

void WorldSum::add_packed(const Packed& packed, Part part, std::span<std::byte* const> from) {
  const auto width = std::int64_t(size_of(packed.dtype));
  const std::int64_t elements = part.bytes() / width, block = thresholds().all_reduce_block;
  const bool parallel =
      part.bytes() * std::int64_t(from.size()) > thresholds().parallel_all_reduce_bytes;
  const ParallelFor& loops = parallel ? parallel_loops() : serial_loops();
  loops.run((elements + block - 1) / block, [&](std::int64_t i) {
    const std::int64_t begin = i * block, n = std::min(block, elements - begin);
    std::vector<const std::byte*> x;
    for (const std::byte* state : from) x.push_back(state + begin * width);
    add_block(packed.dtype, x, n, sum_.data() + part.begin + begin * width);
  });
}

void WorldSum::add_block(DType dtype, std::span<const std::byte* const> x, std::int64_t n,
                         std::byte* out) const {
  const std::int64_t bytes = n * std::int64_t(size_of(dtype));
  const BinaryKernel kernel = kernels().binary(BinaryFn::k_add, dtype);
  std::vector<std::byte> partials(std::size_t(bytes) *
                                  std::size_t(tree_levels(communicator_.replicas(), 1)));
  std::array<const std::byte*, 64> at{};
  std::size_t next = 0;
  join_subtrees<Subtree>(
      {0, communicator_.replicas()}, 0, all_, next,
      [&](std::size_t i, int level) { at[std::size_t(level)] = x[i]; },
      [&](int level) {
        std::byte* sum = level == 0 ? out : partials.data() + level * bytes;
        kernel(at[std::size_t(level)], at[std::size_t(level) + 1], sum, n, 1, 1);
        at[std::size_t(level)] = sum;
      });
  if (at[0] != out) std::copy_n(at[0], bytes, out);
}

// The sum's parts from those who added them up.
void WorldSum::distribute(Part own) {
  std::vector<Message> sends, receives;
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    if (rank == communicator_.rank()) continue;
    const Part part = part_of(rank);
    if (own.bytes() > 0) sends.push_back({rank, sum_.data() + own.begin, own.bytes()});
    if (part.bytes() > 0) receives.push_back({rank, sum_.data() + part.begin, part.bytes()});
  }
  communicator_.exchange(sends, receives);
}

}  // namespace samegrad
