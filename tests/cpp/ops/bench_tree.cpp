// What the fixed tree costs: the tutorial's weight and bias gradients of one replica of 64 images,
// summed in the order of the tree and one example after the other. One thread, best of many runs.
//
//   SAMEGRAD_ISA=v3 bench_tree
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "kernels/dispatch.h"
#include "kernels/elementwise_fn.h"
#include "op_run.h"
#include "tensor/tree.h"

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

void add(const Array& sum, const Array& other) {
  kernels().binary(BinaryFn::k_add, DType::kFloat32)(sum.raw(), other.raw(), sum.raw(), sum.size(),
                                                     1, 1);
}

// Examples [begin, end) one by one into one result, as a leaf is summed.
void in_order(const OpRun& op, std::int64_t begin, std::int64_t end, std::vector<Array>& result) {
  for (std::int64_t i = begin; i < end; ++i) op.run_into({i, 1, i > begin}, result);
}

Cost examples_one_by_one(const char* name, const OpRun& op) {
  std::vector<std::vector<Array>> levels;
  for (int i = 0; i < tree_levels(kExamples, kLeafExamples); ++i) levels.push_back(op.run());
  return compare(
      name,
      [&] {
        walk_tree(
            0, kExamples, kLeafExamples, 0,
            [&](std::int64_t begin, std::int64_t end, int level) {
              in_order(op, begin, end, levels[std::size_t(level)]);
            },
            [&](int level) {
              add(levels[std::size_t(level)][0], levels[std::size_t(level) + 1][0]);
            });
      },
      [&] { in_order(op, 0, kExamples, levels[0]); });
}

Cost dense(const char* name, std::int64_t inputs, std::int64_t outputs) {
  const Operand x = images({kExamples, inputs}), dy = images({kExamples, outputs});
  const OpRun op("matmul", {x, dy}, {{"transpose_a", true}});
  std::vector<Array> result = op.run();
  const ProductKernels& product = *kernels().product(DType::kFloat32);
  return compare(
      name,
      [&] {
        op.run_into({0, kExamples, false}, result);
      },
      [&] {
        product.matmul_transposed(x.array.raw(), inputs, dy.array.raw(), outputs, kExamples, inputs,
                                  outputs, result[0].raw(), outputs, false);
      });
}

Cost filter(const char* name, std::int64_t size, std::int64_t in, std::int64_t out) {
  const Operand x = images({kExamples, size, size, in});
  const Operand dy = images({kExamples, size - 2, size - 2, out});
  const Operand like{filled(DType::kFloat32, {3, 3, in, out})};
  return examples_one_by_one(name, OpRun("conv2d_filter_grad", {x, dy, like}));
}

Cost bias(const char* name, const Shape& shape) {
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis + 1 < shape.rank(); ++axis) axes.push_back(axis);
  return examples_one_by_one(name, OpRun("reduce_sum", {images(shape)}, {{"axes", axes}}));
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
