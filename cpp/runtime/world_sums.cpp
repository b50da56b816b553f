#include "runtime/world_sums.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "base/error.h"
#include "base/rounding.h"
#include "base/streaming_copy.h"
#include "base/thresholds.h"
#include "kernels/table.h"
#include "runtime/layout.h"
#include "runtime/threads.h"

namespace samegrad {
namespace {

using Stage = SharedMemory::Stage;

// Up to here a second round of messages costs more than adding up everywhere what all have sent.
constexpr std::int64_t kOneRoundBytes = 16 << 10;
constexpr std::int64_t kLine = 64;
constexpr std::int64_t kGrain = 64;  // elements: shares begin with a line, of any type
// By messages, each rank gets so many bytes of a bucket from each other one, within bounds.
constexpr std::int64_t kMessageBytes = 64 << 10, kMinBucket = 1 << 20, kMaxBucket = 64 << 20;
// Buckets in flight: one is made, one summed, one used, and one is for a rank that is ahead.
constexpr std::size_t kSlots = 4;

std::atomic<bool> as_bfloat16{false};

}  // namespace

void set_sums_as_bfloat16(bool yes) {
  as_bfloat16 = yes;
}

bool sums_as_bfloat16() {
  return as_bfloat16;
}

std::int64_t Bucket::add(DType dtype, std::int64_t elements, std::int64_t sum_bytes,
                         const WorldTree& tree) {
  const std::int64_t at = bytes;
  const bool narrow = sums_as_bfloat16() && dtype == DType::kFloat32 && sum_bytes > kOneRoundBytes;
  numbers.push_back({dtype, at, elements, narrow, &tree});
  bytes += aligned(elements * std::int64_t(size_of(dtype)));
  return at;
}

std::int64_t Bucket::states_of(int rank) const {
  std::int64_t most = 0;
  for (const PackedSum& packed : numbers) most = std::max(most, packed.tree->subtrees_of(rank));
  return most;
}

std::int64_t Bucket::add_shared(DType dtype, std::int64_t elements, std::int64_t sum_bytes,
                                const WorldTree& tree) {
  add(dtype, elements, sum_bytes, tree);
  PackedSum& numbers_of = numbers.back();
  if (numbers_of.narrow) {
    numbers_of.dtype = DType::kBFloat16;
    bytes = numbers_of.offset + aligned(elements * std::int64_t(size_of(DType::kBFloat16)));
  }
  return numbers_of.offset;
}

WorldSums::WorldSums(Communicator& communicator, std::int64_t most_subtrees)
    : communicator_(communicator), most_subtrees_(most_subtrees) {}

// Equal for all strategies: the next one's sums may begin while others still take the last ones.
std::int64_t WorldSums::shared_slot_bytes() const {
  return communicator_.shared()->bytes() / std::int64_t(kSlots) / kLine * kLine;
}

// A slot has the states of all subtrees of a rank, and a sum.
std::int64_t WorldSums::shared_bucket_bytes() const {
  return shared_slot_bytes() / (most_subtrees_ + 1) / kLine * kLine;
}

std::int64_t WorldSums::shared_bytes() const {
  return communicator_.shared() ? shared_bucket_bytes() : 0;
}

std::int64_t WorldSums::bucket_bytes() const {
  if (communicator_.shared()) return shared_bucket_bytes();
  return std::clamp(kMessageBytes * communicator_.size(), kMinBucket, kMaxBucket);
}

// The part of a bucket that a rank sums for all.
WorldSums::ByteRange WorldSums::part_of(const Bucket& bucket, int rank) const {
  if (bucket.bytes <= kOneRoundBytes) return {0, bucket.bytes};
  const std::int64_t lines = bucket.bytes / kLine, ranks = communicator_.size();
  return {lines * rank / ranks * kLine, lines * (rank + 1) / ranks * kLine};
}

Shard WorldSums::own_shard(std::int64_t elements) const {
  const std::int64_t rank = communicator_.rank(), ranks = communicator_.size();
  const auto bound = [&](std::int64_t r) {
    return r == ranks ? elements : elements * r / ranks / kGrain * kGrain;
  };
  return {bound(rank), bound(rank + 1)};
}

// ---- how a sum travels ----

class WorldSums::Transport {
 public:
  virtual ~Transport() = default;
  virtual void fill(InFlightBucket& flight, const BucketFill& fill) = 0;
  // True if all ranks have filled it.
  virtual bool is_filled(const InFlightBucket& /*flight*/) const { return false; }
  // Once all have filled it: adds up the part that this rank has to.
  virtual void add(InFlightBucket& flight) = 0;
  // Once all have summed theirs.
  virtual void take(InFlightBucket& flight) = 0;
  // Once this rank has taken all: what others have to do for it.
  virtual void finish() {}
};

// Each rank reads what the others have written.
class WorldSums::SharedMemoryTransport final : public Transport {
 public:
  explicit SharedMemoryTransport(WorldSums& world)
      : world_(world),
        shared_(*world.communicator_.shared()),
        most_(world.shared_bucket_bytes()),
        slot_bytes_(world.shared_slot_bytes()),
        sums_(std::size_t(all_alone() ? most_ : std::int64_t(kSlots) * kOneRoundBytes)) {}

