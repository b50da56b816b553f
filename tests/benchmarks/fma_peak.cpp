// Measures how many float32 operations per second this machine can do in fused multiply-adds.
//
//   g++ -std=c++20 -O3 -march=native -pthread fma_peak.cpp -o fma_peak
//   ./fma_peak THREADS [SECONDS]
//
// Prints one JSON line: the mean over SECONDS and the best of its blocks, in GFLOP/s.

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
using Vector = float __attribute__((vector_size(kVectorBytes)));

// Two FMA units with a latency of 4 to 5 cycles need up to 10 sums in flight; 12 and the two
// operands still fit into the 16 vector registers of AVX2.
constexpr int kSums = 12;
constexpr long kIterations = 1'000'000;
constexpr double kFlopPerBlock =
    2.0 * kSums * kIterations * (kVectorBytes / static_cast<double>(sizeof(float)));

// Read at run time, so that the compiler cannot work out the sums beforehand. The factor is
// below one: the sums converge and never become infinite or denormal.
volatile float factor_source = 0.999F;
volatile float addend_source = 0.5F;
volatile float sink = 0.0F;

void run_block() {
  const Vector factor = Vector{} + factor_source;
  const Vector addend = Vector{} + addend_source;
  Vector sums[kSums];
  for (int k = 0; k < kSums; ++k) sums[k] = Vector{} + static_cast<float>(k);
  for (long i = 0; i < kIterations; ++i) {
#pragma GCC unroll 12
    for (int k = 0; k < kSums; ++k) sums[k] = sums[k] * factor + addend;
  }
  Vector total{};
  for (const Vector& sum : sums) total += sum;
  sink = total[0];
}

struct Peak {
  double mean;
  double best;
};

// All threads start each block together, so a block's time includes its slowest thread.
Peak measure(int threads, double seconds) {
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
  auto work = [&] {
    run_block();  // wakes the vector units up; not timed
    for (meet.arrive_and_wait(); !stop; meet.arrive_and_wait()) run_block();
  };
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) pool.emplace_back(work);
  for (std::thread& thread : pool) thread.join();
  const double flop = kFlopPerBlock * threads * 1e-9;
  const double best = *std::min_element(times.begin(), times.end());
  return {flop * static_cast<double>(times.size()) / elapsed, flop / best};
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  const double seconds = argc > 2 ? std::atof(argv[2]) : 0.5;
  if (threads < 1 || seconds <= 0.0) {
    std::fprintf(stderr, "usage: fma_peak THREADS [SECONDS], both positive\n");
    return 2;
  }
  const Peak peak = measure(threads, seconds);
  std::printf("{\"threads\": %d, \"vector_bytes\": %d, \"gflops\": %.1f, \"best_gflops\": %.1f}\n",
              threads, kVectorBytes, peak.mean, peak.best);
}
