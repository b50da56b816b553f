#include "runtime/world_sum.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "base/thresholds.h"
#include "kernels/elementwise_fn.h"
#include "kernels/table.h"
#include "runtime/layout.h"
#include "runtime/threads.h"

namespace samegrad {
namespace {

using Stage = SharedMemory::Stage;

// Up to here a second round of messages costs more than adding up everywhere what all have sent.
constexpr std::int64_t kOneRoundBytes = 16 << 10;
constexpr std::int64_t kLine = 64;
// Of messages: each rank gets so many bytes of a piece from each other, within bounds.
constexpr std::int64_t kMessageBytes = 64 << 10, kLeastPiece = 1 << 20, kMostPiece = 64 << 20;
// Pieces that are on their way: one is made, one added up, one used, and one for who is ahead.
constexpr std::size_t kSlots = 4;

std::atomic<bool> as_bfloat16{false};

}  // namespace

void set_sums_as_bfloat16(bool yes) {
  as_bfloat16 = yes;
}

bool sums_as_bfloat16() {
  return as_bfloat16;
}

std::int64_t WorldPiece::add(DType dtype, std::int64_t elements, std::int64_t sum_bytes) {
  const std::int64_t at = bytes;
  const bool narrow = sums_as_bfloat16() && dtype == DType::kFloat32 && sum_bytes > kOneRoundBytes;
  numbers.push_back({dtype, at, elements, narrow});
  bytes += aligned(elements * std::int64_t(size_of(dtype)));
  return at;
}

WorldSum::WorldSum(Communicator& communicator) : communicator_(communicator) {
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const auto found = maximal_subtrees(communicator.replicas(), communicator.replicas_of(rank));
    most_subtrees_ = std::max(most_subtrees_, std::ssize(found));
    for (const ReplicaRange& subtree : found) {
      all_.push_back({rank, subtree});
      if (rank != communicator.rank()) continue;
      const int first = communicator.own().begin;
      own_.push_back({subtree.begin - first, subtree.end - first});
    }
  }
}

// The states of all subtrees of a rank and a sum, as often as there are slots.
std::int64_t WorldSum::shared_piece_bytes() const {
  const std::int64_t all = communicator_.shared()->bytes() / std::int64_t(kSlots);
  return all / (most_subtrees_ + 1) / kLine * kLine;
}

std::int64_t WorldSum::piece_bytes() const {
  if (communicator_.shared()) return shared_piece_bytes();
  return std::clamp(kMessageBytes * communicator_.size(), kLeastPiece, kMostPiece);
}

// What a rank adds up for all.
WorldSum::Part WorldSum::part_of(const WorldPiece& piece, int rank) const {
  if (piece.bytes <= kOneRoundBytes) return {0, piece.bytes};
  const std::int64_t lines = piece.bytes / kLine, ranks = communicator_.size();
  return {lines * rank / ranks * kLine, lines * (rank + 1) / ranks * kLine};
}

// ---- each rank reads what the others have written ----

class WorldSum::InSharedMemory {
 public:
  InSharedMemory(WorldSum& world, std::span<const WorldPiece> pieces)
      : world_(world),
        shared_(*world.communicator_.shared()),
        pieces_(pieces),
        first_(shared_.pieces),
        most_(world.shared_piece_bytes()) {
    std::int64_t largest = 0;
    for (const WorldPiece& piece : pieces) largest = std::max(largest, piece.bytes);
    sum_ = Leased(std::size_t(std::max<std::int64_t>(largest, 1)));
  }

  void run(const Fill& fill, const Take& take) {
    for (std::size_t t = 0; t < pieces_.size() + 2; ++t) {
      if (t < pieces_.size()) this->fill(t, fill);
      if (t >= 1 && t <= pieces_.size()) add(t - 1, take);
      if (t >= 2) this->take(t - 2, take);
    }
    shared_.pieces += std::ssize(pieces_);
  }

