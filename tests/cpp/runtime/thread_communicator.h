// Threads of one process that play its ranks.
#pragma once

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "runtime/communicator.h"

namespace samegrad::testing {

// What is on its way between the ranks.
class Wire {
 public:
  void send(int from, const Message& message) {
    const std::lock_guard lock(mutex_);
    queues_[{from, message.rank}].emplace_back(message.data, message.data + message.bytes);
    bytes_ += message.bytes;
    changed_.notify_all();
  }
  void receive(int to, const Message& message) {
    std::unique_lock lock(mutex_);
    auto& queue = queues_[{message.rank, to}];
    changed_.wait(lock, [&] { return !queue.empty() || !why_.empty(); });
    if (queue.empty()) fail(ErrorKind::kRuntime, "step", why_);
    SG_CHECK_VALUE(std::int64_t(queue.front().size()) == message.bytes, "test", "rank ",
                   message.rank, " sent ", queue.front().size(), " bytes: ", message.bytes,
                   " were expected.");
    std::memcpy(message.data, queue.front().data(), queue.front().size());
    queue.pop_front();
  }
  void abort(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (why_.empty()) why_ = why;
    changed_.notify_all();
  }
  void check() {
    const std::lock_guard lock(mutex_);
    if (!why_.empty()) fail(ErrorKind::kRuntime, "step", why_);
  }
  std::int64_t bytes() const { return bytes_; }
  bool is_empty() const {
    for (const auto& [pair, queue] : queues_) {
      if (!queue.empty()) return false;
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> queues_;
  std::string why_;
  std::int64_t bytes_ = 0;
};

class ThreadCommunicator final : public Communicator {
 public:
  // Where `shared` is given, sums go through it.
  ThreadCommunicator(Wire& wire, int rank, std::vector<int> firsts, SharedMemory* shared = nullptr)
      : Communicator(rank, std::move(firsts)), wire_(wire), shared_(shared) {}

  std::unique_ptr<Transfer> start(std::span<const Message> sends,
                                  std::span<const Message> receives) override {
    for (const Message& message : sends) wire_.send(rank(), message);
    return std::make_unique<Receives>(*this, receives);
  }
  SharedMemory* shared() override { return shared_; }
  ComparedFacts& compared() override { return compared_; }
  void wait_for(SharedMemory::Stage stage, std::int64_t count) override {
    while (!shared_->futex_wait(stage, count)) wire_.check();
  }
  std::shared_ptr<SharedParameters> common(std::int64_t bytes) override {
    std::array<std::byte, 128> name{};
    const auto message = [&](int rank) {
      return Message{rank, name.data(), std::int64_t(name.size())};
    };
    if (rank() > 0) {
      wire_.receive(rank(), message(0));
      return SharedParameters::open(reinterpret_cast<const char*>(name.data()), bytes);
    }
    const std::shared_ptr<SharedParameters> memory = SharedParameters::create(bytes);
    const std::string text = memory->name();
    std::memcpy(name.data(), text.data(), std::min(text.size(), name.size() - 1));
    for (int other = 1; other < size(); ++other) wire_.send(0, message(other));
    kept_.push_back(memory);  // others may open it later
    return memory;
  }
  void abort(std::string_view why) noexcept override {
    wire_.abort("rank " + std::to_string(rank()) + " failed: " + std::string(why));
  }

 private:
  class Receives final : public Transfer {
   public:
    Receives(ThreadCommunicator& to, std::span<const Message> messages)
        : to_(to), messages_(messages.begin(), messages.end()) {}
    void wait() override {
      for (const Message& message : messages_) to_.wire_.receive(to_.rank(), message);
      messages_.clear();
    }

   private:
    ThreadCommunicator& to_;
    std::vector<Message> messages_;
  };

  Wire& wire_;
  SharedMemory* shared_;
  ComparedFacts compared_;
  std::vector<std::shared_ptr<SharedParameters>> kept_;
};

// Segments of threads that play ranks, and each one's view of them.
class ThreadSegments {
 public:
  ThreadSegments(int ranks, std::int64_t bytes) : memory_(std::size_t(ranks * bytes / 64)) {
    std::vector<std::byte*> segments;
    for (int rank = 0; rank < ranks; ++rank) {
      segments.push_back(reinterpret_cast<std::byte*>(memory_.data()) + rank * bytes);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      views_.push_back(std::make_unique<SharedMemory>(rank, segments, bytes));
    }
  }
  SharedMemory* of(int rank) { return views_[std::size_t(rank)].get(); }

 private:
  struct alignas(64) Line {
    std::array<std::byte, 64> bytes{};
  };
  std::vector<Line> memory_;
  std::vector<std::unique_ptr<SharedMemory>> views_;
};

}  // namespace samegrad::testing
