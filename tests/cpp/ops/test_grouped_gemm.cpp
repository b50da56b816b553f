// How a wide product is cut for the threads: the bits of one thread, and no thread without work.
#include "ops/grouped_gemm.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "check.h"

namespace samegrad {
namespace {

// Runs one after the other, as if by so many threads, and notes how many blocks there were.
class CountedLoops : public ParallelFor {
 public:
  explicit CountedLoops(int threads) : threads_(threads) {}
  int threads() const override { return threads_; }
  void run(std::int64_t count, const std::function<void(std::int64_t)>& body) const override {
    blocks = count;
    for (std::int64_t i = 0; i < count; ++i) body(i);
  }
  mutable std::int64_t blocks = 1;

 private:
  int threads_;
};

struct Run {
  std::vector<float> y;
  std::int64_t blocks;
};

Run run(std::int64_t rows, std::int64_t k, std::int64_t n, int threads) {
  std::vector<float> a(std::size_t(rows * k)), b(std::size_t(k * n));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = float(i * 7 % 31) / 8 - 2;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = float(i * 13 % 29) / 16 - 1;
  std::vector<float> y(std::size_t(rows * n));
  const RowPiece piece{a.data(), y.data(), rows};
  const GroupedGemm whole{.pieces = {&piece, 1},
                          .k = k,
                          .n = n,
                          .b = b.data(),
                          .transposed = false,
                          .first_column = 0,
                          .columns = n,
                          .epilogue = nullptr,
                          .scratch = nullptr};
  const CountedLoops loops(threads);
  Scratch scratch;
  multiply_grouped(whole, DType::kFloat32, &loops, scratch);
  return {std::move(y), loops.blocks};
}

TEST("a wide product is some blocks for each thread, but no narrow ones") {
  CHECK(run(192, 96, 2048, 1).blocks == 1);
  for (const int threads : {2, 4, 8}) {
    CHECK(run(192, 96, 2048, threads).blocks == 8, threads, " threads");
  }
  CHECK(run(192, 96, 1024, 2).blocks == 4);
  CHECK(run(192, 96, 1024, 8).blocks == 8);
}

TEST("a wide product is cut finer where a block for each thread leaves some waiting") {
  // Two by two for three threads would be two rounds of a quarter; four by three is four of a
  // twelfth.
  CHECK(run(300, 96, 4 * kWidestPanel, 3).blocks == 12);
}

TEST("a wide product has the bits of one thread for any number of them") {
  for (const std::int64_t rows : {1, 97, 300}) {
    for (const std::int64_t n : {130, 1000, 2048}) {
      const Run one = run(rows, 500, n, 1);
      for (const int threads : {2, 3, 7, 48}) {
        CHECK(run(rows, 500, n, threads).y == one.y, rows, " rows, ", n, " columns, ", threads,
              " threads");
      }
    }
  }
}

}  // namespace
}  // namespace samegrad