 private:
  std::int64_t number(std::size_t piece) const { return first_ + std::int64_t(piece) + 1; }
  std::byte* state(std::size_t piece, int rank, std::size_t i) const {
    const auto slot = std::int64_t((std::size_t(first_) + piece) % kSlots);
    return shared_.data(rank) + (slot * (world_.most_subtrees_ + 1) + std::int64_t(i)) * most_;
  }
  // Ranks have those of the slots by turns.
  std::byte* sum(std::size_t piece) const {
    const auto rank = int((std::size_t(first_) + piece) % kSlots % std::size_t(shared_.size()));
    return state(piece, rank, std::size_t(world_.most_subtrees_));
  }
  // Two ranks read from each other as much if each adds up everything.
  bool adds_alone(std::size_t piece) const {
    return shared_.size() == 2 || pieces_[piece].bytes <= kOneRoundBytes;
  }

  void fill(std::size_t piece, const Fill& fill) {
    wait(Stage::kTaken, number(piece) - std::int64_t(kSlots));
    states_.clear();
    for (std::size_t i = 0; i < world_.own_.size(); ++i) {
      states_.push_back(state(piece, shared_.rank(), i));
    }
    fill(piece, states_);
    shared_.publish(Stage::kFilled, number(piece));
  }

  void add(std::size_t piece, const Take& take) {
    wait(Stage::kFilled, number(piece));
    const bool alone = adds_alone(piece);
    const WorldPiece& of = pieces_[piece];
    const Part part = alone ? Part{0, of.bytes} : world_.part_of(of, shared_.rank());
    states_.clear();
    int rank = -1;
    std::size_t i = 0;
    for (const Subtree& subtree : world_.all_) {
      i = subtree.rank == rank ? i + 1 : 0;
      rank = subtree.rank;
      states_.push_back(state(piece, rank, i) + part.begin);
    }
    world_.add(of, part, states_, alone ? sum_.data() : sum(piece));
    shared_.publish(Stage::kSummed, number(piece));
    if (alone) take(piece, sum_.data());
  }

  void take(std::size_t piece, const Take& take) {
    if (!adds_alone(piece)) {
      wait(Stage::kSummed, number(piece));
      take(piece, sum(piece));
    }
    shared_.publish(Stage::kTaken, number(piece));
  }

  void wait(Stage stage, std::int64_t count) { world_.communicator_.wait_for(stage, count); }

  WorldSum& world_;
  SharedMemory& shared_;
  const std::span<const WorldPiece> pieces_;
  const std::int64_t first_, most_;
  Leased sum_;
  std::vector<std::byte*> states_;
};

// ---- each rank sends the others what they add up, and gets their sums ----

struct WorldSum::Slot {
  Leased memory;
  std::vector<std::byte*> states;  // of the own subtrees: a whole piece each
  std::vector<std::byte*> from;    // of all subtrees: what this rank adds up
  std::byte* sum = nullptr;
  std::unique_ptr<Communicator::Transfer> collected, distributed;
};

class WorldSum::InMessages {
 public:
  InMessages(WorldSum& world, std::span<const WorldPiece> pieces)
      : world_(world), pieces_(pieces) {}

  void run(const Fill& fill, const Take& take) {
    for (std::size_t t = 0; t < pieces_.size() + 2; ++t) {
      if (t < pieces_.size()) {
        open(t);
        fill(t, slot(t).states);
        collect(t);
      }
      if (t >= 1 && t <= pieces_.size()) {
        slot(t - 1).collected->wait();
        world_.add(pieces_[t - 1], own_part(t - 1), slot(t - 1).from, slot(t - 1).sum);
        distribute(t - 1);
      }
      if (t >= 2) {
        slot(t - 2).distributed->wait();
        take(t - 2, slot(t - 2).sum);
      }
    }
  }

 private:
  Communicator& communicator() const { return world_.communicator_; }
  Slot& slot(std::size_t piece) { return slots_[piece % slots_.size()]; }
  Part own_part(std::size_t piece) const {
    return world_.part_of(pieces_[piece], communicator().rank());
  }

