#include "runtime/world_tree.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/thresholds.h"
#include "kernels/elementwise_fn.h"
#include "kernels/table.h"

namespace samegrad {

WorldTree::WorldTree(std::vector<std::int64_t> firsts, const Halving<>& tree, int rank)
    : firsts_(std::move(firsts)), counts_(firsts_.size() - 1, 0) {
  // Subtrees of one rank: the first and the last leaf begin there.
  struct Owned : Halving<> {
    const WorldTree& world;

    bool is_leaf(TreeRange range) const {
      return Halving::is_leaf(range) ||
             world.owner_of(range.begin) == world.owner_of(last_leaf(range).begin);
    }
  };
  for_each_leaf(Owned{tree, *this}, {0, size()}, [&](const TreeStep& subtree) {
    all_.push_back({size() == 0 ? 0 : owner_of(subtree.range.begin), subtree.range});
  });
  const std::int64_t first = firsts_[std::size_t(rank)];
  for (const Subtree& subtree : all_) {
    ++counts_[std::size_t(subtree.rank)];
    if (subtree.rank != rank) continue;
    own_.push_back({subtree.range.begin - first, subtree.range.end - first});
  }
}

std::int64_t WorldTree::most() const {
  return std::max<std::int64_t>(1, *std::ranges::max_element(counts_));
}

TreeRange WorldTree::after(int rank) const {
  const std::int64_t end = range_of(rank).end;
  std::int64_t last = end;
  for (const Subtree& subtree : all_) {
    if (subtree.rank == rank) last = std::max(last, subtree.range.end);
  }
  return {end, last};
}

int WorldTree::owner_of(std::int64_t first) const {
  return int(std::ranges::upper_bound(firsts_, first) - firsts_.begin()) - 1;
}

void WorldTree::add(DType dtype, std::span<const std::byte* const> x, std::int64_t n,
                    std::byte* out) const {
  const auto width = std::int64_t(size_of(dtype));
  const std::int64_t block = thresholds().all_reduce_block;
  std::vector<const std::byte*> at(x.begin(), x.end());
  for (std::int64_t begin = 0; begin < n; begin += block) {
    const std::int64_t count = std::min(block, n - begin);
    if (dtype == DType::kBFloat16) {
      add_narrow_block(at, count, out + begin * width);
    } else {
      add_block(dtype, at, count, out + begin * width);
    }
    for (const std::byte*& one : at) one += count * width;
  }
}

void WorldTree::add_narrow_block(std::span<const std::byte* const> x, std::int64_t n,
                                 std::byte* out) const {
  constexpr DType kWide = DType::kFloat32;
  const std::int64_t bytes = n * std::int64_t(size_of(kWide));
  const auto memory =
      std::make_unique_for_overwrite<std::byte[]>(std::size_t(bytes) * (x.size() + 1));
  const CastKernel widen = kernels().cast(DType::kBFloat16, kWide);
  std::vector<const std::byte*> wide;
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::byte* to = memory.get() + std::int64_t(i) * bytes;
    widen(x[i], to, n);
    wide.push_back(to);
  }
  std::byte* sum = memory.get() + std::int64_t(x.size()) * bytes;
  add_block(kWide, wide, n, sum);
  kernels().cast(kWide, DType::kBFloat16)(sum, out, n);
}

void WorldTree::add_block(DType dtype, std::span<const std::byte* const> x, std::int64_t n,
                          std::byte* out) const {
  const std::int64_t bytes = n * std::int64_t(size_of(dtype));
  const BinaryKernel kernel = kernels().binary(BinaryFn::k_add, dtype);
  const int levels = kReplicaTree.levels(size()) - 1;  // but for the root's
  const auto partials = std::make_unique_for_overwrite<std::byte[]>(std::size_t(bytes * levels));
  std::array<const std::byte*, kMaxTreeLevels> at{};
  join_subtrees(
      {0, size()}, all_, [&](std::size_t i, int level) { at[std::size_t(level)] = x[i]; },
      [&](int level) {
        std::byte* sum = level == 0 ? out : partials.get() + (level - 1) * bytes;
        kernel(at[std::size_t(level)], at[std::size_t(level) + 1], sum, n, 1, 1);
        at[std::size_t(level)] = sum;
      });
  if (at[0] != out) std::copy_n(at[0], bytes, out);
}

}  // namespace samegrad
