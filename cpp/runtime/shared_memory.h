// Shared-memory transport between the ranks of a job on one machine. Each rank writes its segment,
// which all read, and counts its progress.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace samegrad {

class SharedMemory {
 public:
  // Counters by which ranks wait for each other.
  enum class Stage { kAgreed, kFilled, kSummed, kTaken };
  // A rank's fingerprint of a call (Communicator::check_fingerprints).
  struct Record {
    std::uint64_t hash;
    std::int64_t bytes;
  };

  // segments[r] is that of rank r, `bytes` of zeros at a multiple of 64.
  SharedMemory(int rank, std::vector<std::byte*> segments, std::int64_t bytes);

  int rank() const { return rank_; }
  int size() const { return int(segments_.size()); }
  // The bytes of each rank's segment that are for data.
  std::int64_t bytes() const { return bytes_ - kHeaderBytes; }
  std::byte* data(int rank) const { return segments_[std::size_t(rank)] + kHeaderBytes; }

  // Records of calls. The last two are available, as no rank is more than one call ahead.
  void write_record(std::int64_t call, Record record);
  Record record(int rank, std::int64_t call) const;

  // Publishes this rank's progress: its earlier writes are visible to ranks that wait for the
  // count.
  void publish(Stage stage, std::int64_t count);
  bool all_at(Stage stage, std::int64_t count) const;
  // Waits for all ranks to reach the count: a moment without sleeping, then some milliseconds at
  // most. Returns true if they have.
  bool spin(Stage stage, std::int64_t count) const;
  bool futex_wait(Stage stage, std::int64_t count);

  // Buckets that all ranks have summed together so far.
  std::int64_t buckets = 0;

 private:
  static constexpr std::int64_t kHeaderBytes = 1024;
  static constexpr std::size_t kLine = 64;
  struct Header {
    struct alignas(kLine) Counter {
      std::atomic<std::int64_t> count;
    };
    std::array<Counter, 4> counters;
    alignas(kLine) std::array<Record, 2> records;
    alignas(kLine) std::atomic<std::uint32_t> doorbell;
    std::atomic<std::uint32_t> sleeps;
    std::atomic<Stage> stage;  // that it sleeps for
    std::atomic<std::int64_t> count;
  };
  static_assert(sizeof(Header) <= kHeaderBytes);
  static_assert(std::atomic<std::int64_t>::is_always_lock_free);
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
  static_assert(std::atomic<Stage>::is_always_lock_free);

  Header& header(int rank) const {
    return *reinterpret_cast<Header*>(segments_[std::size_t(rank)]);
  }

  const int rank_;
  const std::vector<std::byte*> segments_;
  const std::int64_t bytes_;
  const int spins_;
};

}  // namespace samegrad
