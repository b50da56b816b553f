#include "runtime/shared_memory.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <thread>

#include "base/error.h"

namespace samegrad {
namespace {

// Sleeping and waking takes some microseconds: a rank with a core of its own spins that long.
constexpr int kSpins = 4000, kSpinsOfMany = 40;
constexpr long kDozeNanoseconds = 5'000'000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Between processes, therefore not the private kind.
void sleep_unless_rung(std::atomic<std::uint32_t>& doorbell, std::uint32_t seen) {
  const timespec limit{0, kDozeNanoseconds};
  (void)::syscall(SYS_futex, &doorbell, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

void ring(std::atomic<std::uint32_t>& doorbell) {
  doorbell.fetch_add(1);
  (void)::syscall(SYS_futex, &doorbell, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

}  // namespace

SharedMemory::SharedMemory(int rank, std::vector<std::byte*> segments, std::int64_t bytes)
    : rank_(rank),
      segments_(std::move(segments)),
      bytes_(bytes),
      spins_(segments_.size() <= std::thread::hardware_concurrency() ? kSpins : kSpinsOfMany) {
  SG_CHECK_VALUE(bytes > kHeaderBytes, "SharedMemory", "segments have more than ", kHeaderBytes,
                 " bytes: got ", bytes, ".");
  for (const std::byte* segment : segments_) {
    SG_CHECK_VALUE(reinterpret_cast<std::uintptr_t>(segment) % kLine == 0, "SharedMemory",
                   "segments begin at multiples of ", kLine, ": got one that does not.");
  }
}

void SharedMemory::write_record(std::int64_t call, Record record) {
  header(rank_).records[std::size_t(call % 2)] = record;
}

SharedMemory::Record SharedMemory::record(int rank, std::int64_t call) const {
  return header(rank).records[std::size_t(call % 2)];
}

void SharedMemory::publish(Stage stage, std::int64_t count) {
  header(rank_).counters[std::size_t(stage)].count.store(count);
  for (int other = 0; other < size(); ++other) {
    Header& of = header(other);
    if (other == rank_ || !of.sleeps.load()) continue;
    // Only the last rank wakes it: where many ranks share a core, it would sleep again at once.
    if (all_at(of.stage.load(), of.count.load())) ring(of.doorbell);
  }
}

bool SharedMemory::all_at(Stage stage, std::int64_t count) const {
  for (int rank = 0; rank < size(); ++rank) {
    if (header(rank).counters[std::size_t(stage)].count.load() < count) return false;
  }
  return true;
}

bool SharedMemory::spin(Stage stage, std::int64_t count) const {
  for (int i = 0; i < spins_; ++i) {
    if (all_at(stage, count)) return true;
    pause();
  }
  return all_at(stage, count);
}

bool SharedMemory::futex_wait(Stage stage, std::int64_t count) {
  Header& own = header(rank_);
  own.stage.store(stage);
  own.count.store(count);
  own.sleeps.store(1);
  // Read before the counters: a rank that reaches the count after they were read rings it.
  const std::uint32_t seen = own.doorbell.load();
  if (!all_at(stage, count)) sleep_unless_rung(own.doorbell, seen);
  own.sleeps.store(0);
  return all_at(stage, count);
}

}  // namespace samegrad