  // Memory for a piece.
  void open(std::size_t piece) {
    Slot& slot = this->slot(piece);
    const std::int64_t bytes = pieces_[piece].bytes;
    const Part part = own_part(piece);
    const auto others = std::int64_t(world_.all_.size() - world_.own_.size());
    const std::int64_t all = bytes * (std::ssize(world_.own_) + 1) + others * part.bytes();
    if (!slot.sum || slot.memory.size() < std::size_t(all)) {
      slot.memory = Leased(std::size_t(std::max<std::int64_t>(all, 1)));
    }
    slot.sum = slot.memory.data();
    slot.states.clear();
    slot.from.clear();
    std::byte* next = slot.sum + bytes;
    for (std::size_t i = 0; i < world_.own_.size(); ++i, next += bytes) slot.states.push_back(next);
    std::size_t mine = 0;
    for (const Subtree& subtree : world_.all_) {
      if (subtree.rank == communicator().rank()) {
        slot.from.push_back(slot.states[mine++] + part.begin);
        continue;
      }
      slot.from.push_back(next);
      next += part.bytes();
    }
  }

  // Everybody's states of what this rank adds up.
  void collect(std::size_t piece) {
    Slot& slot = this->slot(piece);
    const std::int64_t own = own_part(piece).bytes();
    sends_.clear();
    receives_.clear();
    for (int rank = 0; rank < communicator().size(); ++rank) {
      const Part theirs = world_.part_of(pieces_[piece], rank);
      if (rank == communicator().rank() || theirs.bytes() == 0) continue;
      for (std::byte* state : slot.states) {
        sends_.push_back({rank, state + theirs.begin, theirs.bytes()});
      }
    }
    for (std::size_t i = 0; i < world_.all_.size() && own > 0; ++i) {
      if (world_.all_[i].rank == communicator().rank()) continue;
      receives_.push_back({world_.all_[i].rank, slot.from[i], own});
    }
    slot.collected = communicator().start(sends_, receives_);
  }

  // The sum's parts from those who added them up.
  void distribute(std::size_t piece) {
    Slot& slot = this->slot(piece);
    const Part own = own_part(piece);
    sends_.clear();
    receives_.clear();
    const bool travels = pieces_[piece].bytes > kOneRoundBytes;
    for (int rank = 0; rank < communicator().size() && travels; ++rank) {
      if (rank == communicator().rank()) continue;
      const Part part = world_.part_of(pieces_[piece], rank);
      if (own.bytes() > 0) sends_.push_back({rank, slot.sum + own.begin, own.bytes()});
      if (part.bytes() > 0) receives_.push_back({rank, slot.sum + part.begin, part.bytes()});
    }
    slot.distributed = communicator().start(sends_, receives_);
  }

  WorldSum& world_;
  const std::span<const WorldPiece> pieces_;
  std::array<Slot, kSlots> slots_;
  std::vector<Message> sends_, receives_;
};

void WorldSum::run(std::span<const WorldPiece> pieces, const Fill& fill, const Take& take) {
  communicator_.settle();
  const bool narrow = std::ranges::any_of(pieces, [](const WorldPiece& piece) {
    return std::ranges::any_of(piece.numbers, &Packed::narrow);
  });
  if (narrow) return run_as_bfloat16(pieces, fill, take);
  run_pieces(pieces, fill, take);
}

// As the caller sees them large sums are float32, as they travel bfloat16.
void WorldSum::run_as_bfloat16(std::span<const WorldPiece> pieces, const Fill& fill,
                               const Take& take) {
  std::vector<WorldPiece> narrow;
  std::int64_t largest = 1;
  for (const WorldPiece& piece : pieces) {
    WorldPiece& made = narrow.emplace_back();
    for (const Packed& packed : piece.numbers) {
      made.add(packed.narrow ? DType::kBFloat16 : packed.dtype, packed.elements, 0);
    }
    largest = std::max(largest, piece.bytes);
  }
  const auto convert = [](const WorldPiece& from, const std::byte* x, const WorldPiece& to,
                          std::byte* y) {
    for (std::size_t i = 0; i < from.numbers.size(); ++i) {
      const Packed &a = from.numbers[i], &b = to.numbers[i];
      if (a.dtype == b.dtype) {
        std::copy_n(x + a.offset, a.elements * std::int64_t(size_of(a.dtype)), y + b.offset);
      } else {
        kernels().cast(a.dtype, b.dtype)(x + a.offset, y + b.offset, a.elements);
      }
    }
  };
  const Leased memory(std::size_t(largest) * std::max<std::size_t>(own_.size(), 1));
  std::vector<std::byte*> wide;
  for (std::size_t i = 0; i < own_.size(); ++i) {
    wide.push_back(memory.data() + std::int64_t(i) * largest);
  }
  run_pieces(
      narrow,
      [&](std::size_t piece, std::span<std::byte* const> states) {
        fill(piece, wide);
        for (std::size_t i = 0; i < states.size(); ++i) {
          convert(pieces[piece], wide[i], narrow[piece], states[i]);
        }
      },
      [&](std::size_t piece, const std::byte* sum) {
        convert(narrow[piece], sum, pieces[piece], memory.data());
        take(piece, memory.data());
      });
}

