// Sums over the examples or the replicas of all processes, in the order of the tree over them. Each
// process sums its subtrees by itself (world_tree.h), and sends only these sums. They are sent in
// buckets, several of which are in flight: one is computed while earlier ones are summed. The
// update uses a bucket while it is still in a cache.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "base/dtype.h"
#include "runtime/communicator.h"
#include "runtime/world_tree.h"
#include "tensor/buffer_pool.h"

namespace samegrad {

// Numbers of one type that are at `offset` (a multiple of 64) in a bucket.
struct PackedSum {
  DType dtype;
  std::int64_t offset;
  std::int64_t elements;
  bool narrow;  // whether they travel as bfloat16
  const WorldTree* tree;
};

// Elements.
struct Shard {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};

// A bucket: numbers that are summed at a time, of equal sizes on all ranks.
struct Bucket {
  std::vector<PackedSum> numbers;
  std::int64_t bytes = 0;

  // Adds numbers and returns their offset; they belong to a sum of `sum_bytes` in all.
  std::int64_t add(DType dtype, std::int64_t elements, std::int64_t sum_bytes,
                   const WorldTree& tree);
  // Adds numbers as they travel in start_shared(): as bfloat16 if they are narrow.
  std::int64_t add_shared(DType dtype, std::int64_t elements, std::int64_t sum_bytes,
                          const WorldTree& tree);
  // The number of states of a rank: the subtrees of the tree with most.
  std::int64_t states_of(int rank) const;
};

// Compressed all-reduce: large float32 sums are sent as bfloat16, half as many bytes. Each part of
// a sum is rounded before it is added, so bits depend on which replicas each process has. Losses
// and counts that are sent with them stay as they are. The setting belongs to the process, must be
// equal on all ranks, and is off by default.
void set_sums_as_bfloat16(bool yes);
bool sums_as_bfloat16();

// The sums of a run, in the order in which they are started. None is waited for before the next one
// is made: what a step of the plan has summed travels while later steps run. Every rank starts
// the same sums.
class WorldSums {
 public:
  // The trees of its sums have at most so many subtrees on a rank.
  WorldSums(Communicator& communicator, std::int64_t most_subtrees);
  ~WorldSums();
  WorldSums(const WorldSums&) = delete;
  WorldSums& operator=(const WorldSums&) = delete;

  // The most bytes that a bucket should have.
  std::int64_t bucket_bytes() const;

  // Puts the sums over this process's subtrees, each where its state is expected: of each number
  // those of its tree, of which there may be fewer than states.
  using BucketFill = std::function<void(std::span<std::byte* const> states)>;
  // Uses the sum over all replicas, which is gone afterwards.
  using Completion = std::function<void(const std::byte* sum)>;
  // Calls `fill` at once. `take` runs after those of earlier sums, in a later start() or finish().
  void start(const Bucket& bucket, const BucketFill& fill, Completion take);
  // In `fill`: writes a part of a state. Several threads may, each its own parts.
  void put(std::byte* to, const std::byte* from, std::int64_t bytes) const;

  // Ranks that divide the following work, because it writes memory that all map, divide the sum as
  // well. Each rank adds the elements that it uses, when it uses them, and no rank stores the sum.
  using States = std::vector<std::vector<std::byte*>>;  // per rank
  class Summands {
   public:
    explicit Summands(const States& states) : states_(states) {}
    // The sums of some elements of the numbers, in the type that they had before they travelled.
    void add_up(const PackedSum& numbers, Shard of, std::byte* out) const;

   private:
    const States& states_;  // where the bucket begins
  };
  using ShardCompletion = std::function<void(const Summands& summands)>;
  // The most bytes of such a bucket; 0 if ranks share no memory.
  std::int64_t shared_bytes() const;
  // This rank's part of so many elements.
  Shard own_shard(std::int64_t elements) const;
  // Like start(), but each rank uses its part. All ranks' writes are visible after finish().
  void start_shared(const Bucket& bucket, const BucketFill& fill, ShardCompletion take);
  // In `fill` of that, as put(): all numbers of a state at once, of which this rank will use some.
  void put_shared(std::byte* state, const PackedSum& numbers, Shard own,
                  const std::byte* from) const;

  // Afterwards all that were started are taken.
  void finish();

 private:
  struct ByteRange {
    std::int64_t begin, end;
    std::int64_t bytes() const { return end - begin; }
  };
  // A sum on its way; each rank takes all of it, or its shares.
  struct InFlightBucket {
    Bucket bucket;
    Completion take = {};
    ShardCompletion complete_shard = {};
    std::int64_t number = 0;  // among those that went the same way
    bool is_summed = false;
  };
  class Transport;
  class MessageTransport;
  class SharedMemoryTransport;

  void start_bucket(InFlightBucket started, const BucketFill& fill);
  void start_as_bfloat16(const Bucket& bucket, const BucketFill& fill, Completion take);
  Transport& shared_transport();
  Transport& transport_of(const Bucket& bucket);
  void add_what_is_filled();
  void add_next();
  void take_first();
  ByteRange part_of(const Bucket& bucket, int rank) const;
  std::int64_t shared_bucket_bytes() const;
  std::int64_t shared_slot_bytes() const;
  // Adds up a part of a bucket: `from` is where each state has it, sum where the bucket begins.
  void add(const Bucket& bucket, ByteRange part, const States& from, std::byte* sum) const;
  void add_packed(const PackedSum& packed, std::int64_t bytes,
                  std::span<const std::byte* const> from, std::byte* sum) const;
  // The state of each subtree of a tree, so many bytes on.
  static std::vector<const std::byte*> subtrees_of(const WorldTree& tree, const States& states,
                                                   std::int64_t offset);
  void narrow_into(const Bucket& bucket, const std::byte* from, const Bucket& narrow,
                   std::byte* state) const;
  void put_as_bfloat16(std::byte* to, const std::byte* from, std::int64_t elements) const;

  Communicator& communicator_;
  const std::int64_t most_subtrees_;
  std::unique_ptr<Transport> message_transport_, shared_memory_transport_;
  Transport* transport_ = nullptr;  // of those that are on their way: all go the same
  std::deque<InFlightBucket> in_flight_;
  bool past_caches_ = false;  // what is put is read by others, and is large
  PooledBuffer wide_;         // what travels as bfloat16, as float32
};

}  // namespace samegrad
