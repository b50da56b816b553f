// Measures how many bytes per second all threads together read and write in memory.
//
//   g++ -std=c++20 -O3 -march=native -pthread bandwidth.cpp -o bandwidth
//   ./bandwidth THREADS [SECONDS]
//
// A block is a triad, x = y + factor * z, over arrays far larger than any cache; counted are the
// two operands and the result, as McCalpin's STREAM counts. Prints one JSON line: the mean over
// SECONDS and the best of its blocks, in GB/s.

#include <cstdio>
#include <memory>

#include "meter.h"

namespace {

constexpr std::size_t kElements = std::size_t{1} << 25;  // 128 MiB an array
constexpr double kBytesPerBlock = 3.0 * kElements * sizeof(float);

volatile float factor_source = 0.999F;  // read at run time: unknown to the compiler

class Triad {
 public:
  explicit Triad(int threads) : threads_(static_cast<std::size_t>(threads)) {
    for (auto* array : {&x_, &y_, &z_}) *array = std::make_unique<float[]>(kElements);
  }

  void run(int thread) const {
    const std::size_t t = static_cast<std::size_t>(thread);
    const std::size_t end = kElements * (t + 1) / threads_;
    const float factor = factor_source;
    for (std::size_t i = kElements * t / threads_; i < end; ++i) x_[i] = y_[i] + factor * z_[i];
  }

 private:
  std::size_t threads_;
  std::unique_ptr<float[]> x_, y_, z_;
};

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  const double seconds = argc > 2 ? std::atof(argv[2]) : 0.5;
  if (threads < 1 || seconds <= 0.0) {
    std::fprintf(stderr, "usage: bandwidth THREADS [SECONDS], both positive\n");
    return 2;
  }
  const Triad triad(threads);
  const Rate rate = measure(threads, seconds, kBytesPerBlock, [&](int t) { triad.run(t); });
  std::printf("{\"threads\": %d, \"gb_per_s\": %.2f, \"best_gb_per_s\": %.2f}\n", threads,
              rate.mean, rate.best);
}
