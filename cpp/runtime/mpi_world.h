// One rank of an MPI job: its messages, the facts that all ranks must agree on, and the end of all
// ranks when one fails.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/communicator.h"
#include "runtime/mpi.h"

namespace samegrad {

class MpiWorld {
 public:
  // `show_stack` writes where this process is to its standard error, from any thread.
  MpiWorld(const MpiLibrary& library, std::unique_ptr<SharedMemory> shared,
           std::chrono::milliseconds patience, std::function<void()> show_stack);
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // Implements Communicator::start().
  std::unique_ptr<Communicator::Transfer> start(std::span<const Message> sends,
                                                std::span<const Message> receives);
  SharedMemory* shared() const { return shared_.get(); }
  void wait_for(SharedMemory::Stage stage, std::int64_t count);
  std::shared_ptr<SharedParameters> common(std::int64_t bytes);
  void check_fingerprints(std::vector<Fingerprint>&& facts);
  void barrier();
  ComparedFacts& compared() { return compared_; }
  void fail_with(std::string_view why) noexcept;
  // Bytes of every rank, in their order, however many each has.
  std::vector<std::string> gather(std::string_view own);

  // Sets the time that a rank waits for others.
  void set_patience(std::chrono::milliseconds patience) { patience_ = patience.count(); }
  std::int64_t calls() const { return calls_; }
  // The reason that another rank gave for its failure; empty: none has failed.
  std::string failure_elsewhere() const;
  // Ends this process's part of the job: returns when all ranks have ended theirs.
  void leave() noexcept;
  // Ends all processes.
  [[noreturn]] void abort(int code) noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  using Record = SharedMemory::Record;
  class MpiTransfer;
  // To all other ranks, beside the messages.
  struct Notice {
    enum class Kind : std::int32_t { kFailed, kEnded, kWhere, kHere };
    Kind kind;
    std::int32_t waits;  // whether the sender waits for others itself
    std::int64_t calls;
    std::array<char, 1008> text;
  };
  struct Other {
    bool ended = false, answered = false, waits = false;
    std::int64_t calls = 0;
    std::string failure;
  };

  void wait(Mpi::Pending& pending);
  void look_around();
  void check_others() const;
  void tell_of_later_failures() const;
  [[noreturn]] void disagree();
  void watch();
  void read_notices();
  void take(int rank, const Notice& notice);
  void check_patience();
  std::string missing() const;
  Notice notice(Notice::Kind kind, std::string_view text) const;
  void send(int rank, const Notice& notice);
  void send_to_all(const Notice& notice);
  void check_process() const;

  const std::unique_ptr<Mpi> mpi_;
  const std::unique_ptr<SharedMemory> shared_;
  const int rank_, size_;
  const std::uint64_t process_;
  const std::thread::id caller_ = std::this_thread::get_id();
  const std::function<void()> show_stack_;
  std::atomic<std::int64_t> patience_;
  std::atomic<std::int64_t> calls_{0};
  std::atomic<Clock::rep> waits_since_{0};  // 0: it does not

  bool maps_common_ = true;  // until a rank cannot

  // The state of the present call.
  std::vector<Fingerprint> facts_;
  std::string text_;
  std::unique_ptr<Mpi::Pending> agreement_;  // where no memory is shared
  bool agrees_ = false;
  Record record_{};
  std::vector<Record> records_;
  ComparedFacts compared_;

  mutable std::mutex mutex_;  // guards the rest
  std::condition_variable wake_;
  std::vector<Other> others_;  // by rank
  std::atomic<bool> others_changed_{false};
  std::string where_ = "the start";
  Clock::time_point asked_{};
  struct Sent {
    std::unique_ptr<Notice> notice;
    std::unique_ptr<Mpi::Pending> pending;
  };
  std::vector<Sent> sent_;
  bool failed_ = false, stops_ = false;
  std::thread thread_;
};

}  // namespace samegrad
