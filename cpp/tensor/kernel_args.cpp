#include "tensor/kernel_args.h"

#include <algorithm>
#include <cstring>

namespace samegrad {

void Scratch::open_block(std::size_t bytes) {
  while (open_ < blocks_.size() && bytes > blocks_[open_].size()) ++open_;
  if (open_ == blocks_.size()) blocks_.emplace_back(std::max(bytes, kBlockBytes));
  next_ = blocks_[open_].data();
  end_ = next_ + blocks_[open_].size();
  ++open_;
}

#ifdef SAMEGRAD_ASSERTIONS

namespace {

constexpr std::byte kGuard{0xC3};

}  // namespace

void* Scratch::take_checked(std::size_t bytes) {
  auto* piece = static_cast<std::byte*>(take_unchecked(bytes + (has_guards_ ? kAlignment : 0)));
  std::memset(piece, int(pattern_), bytes);
  if (has_guards_) {
    guards_.push_back(piece + bytes);
    std::fill_n(guards_.back(), kAlignment, kGuard);
  }
  return piece;
}

void Scratch::check_guards(std::size_t first) {
  for (; guards_.size() > first; guards_.pop_back()) {
    const std::byte* guard = guards_.back();
    const bool intact =
        std::all_of(guard, guard + kAlignment, [](std::byte b) { return b == kGuard; });
    SG_ASSERT(intact, "a kernel writes behind its scratch");
  }
}

#endif

int replica_of(const ReplicaContext& context, int symbol, std::int64_t example) {
  int replica = context.replica;
  const std::int64_t at = context.first_example[std::size_t(symbol)] + example;
  for (const ReplicaContext& one : context.joint) {
    const std::int64_t first = one.first_example[std::size_t(symbol)];
    if (first > at) break;
    if (one.local_examples[std::size_t(symbol)] > 0) replica = one.replica;
  }
  return replica;
}

std::string place_of(const KernelArgs& args, const View& operand, std::int64_t flat) {
  Shape position = operand.shape;
  for (int axis = position.rank() - 1; axis >= 0; --axis) {
    position[axis] = flat % operand.shape[axis];
    flat /= operand.shape[axis];
  }
  std::string place;
  int replica = args.replica_context.replica;
  // A tile starts somewhere in the replica's share, the share somewhere in the batch.
  if (operand.example_axis >= 0 && args.examples > 0) {
    const std::int64_t rows = operand.shape[operand.example_axis] / args.examples;
    const std::int64_t share = args.replica_context.first_example[std::size_t(args.symbol)];
    const std::int64_t example = rows > 0 ? position[operand.example_axis] / rows : 0;
    replica = replica_of(args.replica_context, args.symbol, args.first_example + example);
    position[operand.example_axis] += rows * (share + args.first_example);
    place = " of the batch";
  }
  place = "position " + to_string(position) + place;
  if (args.replica_context.replicas > 1) place += ", on replica " + std::to_string(replica);
  return place;
}

}  // namespace samegrad
