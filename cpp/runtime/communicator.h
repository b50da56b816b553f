// Communication between the processes that a program's replicas are spread over. Implementations
// launch processes and carry messages; the engine defines the reduction order (world_sums.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "runtime/shared_memory.h"
#include "runtime/shared_parameters.h"

namespace samegrad {

// A message to another process, or from it.
struct Message {
  int rank;
  std::byte* data;
  std::int64_t bytes;
};

struct ReplicaRange {
  int begin, end;
  bool operator==(const ReplicaRange&) const = default;
};

// A fact that must be equal on all ranks at the same call.
struct Fingerprint {
  std::string name, value;
};

// The facts that the ranks of a job have compared once, and need not compare again.
struct ComparedFacts {
  std::vector<Fingerprint> build;          // of this process, to be compared at the first step
  std::atomic<bool> has_build{false};      // the build has been compared
  std::atomic<std::int64_t> variables{0};  // the number of variables whose values have been
};

// All ranks throw it, and may go on together.
class FingerprintMismatch : public Error {
 public:
  using Error::Error;
};

class Communicator {
 public:
  // Rank r has the replicas [firsts[r], firsts[r + 1]) of the world; the last one is their number.
  Communicator(int rank, std::vector<int> firsts) : rank_(rank), firsts_(std::move(firsts)) {}
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return int(firsts_.size()) - 1; }
  int replicas() const { return firsts_.back(); }
  ReplicaRange replicas_of(int rank) const {
    return {firsts_[std::size_t(rank)], firsts_[std::size_t(rank) + 1]};
  }
  ReplicaRange own() const { return replicas_of(rank_); }

  // Messages that were started; their memory stays until they are done.
  class Transfer {
   public:
    virtual ~Transfer() = default;
    // Returns when all are done. Throws where a rank is gone.
    virtual void wait() = 0;
  };
  // Messages between two ranks arrive in the order in which they were started, each in one piece.
  // Every rank starts the same number of transfers in a step. It waits for them in the order of the
  // starts, never in a task of the engine's threads.
  virtual std::unique_ptr<Transfer> start(std::span<const Message> sends,
                                          std::span<const Message> receives) = 0;
  void exchange(std::span<const Message> sends, std::span<const Message> receives) {
    start(sends, receives)->wait();
  }
  // The memory that all ranks map; null: they are on several machines.
  virtual SharedMemory* shared() { return nullptr; }
  // Returns when all ranks have reached this count in shared(). Throws where one is gone.
  virtual void wait_for(SharedMemory::Stage /*stage*/, std::int64_t /*count*/) {}
  // Memory that all ranks map, which all ask for at the same time; null: they cannot.
  virtual std::shared_ptr<SharedParameters> common(std::int64_t /*bytes*/) { return nullptr; }
  // Compares the facts of a call. By the end of barrier(), with which start() begins, all ranks
  // have equal facts or throw Disagreement, which names the difference.
  virtual void check_fingerprints(std::vector<Fingerprint>&& /*facts*/) {}
  virtual void barrier() {}
  // Returns the facts that need no further comparison, for all communicators of the job.
  virtual ComparedFacts& compared() = 0;
  // Ends the participation of this process. Ranks that wait for it, now or later, receive the
  // reason.
  virtual void abort(std::string_view why) noexcept = 0;

 private:
  int rank_;
  std::vector<int> firsts_;
};

}  // namespace samegrad
