#include "runtime/world_sums.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "base/simd_copy.h"
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

WorldSums::WorldSums(Communicator& communicator) : communicator_(communicator) {
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

// Of all strategies alike: the next one's sums may begin while others still take the last ones.
std::int64_t WorldSums::shared_slot_bytes() const {
  return communicator_.shared()->bytes() / std::int64_t(kSlots) / kLine * kLine;
}

// A slot has the states of all subtrees of a rank, and a sum.
std::int64_t WorldSums::shared_piece_bytes() const {
  return shared_slot_bytes() / (most_subtrees_ + 1) / kLine * kLine;
}

std::int64_t WorldSums::piece_bytes() const {
  if (communicator_.shared()) return shared_piece_bytes();
  return std::clamp(kMessageBytes * communicator_.size(), kLeastPiece, kMostPiece);
}

// What a rank adds up for all.
WorldSums::Part WorldSums::part_of(const WorldPiece& piece, int rank) const {
  if (piece.bytes <= kOneRoundBytes) return {0, piece.bytes};
  const std::int64_t lines = piece.bytes / kLine, ranks = communicator_.size();
  return {lines * rank / ranks * kLine, lines * (rank + 1) / ranks * kLine};
}

// ---- how a sum travels ----

class WorldSums::Way {
 public:
  virtual ~Way() = default;
  virtual void fill(Flight& flight, const Fill& fill) = 0;
  // Once all have filled it: adds up the part that this rank has to.
  virtual void add(Flight& flight) = 0;
  // Once all have added up theirs.
  virtual void take(Flight& flight) = 0;
};

// Each rank reads what the others have written.
class WorldSums::InSharedMemory final : public Way {
 public:
  explicit InSharedMemory(WorldSums& world)
      : world_(world),
        shared_(*world.communicator_.shared()),
        most_(world.shared_piece_bytes()),
        slot_bytes_(world.shared_slot_bytes()),
        sums_(std::size_t(all_alone() ? most_ : std::int64_t(kSlots) * kOneRoundBytes)) {}

  void fill(Flight& flight, const Fill& fill) override {
    flight.number = ++shared_.pieces;
    wait(Stage::kTaken, flight.number - std::int64_t(kSlots));
    states_.clear();
    for (std::size_t i = 0; i < world_.own_.size(); ++i) {
      states_.push_back(state(flight, shared_.rank(), i));
    }
    fill(states_);
    shared_.publish(Stage::kFilled, flight.number);
  }

  void add(Flight& flight) override {
    wait(Stage::kFilled, flight.number);
    const bool alone = adds_alone(flight);
    const WorldPiece& of = flight.piece;
    const Part part = alone ? Part{0, of.bytes} : world_.part_of(of, shared_.rank());
    states_.clear();
    int rank = -1;
    std::size_t i = 0;
    for (const Subtree& subtree : world_.all_) {
      i = subtree.rank == rank ? i + 1 : 0;
      rank = subtree.rank;
      states_.push_back(state(flight, rank, i) + part.begin);
    }
    world_.add(of, part, states_, alone ? own_sum(flight) : sum(flight));
    shared_.publish(Stage::kSummed, flight.number);
    if (all_alone()) flight.take(own_sum(flight));  // while it is in a cache
  }

  void take(Flight& flight) override {
    const bool alone = adds_alone(flight);
    if (!alone) wait(Stage::kSummed, flight.number);
    if (!all_alone()) flight.take(alone ? own_sum(flight) : sum(flight));
    shared_.publish(Stage::kTaken, flight.number);
  }

 private:
  std::size_t slot(const Flight& flight) const { return std::size_t(flight.number) % kSlots; }
  std::byte* state(const Flight& flight, int rank, std::size_t i) const {
    return shared_.data(rank) + std::int64_t(slot(flight)) * slot_bytes_ + std::int64_t(i) * most_;
  }
  // Ranks have those of the slots by turns.
  std::byte* sum(const Flight& flight) const {
    const auto rank = int(slot(flight) % std::size_t(shared_.size()));
    return state(flight, rank, std::size_t(world_.most_subtrees_));
  }
  // What this rank has added up alone.
  std::byte* own_sum(const Flight& flight) const {
    // There is one at a time where all are taken at once.
    return sums_.data() + (all_alone() ? 0 : std::int64_t(slot(flight)) * kOneRoundBytes);
  }
  // Two ranks read from each other as much if each adds up everything.
  bool all_alone() const { return shared_.size() <= 2; }
  bool adds_alone(const Flight& flight) const {
    return all_alone() || flight.piece.bytes <= kOneRoundBytes;
  }

  void wait(Stage stage, std::int64_t count) { world_.communicator_.wait_for(stage, count); }

  WorldSums& world_;
  SharedMemory& shared_;
  const std::int64_t most_, slot_bytes_;
  Leased sums_;
  std::vector<std::byte*> states_;
};

// Each rank sends the others what they add up, and gets their sums.
class WorldSums::InMessages final : public Way {
 public:
  explicit InMessages(WorldSums& world) : world_(world) {}

  void fill(Flight& flight, const Fill& fill) override {
    flight.number = next_++;
    open(flight);
    fill(slot(flight).states);
    collect(flight);
  }

  void add(Flight& flight) override {
    Slot& slot = this->slot(flight);
    slot.collected->wait();
    world_.add(flight.piece, own_part(flight), slot.from, slot.sum);
    distribute(flight);
  }

  void take(Flight& flight) override {
    slot(flight).distributed->wait();
    flight.take(slot(flight).sum);
  }

 private:
  struct Slot {
    Leased memory;
    std::vector<std::byte*> states;  // of the own subtrees: a whole piece each
    std::vector<std::byte*> from;    // of all subtrees: what this rank adds up
    std::byte* sum = nullptr;
    std::unique_ptr<Communicator::Transfer> collected, distributed;
  };

  Communicator& communicator() const { return world_.communicator_; }
  Slot& slot(const Flight& flight) { return slots_[std::size_t(flight.number) % kSlots]; }
  Part own_part(const Flight& flight) const {
    return world_.part_of(flight.piece, communicator().rank());
  }

  // Memory for a piece.
  void open(const Flight& flight) {
    Slot& slot = this->slot(flight);
    const std::int64_t bytes = flight.piece.bytes;
    const Part part = own_part(flight);
    const auto others = std::int64_t(world_.all_.size() - world_.own_.size());
    const std::int64_t all = bytes * (std::ssize(world_.own_) + 1) + others * part.bytes();
    if (slot.memory.size() < std::size_t(all)) slot.memory = Leased(std::size_t(all));
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
  void collect(const Flight& flight) {
    Slot& slot = this->slot(flight);
    const std::int64_t own = own_part(flight).bytes();
    sends_.clear();
    receives_.clear();
    for (int rank = 0; rank < communicator().size(); ++rank) {
      const Part theirs = world_.part_of(flight.piece, rank);
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
  void distribute(const Flight& flight) {
    Slot& slot = this->slot(flight);
    const Part own = own_part(flight);
    sends_.clear();
    receives_.clear();
    const bool travels = flight.piece.bytes > kOneRoundBytes;
    for (int rank = 0; rank < communicator().size() && travels; ++rank) {
      if (rank == communicator().rank()) continue;
      const Part part = world_.part_of(flight.piece, rank);
      if (own.bytes() > 0) sends_.push_back({rank, slot.sum + own.begin, own.bytes()});
      if (part.bytes() > 0) receives_.push_back({rank, slot.sum + part.begin, part.bytes()});
    }
    slot.distributed = communicator().start(sends_, receives_);
  }

  WorldSums& world_;
  std::int64_t next_ = 0;
  std::array<Slot, kSlots> slots_;
  std::vector<Message> sends_, receives_;
};

WorldSums::~WorldSums() = default;

WorldSums::Way& WorldSums::way_of(const WorldPiece& piece) {
  const bool fits = communicator_.shared() && piece.bytes <= shared_piece_bytes();
  if (fits) {
    if (!in_shared_memory_) in_shared_memory_ = std::make_unique<InSharedMemory>(*this);
    return *in_shared_memory_;
  }
  if (!in_messages_) in_messages_ = std::make_unique<InMessages>(*this);
  return *in_messages_;
}

void WorldSums::start(const WorldPiece& piece, const Fill& fill, Take take) {
  communicator_.settle();
  if (std::ranges::any_of(piece.numbers, &Packed::narrow)) {
    start_as_bfloat16(piece, fill, std::move(take));
  } else {
    start_as_it_is(piece, fill, std::move(take));
  }
}

void WorldSums::put(std::byte* to, const std::byte* from, std::int64_t bytes) const {
  if (past_caches_) {
    copy_past_caches(to, from, bytes);
  } else {
    std::copy_n(from, bytes, to);
  }
}

void WorldSums::start_as_it_is(const WorldPiece& piece, const Fill& fill, Take take) {
  Way& way = way_of(piece);
  if (way_ != &way) finish();
  way_ = &way;
  Flight& flight = flights_.emplace_back(Flight{piece, std::move(take), 0});
  past_caches_ = &way == in_shared_memory_.get() && piece.bytes > kOneRoundBytes;
  way.fill(flight, fill);
  if (flights_.size() > 1) add_next();
  if (flights_.size() > 2) take_first();
}

// As the caller sees them large sums are float32, as they travel bfloat16.
void WorldSums::start_as_bfloat16(const WorldPiece& piece, const Fill& fill, Take take) {
  WorldPiece narrow;
  for (const Packed& packed : piece.numbers) {
    narrow.add(packed.narrow ? DType::kBFloat16 : packed.dtype, packed.elements, 0);
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
  const std::size_t bytes = std::size_t(piece.bytes) * std::max<std::size_t>(own_.size(), 1);
  if (wide_.size() < bytes) wide_ = Leased(bytes);
  start_as_it_is(
      narrow,
      [&](std::span<std::byte* const> states) {
        std::vector<std::byte*> wide;
        for (std::size_t i = 0; i < own_.size(); ++i) {
          wide.push_back(wide_.data() + std::int64_t(i) * piece.bytes);
        }
        past_caches_ = false;
        fill(wide);
        for (std::size_t i = 0; i < states.size(); ++i) convert(piece, wide[i], narrow, states[i]);
      },
      [this, convert, piece, narrow, take = std::move(take)](const std::byte* sum) {
        if (wide_.size() < std::size_t(piece.bytes)) wide_ = Leased(std::size_t(piece.bytes));
        convert(narrow, sum, piece, wide_.data());
        take(wide_.data());
      });
}

// Of the one whose turn it is.
void WorldSums::add_next() {
  Flight& flight = *std::ranges::find(flights_, false, &Flight::is_summed);
  way_->add(flight);
  flight.is_summed = true;
}

void WorldSums::take_first() {
  way_->take(flights_.front());
  flights_.pop_front();
}

void WorldSums::finish() {
  while (!flights_.empty()) {
    if (!flights_.back().is_summed) add_next();
    take_first();
  }
}

// ---- adding up ----

void WorldSums::add(const WorldPiece& piece, Part part, std::span<std::byte* const> from,
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

void WorldSums::add_packed(DType dtype, std::int64_t bytes, std::span<std::byte* const> from,
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
void WorldSums::add_narrow_block(std::span<const std::byte* const> x, std::int64_t n,
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

void WorldSums::add_block(DType dtype, std::span<const std::byte* const> x, std::int64_t n,
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
