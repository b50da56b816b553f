// Threads of one process that play its ranks.
#pragma once

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>

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
    check_value(std::int64_t(queue.front().size()) == message.bytes, "test", "rank ", message.rank,
                " sent ", queue.front().size(), " bytes: ", message.bytes, " were expected.");
    std::memcpy(message.data, queue.front().data(), queue.front().size());
    queue.pop_front();
  }
  void abort(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (why_.empty()) why_ = why;
    changed_.notify_all();
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
  ThreadCommunicator(Wire& wire, int rank, std::vector<int> firsts)
      : Communicator(rank, std::move(firsts)), wire_(wire) {}

  void exchange(std::span<const Message> sends, std::span<const Message> receives) override {
    for (const Message& message : sends) wire_.send(rank(), message);
    for (const Message& message : receives) wire_.receive(rank(), message);
  }
  void abort(std::string_view why) noexcept override {
    wire_.abort("rank " + std::to_string(rank()) + " failed: " + std::string(why));
  }

 private:
  Wire& wire_;
};

}  // namespace samegrad::testing