void WorldSum::run_pieces(std::span<const WorldPiece> pieces, const Fill& fill, const Take& take) {
  const bool fits = communicator_.shared() && std::ranges::all_of(pieces, [&](const auto& piece) {
                      return piece.bytes <= shared_piece_bytes();
                    });
  if (fits) {
    InSharedMemory(*this, pieces).run(fill, take);
  } else {
    InMessages(*this, pieces).run(fill, take);
  }
}

// ---- adding up ----

void WorldSum::add(const WorldPiece& piece, Part part, std::span<std::byte* const> from,
                   std::byte* sum) const {
  std::vector<std::byte*> at;
  for (const Packed& packed : piece.numbers) {
    const std::int64_t end = packed.offset + packed.elements * std::int64_t(size_of(packed.dtype));
    const Part overlap{std::max(part.begin, packed.offset), std::min(part.end, end)};
    if (overlap.begin >= overlap.end) continue;
    at.clear();
    for (std::byte* state : from) at.push_back(state + (overlap.begin - part.begin));
    add_packed(packed.dtype, overlap.bytes(), at, sum + overlap.begin);
  }
}

void WorldSum::add_packed(DType dtype, std::int64_t bytes, std::span<std::byte* const> from,
                          std::byte* sum) const {
  const auto width = std::int64_t(size_of(dtype));
  const std::int64_t elements = bytes / width, block = thresholds().all_reduce_block;
  const bool parallel = bytes * std::int64_t(from.size()) > thresholds().parallel_all_reduce_bytes;
  const ParallelFor& loops = parallel ? parallel_loops() : serial_loops();
  loops.run((elements + block - 1) / block, [&](std::int64_t i) {
    const std::int64_t begin = i * block, n = std::min(block, elements - begin);
    std::vector<const std::byte*> x;
    x.reserve(from.size());
    for (const std::byte* state : from) x.push_back(state + begin * width);
    if (dtype == DType::kBFloat16) return add_narrow_block(x, n, sum + begin * width);
    add_block(dtype, x, n, sum + begin * width);
  });
}

// Added in float32: the sum is rounded once.
void WorldSum::add_narrow_block(std::span<const std::byte* const> x, std::int64_t n,
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

void WorldSum::add_block(DType dtype, std::span<const std::byte* const> x, std::int64_t n,
                         std::byte* out) const {
  const std::int64_t bytes = n * std::int64_t(size_of(dtype));
  const BinaryKernel kernel = kernels().binary(BinaryFn::k_add, dtype);
  const int levels = tree_levels(communicator_.replicas(), 1) - 1;  // but for the root's
  const auto partials = std::make_unique_for_overwrite<std::byte[]>(std::size_t(bytes * levels));
  std::array<const std::byte*, 64> at{};
  std::size_t next = 0;
  join_subtrees<Subtree>(
      {0, communicator_.replicas()}, 0, all_, next,
      [&](std::size_t i, int level) { at[std::size_t(level)] = x[i]; },
      [&](int level) {
        std::byte* sum = level == 0 ? out : partials.get() + (level - 1) * bytes;
        kernel(at[std::size_t(level)], at[std::size_t(level) + 1], sum, n, 1, 1);
        at[std::size_t(level)] = sum;
      });
  if (at[0] != out) std::copy_n(at[0], bytes, out);
}

}  // namespace samegrad
