// Facts of the step, and draws that do not depend on how rows are split.
#include "ops/op_run.h"

namespace samegrad::testing {
namespace {

std::int64_t number(const OpRun& run) {
  return run.run()[0].data<std::int64_t>()[0];
}

TEST("sizes count examples of this replica and of all") {
  const Attrs both = CountAttrs{.axes = {0, 1}};
  OpRun local("size_of", {{filled(DType::kFloat32, {6, 3}), 0, 2}}, both);
  CHECK_EQ(number(local), 18);
  OpRun global("global_size_of", {{filled(DType::kFloat32, {6, 3}), 0, 2}}, both);
  global.facts.global_examples = {10};
  CHECK_EQ(number(global), 60);
  OpRun shared("global_size_of", {{filled(DType::kFloat32, {6, 3})}}, both);
  shared.facts.replicas = 4;
  CHECK_EQ(number(shared), 72);
}

TEST("a replica without examples knows the global size") {
  OpRun run("global_size_of", {{Array(DType::kFloat32, {0, 3}), 0, 2}}, CountAttrs{.axes = {0}});
  run.facts.global_examples = {7};
  CHECK_EQ(number(run), 14);
}

TEST("draws of replicas, one after the other, are the draw of one device") {
  for (const std::string name : {"random_uniform", "random_normal", "random_truncated_normal"}) {
    const Attrs attrs = RandomLikeAttrs({.ordinal = 3});
    OpRun one(name + "_like", {{Array(DType::kFloat32, {14, 5}), 0, 2}}, attrs);
    const Array whole = one.run()[0];
    OpRun second(name + "_like", {{Array(DType::kFloat32, {8, 5}), 0, 2}}, attrs);
    second.facts.first_example = {3};
    CHECK(same_bits(second.run()[0], whole.rows(6, 14)), name);
    CHECK(same_bits(one.run({2, 3})[0], whole.rows(4, 10)), name);
  }
}

TEST("a given shape is drawn row by row over the replicas") {
  const auto draw = [](std::int64_t replica, std::int64_t rows) {
    return OpRun("random_uniform", {{array_of<std::int64_t>({}, {replica})}},
                 RandomAttrs({.shape = {rows, 3}}))
        .run()[0];
  };
  const Array whole = draw(0, 4);
  CHECK(same_bits(draw(0, 2), whole.rows(0, 2)));
  CHECK(same_bits(draw(1, 2), whole.rows(2, 4)));
  CHECK(!same_bits(draw(1, 2), whole.rows(0, 2)));
}

TEST("examples on another axis draw the same numbers") {
  OpRun front("random_uniform_like", {{Array(DType::kFloat32, {4, 3}), 0}});
  OpRun back("random_uniform_like", {{Array(DType::kFloat32, {3, 4}), 1}});
  const Array a = front.run()[0], b = back.run()[0];
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 3; ++j) CHECK(a.data<float>()[i * 3 + j] == b.data<float>()[j * 4 + i]);
  }
}

TEST("the step, the seed and the ordinal change the draw") {
  const auto draw = [](std::uint64_t step, std::int64_t seed, std::int64_t ordinal) {
    OpRun run("random_uniform_like", {{Array(DType::kFloat32, {4, 3}), 0}},
              RandomLikeAttrs({.seed = seed, .ordinal = ordinal}));
    run.facts.step = step;
    return run.run()[0];
  };
  CHECK(same_bits(draw(1, 2, 3), draw(1, 2, 3)));
  CHECK(!same_bits(draw(1, 2, 3), draw(2, 2, 3)));
  CHECK(!same_bits(draw(1, 2, 3), draw(1, 3, 3)));
  CHECK(!same_bits(draw(1, 2, 3), draw(1, 2, 4)));
}

TEST("random integers stay in their range") {
  const Array y =
      OpRun("random_integers", {{array_of<std::int64_t>({}, {0})}},
            RandomIntegersAttrs({.shape = {200}, .dtype = DType::kInt64, .low = -2, .high = 3}))
          .run()[0];
  for (std::int64_t i = 0; i < 200; ++i) {
    CHECK(y.data<std::int64_t>()[i] >= -2 && y.data<std::int64_t>()[i] < 3);
  }
}

}  // namespace
}  // namespace samegrad::testing
