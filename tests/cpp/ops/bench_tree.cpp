// What the fixed tree costs: the tutorial's weight and bias gradients of one replica of 64 images,
// summed in the order of the tree and one example after the other. One thread, best of many runs.
//
//   SAMEGRAD_ISA=v3 bench_tree
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "op_run.h"

namespace samegrad::testing {
namespace {

constexpr std::int64_t kExamples = 64;

double seconds(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Cost {
  double tree = 0;
  double flat = 0;
};

// Both by turns: the machine may be busy with others.
Cost compare(const char* name, const auto& tree, const auto& flat) {
  Cost best{1e30, 1e30};
  for (int run = 0; run < 300; ++run) {
    best.tree = std::min(best.tree, seconds(tree));
    best.flat = std::min(best.flat, seconds(flat));
  }
  std::printf("%-28s tree %8.1f us, in order %8.1f us\n", name, best.tree * 1e6, best.flat * 1e6);
  return best;
}

Operand images(const Shape& shape) {
  return {filled(DType::kFloat32, shape), 0};
}

// In order: as if a leaf held all examples.
Cost tree_and_one_leaf(const char* name, const OpRun& op) {
  std::vector<Array> result = op.run();
  return compare(
      name,
      [&] {
        op.run_into({0, kExamples}, result);
      },
      [&] {
        op.run_into({0, kExamples}, result, {.subtrees = false, .leaf = kExamples});
      });
}

Cost dense(const char* name, std::int64_t inputs, std::int64_t outputs) {
  const Operand x = images({kExamples, inputs}), dy = images({kExamples, outputs});
  return tree_and_one_leaf(name, OpRun("matmul", {x, dy}, MatmulAttrs{.transpose_a = true}));
}

Cost filter(const char* name, std::int64_t size, std::int64_t in, std::int64_t out) {
  const Operand x = images({kExamples, size, size, in});
  const Operand dy = images({kExamples, size - 2, size - 2, out});
  const Operand like{filled(DType::kFloat32, {3, 3, in, out})};
  return tree_and_one_leaf(name, OpRun("conv2d_filter_grad", {x, dy, like}));
}

Cost bias(const char* name, const Shape& shape) {
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis + 1 < shape.rank(); ++axis) axes.push_back(axis);
  return tree_and_one_leaf(name, OpRun("reduce_sum", {images(shape)}, ReduceAttrs{.axes = axes}));
}

int run() {
  const Cost costs[] = {filter("filter 3x3x1x32", 28, 1, 32),
                        filter("filter 3x3x32x64", 13, 32, 64),
                        dense("dense 1600x64", 1600, 64),
                        dense("dense 64x10", 64, 10),
                        bias("bias 32 of 13x13", {kExamples, 13, 13, 32}),
                        bias("bias 64 of 5x5", {kExamples, 5, 5, 64}),
                        bias("bias 64", {kExamples, 64}),
                        bias("bias 10", {kExamples, 10})};
  Cost sum;
  for (const Cost& cost : costs) {
    sum.tree += cost.tree;
    sum.flat += cost.flat;
  }
  std::printf("the tree adds %.2f us to an image\n", (sum.tree - sum.flat) * 1e6 / kExamples);
  return 0;
}

}  // namespace
}  // namespace samegrad::testing

int main() {
  return samegrad::testing::run();
}