  void fill(InFlightBucket& flight, const BucketFill& fill) override {
    flight.number = ++shared_.buckets;
    wait(Stage::kTaken, flight.number - std::int64_t(kSlots));
    find_states(flight, 0);
    fill(states_[std::size_t(shared_.rank())]);
    shared_.publish(Stage::kFilled, flight.number);
  }

  bool is_filled(const InFlightBucket& flight) const override {
    return shared_.all_at(Stage::kFilled, flight.number);
  }

  void add(InFlightBucket& flight) override {
    wait(Stage::kFilled, flight.number);
    if (flight.complete_shard) {
      find_states(flight, 0);
      return flight.complete_shard(Summands(states_));
    }
    const bool alone = adds_alone(flight);
    const Bucket& of = flight.bucket;
    const ByteRange part = alone ? ByteRange{0, of.bytes} : world_.part_of(of, shared_.rank());
    find_states(flight, part.begin);
    world_.add(of, part, states_, alone ? own_sum(flight) : sum(flight));
    shared_.publish(Stage::kSummed, flight.number);
    if (all_alone()) flight.take(own_sum(flight));  // while it is in a cache
  }

  void take(InFlightBucket& flight) override {
    if (flight.complete_shard) {
      last_shared_ = flight.number;
    } else {
      const bool alone = adds_alone(flight);
      if (!alone) wait(Stage::kSummed, flight.number);
      if (!all_alone()) flight.take(alone ? own_sum(flight) : sum(flight));
    }
    shared_.publish(Stage::kTaken, flight.number);
  }

  void finish() override {
    if (last_shared_) wait(Stage::kTaken, std::exchange(last_shared_, 0));
  }

 private:
  // Finds all states, from some byte of the bucket on.
  void find_states(const InFlightBucket& flight, std::int64_t from) {
    states_.resize(std::size_t(shared_.size()));
    for (int rank = 0; rank < shared_.size(); ++rank) {
      std::vector<std::byte*>& own = states_[std::size_t(rank)];
      own.clear();
      for (std::int64_t i = 0; i < flight.bucket.states_of(rank); ++i) {
        own.push_back(state(flight, rank, std::size_t(i)) + from);
      }
    }
  }
  std::size_t slot(const InFlightBucket& flight) const {
    return std::size_t(flight.number) % kSlots;
  }
  std::byte* state(const InFlightBucket& flight, int rank, std::size_t i) const {
    return shared_.data(rank) + std::int64_t(slot(flight)) * slot_bytes_ + std::int64_t(i) * most_;
  }
  // Ranks have those of the slots by turns.
  std::byte* sum(const InFlightBucket& flight) const {
    const auto rank = int(slot(flight) % std::size_t(shared_.size()));
    return state(flight, rank, std::size_t(world_.most_subtrees_));
  }
  // The sum that this rank has made by itself.
  std::byte* own_sum(const InFlightBucket& flight) const {
    // There is one at a time where all are taken at once.
    return sums_.data() + (all_alone() ? 0 : std::int64_t(slot(flight)) * kOneRoundBytes);
  }
  // Two ranks read from each other as much if each adds up everything.
  bool all_alone() const { return shared_.size() <= 2; }
  bool adds_alone(const InFlightBucket& flight) const {
    return all_alone() || flight.bucket.bytes <= kOneRoundBytes;
  }

