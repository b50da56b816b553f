// Threads that play the ranks of a job.
#pragma once

#include <exception>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "check.h"
#include "thread_communicator.h"

namespace samegrad::testing {

// Calls f(communicator) on threads that play ranks, of which r has the replicas from firsts[r] on;
// the first error is thrown. shared_bytes 0: they send messages.
template <class F>
void on_ranks(const std::vector<int>& firsts, std::int64_t shared_bytes, const F& f) {
  Wire wire;
  const int ranks = int(firsts.size()) - 1;
  std::optional<ThreadSegments> shared;
  if (shared_bytes) shared.emplace(ranks, shared_bytes);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        ThreadCommunicator communicator(wire, rank, firsts, shared ? shared->of(rank) : nullptr);
        f(communicator);
      } catch (...) {
        errors[std::size_t(rank)] = std::current_exception();
        wire.abort("the other rank failed");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  CHECK(wire.is_empty());
}

// With one replica each.
template <class F>
void on_ranks(int ranks, std::int64_t shared_bytes, const F& f) {
  std::vector<int> firsts(std::size_t(ranks) + 1);
  std::iota(firsts.begin(), firsts.end(), 0);
  on_ranks(firsts, shared_bytes, f);
}

}  // namespace samegrad::testing
