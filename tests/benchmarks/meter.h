// Times blocks of work that all threads start together.
#pragma once

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

struct Rate {
  double mean;  // of work per nanosecond
  double best;
};

// Calls block(thread) on all threads until the blocks have taken that long; before, untimed, once:
// it brings memory in and wakes the vector units up. A block's time includes its slowest thread.
template <class Block>
Rate measure(int threads, double seconds, double work_per_block, const Block& block) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  bool stop = false;
  Clock::time_point start;
  double elapsed = 0.0;
  auto end_block = [&]() noexcept {
    const auto now = Clock::now();
    if (start != Clock::time_point{}) {
      times.push_back(std::chrono::duration<double>(now - start).count());
      elapsed += times.back();
    }
    stop = elapsed >= seconds;
    start = Clock::now();
  };
  std::barrier meet(threads, end_block);
  auto run = [&](int thread) {
    block(thread);
    for (meet.arrive_and_wait(); !stop; meet.arrive_and_wait()) block(thread);
  };
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) pool.emplace_back(run, t);
  for (std::thread& thread : pool) thread.join();
  const double work = work_per_block * 1e-9;
  return {work * static_cast<double>(times.size()) / elapsed,
          work / *std::min_element(times.begin(), times.end())};
}