  void wait(Stage stage, std::int64_t count) { world_.communicator_.wait_for(stage, count); }

  WorldSums& world_;
  SharedMemory& shared_;
  const std::int64_t most_, slot_bytes_;
  PooledBuffer sums_;
  States states_;
  std::int64_t last_shared_ = 0;  // of which each rank takes its shares; 0: none since finish()
};

// Each rank sends the others what they add up, and gets their sums.
class WorldSums::MessageTransport final : public Transport {
 public:
  explicit MessageTransport(WorldSums& world) : world_(world) {}

  void fill(InFlightBucket& flight, const BucketFill& fill) override {
    flight.number = next_++;
    open(flight);
    fill(slot(flight).own);
    collect(flight);
  }

  void add(InFlightBucket& flight) override {
    Slot& slot = this->slot(flight);
    slot.collected->wait();
    world_.add(flight.bucket, own_part(flight), slot.from, slot.sum);
    distribute(flight);
  }

  void take(InFlightBucket& flight) override {
    slot(flight).distributed->wait();
    flight.take(slot(flight).sum);
  }

 private:
  struct Slot {
    PooledBuffer memory;
    std::vector<std::byte*> own;  // states: a whole bucket each
    States from;                  // what this rank adds up of all states
    std::byte* sum = nullptr;
    std::unique_ptr<Communicator::Transfer> collected, distributed;
  };

  Communicator& communicator() const { return world_.communicator_; }
  Slot& slot(const InFlightBucket& flight) { return slots_[std::size_t(flight.number) % kSlots]; }
  ByteRange own_part(const InFlightBucket& flight) const {
    return world_.part_of(flight.bucket, communicator().rank());
  }

  // Memory for a bucket.
  void open(const InFlightBucket& flight) {
    Slot& slot = this->slot(flight);
    const std::int64_t bytes = flight.bucket.bytes;
    const ByteRange part = own_part(flight);
    const auto ranks = std::size_t(communicator().size());
    const int rank = communicator().rank();
    const std::int64_t own = flight.bucket.states_of(rank);
    std::int64_t others = -own;
    for (std::size_t r = 0; r < ranks; ++r) others += flight.bucket.states_of(int(r));
    const std::int64_t all = bytes * (own + 1) + others * part.bytes();
    if (slot.memory.size() < std::size_t(all)) slot.memory = PooledBuffer(std::size_t(all));
    slot.sum = slot.memory.data();
    slot.own.clear();
    slot.from.assign(ranks, {});
    std::byte* next = slot.sum + bytes;
    for (std::int64_t i = 0; i < own; ++i, next += bytes) slot.own.push_back(next);
    for (std::size_t r = 0; r < ranks; ++r) {
      for (std::int64_t i = 0; i < flight.bucket.states_of(int(r)); ++i) {
        const bool is_own = int(r) == rank;
        slot.from[r].push_back(is_own ? slot.own[std::size_t(i)] + part.begin : next);
        if (!is_own) next += part.bytes();
      }
    }
  }

  // Everybody's states of what this rank adds up.
  void collect(const InFlightBucket& flight) {
    Slot& slot = this->slot(flight);
    const std::int64_t own = own_part(flight).bytes();
    sends_.clear();
    receives_.clear();
    for (int rank = 0; rank < communicator().size(); ++rank) {
      const ByteRange theirs = world_.part_of(flight.bucket, rank);
      if (rank == communicator().rank() || theirs.bytes() == 0) continue;
      for (std::byte* state : slot.own) {
        sends_.push_back({rank, state + theirs.begin, theirs.bytes()});
      }
    }
    for (int rank = 0; rank < communicator().size() && own > 0; ++rank) {
      if (rank == communicator().rank()) continue;
      for (std::byte* state : slot.from[std::size_t(rank)]) receives_.push_back({rank, state, own});
    }
    slot.collected = communicator().start(sends_, receives_);
  }

  // Receives the parts of the sum from the ranks that summed them.
  void distribute(const InFlightBucket& flight) {
    Slot& slot = this->slot(flight);
    const ByteRange own = own_part(flight);
    sends_.clear();
    receives_.clear();
    const bool travels = flight.bucket.bytes > kOneRoundBytes;
    for (int rank = 0; rank < communicator().size() && travels; ++rank) {
      if (rank == communicator().rank()) continue;
      const ByteRange part = world_.part_of(flight.bucket, rank);
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

WorldSums::Transport& WorldSums::shared_transport() {
  if (!shared_memory_transport_)
    shared_memory_transport_ = std::make_unique<SharedMemoryTransport>(*this);
  return *shared_memory_transport_;
}

WorldSums::Transport& WorldSums::transport_of(const Bucket& bucket) {
  if (communicator_.shared() && bucket.bytes <= shared_bucket_bytes()) return shared_transport();
  if (!message_transport_) message_transport_ = std::make_unique<MessageTransport>(*this);
  return *message_transport_;
}

void WorldSums::start(const Bucket& bucket, const BucketFill& fill, Completion take) {
  if (std::ranges::any_of(bucket.numbers, &PackedSum::narrow)) {
    start_as_bfloat16(bucket, fill, std::move(take));
  } else {
    start_bucket({.bucket = bucket, .take = std::move(take)}, fill);
  }
}

void WorldSums::start_shared(const Bucket& bucket, const BucketFill& fill, ShardCompletion take) {
  SG_CHECK_VALUE(bucket.bytes <= shared_bytes(), "WorldSums",
                 "a bucket that ranks share has at most ", shared_bytes(), " bytes: got ",
                 bucket.bytes, ".");
  start_bucket({.bucket = bucket, .complete_shard = std::move(take)}, fill);
}

void WorldSums::start_bucket(InFlightBucket started, const BucketFill& fill) {
  communicator_.barrier();
  Transport& transport = started.complete_shard ? shared_transport() : transport_of(started.bucket);
  if (transport_ != &transport) finish();
  transport_ = &transport;
  InFlightBucket& flight = in_flight_.emplace_back(std::move(started));
  past_caches_ =
      &transport == shared_memory_transport_.get() && flight.bucket.bytes > kOneRoundBytes;
  transport.fill(flight, fill);
  if (flight.complete_shard) return add_what_is_filled();
  while (in_flight_.size() > 1 && !in_flight_[in_flight_.size() - 2].is_summed) add_next();
  while (in_flight_.size() > 2 || in_flight_.front().complete_shard) take_first();
}

// Nobody waits for others while there is a slot for one more: ranks that share a core go on for as
// long as they can.
void WorldSums::add_what_is_filled() {
  const auto is_due = [&](const InFlightBucket& first) {
    return in_flight_.size() >= kSlots || !first.complete_shard || transport_->is_filled(first);
  };
  while (in_flight_.size() > 1 && is_due(in_flight_.front())) {
    if (!in_flight_.front().is_summed) add_next();
    take_first();
  }
}

void WorldSums::put(std::byte* to, const std::byte* from, std::int64_t bytes) const {
  if (past_caches_) {
    streaming_copy(to, from, bytes);
  } else {
    std::copy_n(from, bytes, to);
  }
}

// Copies a state like put(), but with ordinary stores for the elements that this rank reads itself.
// These stay in its cache.
void WorldSums::put_shared(std::byte* state, const PackedSum& numbers, Shard own,
                           const std::byte* from) const {
  std::byte* const to = state + numbers.offset;
  if (numbers.narrow) return put_as_bfloat16(to, from, numbers.elements);
  const auto width = std::int64_t(size_of(numbers.dtype));
  const std::int64_t begin = own.begin * width, end = own.end * width;
  put(to, from, begin);
  std::copy_n(from + begin, end - begin, to + begin);
  put(to + end, from + end, numbers.elements * width - end);
}

void WorldSums::Summands::add_up(const PackedSum& numbers, Shard of, std::byte* out) const {
  const std::int64_t first = numbers.offset + of.begin * std::int64_t(size_of(numbers.dtype));
  const std::vector<const std::byte*> x = subtrees_of(*numbers.tree, states_, first);
  if (!numbers.narrow) return numbers.tree->add(numbers.dtype, x, of.size(), out);
  const auto sums =
      std::make_unique_for_overwrite<std::byte[]>(std::size_t(of.size()) * size_of(numbers.dtype));
  numbers.tree->add(numbers.dtype, x, of.size(), sums.get());
  kernels().cast(DType::kBFloat16, DType::kFloat32)(sums.get(), out, of.size());
}

// Sums the next bucket in order.
void WorldSums::add_next() {
  InFlightBucket& flight = *std::ranges::find(in_flight_, false, &InFlightBucket::is_summed);
  transport_->add(flight);
  flight.is_summed = true;
}

void WorldSums::take_first() {
  transport_->take(in_flight_.front());
  in_flight_.pop_front();
}

void WorldSums::finish() {
  while (!in_flight_.empty()) {
    while (!in_flight_.back().is_summed) add_next();
    take_first();
  }
  if (transport_) transport_->finish();
}

// ---- adding up ----

std::vector<const std::byte*> WorldSums::subtrees_of(const WorldTree& tree, const States& states,
                                                     std::int64_t offset) {
  std::vector<const std::byte*> x;
  x.reserve(tree.all().size());
  int rank = -1;
  std::size_t i = 0;
  for (const WorldTree::Subtree& subtree : tree.all()) {
    i = subtree.rank == rank ? i + 1 : 0;
    rank = subtree.rank;
    x.push_back(states[std::size_t(rank)][i] + offset);
  }
  return x;
}

void WorldSums::add(const Bucket& bucket, ByteRange part, const States& from,
                    std::byte* sum) const {
  for (const PackedSum& packed : bucket.numbers) {
    const std::int64_t end = packed.offset + packed.elements * std::int64_t(size_of(packed.dtype));
    const ByteRange overlap{std::max(part.begin, packed.offset), std::min(part.end, end)};
    if (overlap.begin >= overlap.end) continue;
    const std::vector<const std::byte*> x =
        subtrees_of(*packed.tree, from, overlap.begin - part.begin);
    add_packed(packed, overlap.bytes(), x, sum + overlap.begin);
  }
}

void WorldSums::add_packed(const PackedSum& packed, std::int64_t bytes,
                           std::span<const std::byte* const> from, std::byte* sum) const {
  const auto width = std::int64_t(size_of(packed.dtype));
  const std::int64_t elements = bytes / width, block = thresholds().all_reduce_block;
  const bool parallel = bytes * std::int64_t(from.size()) > thresholds().parallel_all_reduce_bytes;
  const ParallelFor& loops = parallel ? parallel_loops() : serial_loops();
  loops.run(divide_up(elements, block), [&](std::int64_t i) {
    const std::int64_t begin = i * block, n = std::min(block, elements - begin);
    std::vector<const std::byte*> x;
    x.reserve(from.size());
    for (const std::byte* state : from) x.push_back(state + begin * width);
    packed.tree->add(packed.dtype, x, n, sum + begin * width);
  });
}

}  // namespace samegrad
