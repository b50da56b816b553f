// Facts of the step, and draws that do not depend on how rows are split.
#include <array>
#include <bit>

#include "ops/op_run.h"
#include "ops/random_attributes.h"

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
  global.replica_context.global_examples = {10};
  CHECK_EQ(number(global), 60);
  OpRun shared("global_size_of", {{filled(DType::kFloat32, {6, 3})}}, both);
  shared.replica_context.replicas = 4;
  CHECK_EQ(number(shared), 72);
}

TEST("a replica without examples knows the global size") {
  OpRun run("global_size_of", {{Array(DType::kFloat32, {0, 3}), 0, 2}}, CountAttrs{.axes = {0}});
  run.replica_context.global_examples = {7};
  CHECK_EQ(number(run), 14);
}

TEST("draws of replicas, one after the other, are the draw of one device") {
  for (const std::string name : {"random_uniform", "random_normal", "random_truncated_normal"}) {
    const Attrs attrs = RandomLikeAttrs({.ordinal = 3});
    OpRun one(name + "_like", {{Array(DType::kFloat32, {14, 5}), 0, 2}}, attrs);
    const Array whole = one.run()[0];
    OpRun second(name + "_like", {{Array(DType::kFloat32, {8, 5}), 0, 2}}, attrs);
    second.replica_context.first_example = {3};
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
    run.replica_context.step = step;
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

const Operand kKey{array_of<std::uint32_t>({2}, {7, 9})};

Array stateless(const std::string& name, Operand key, std::int64_t source, std::int64_t rows,
                std::int64_t n) {
  return OpRun("stateless_random_" + name, {std::move(key), {array_of<std::int64_t>({}, {source})}},
               StatelessAttrs({.shape = {rows, n}}))
      .run()[0];
}

TEST("a draw by a key depends on neither the seed nor the step, nor on the replica's examples") {
  for (const std::string name : {"uniform", "normal", "truncated_normal"}) {
    const Array whole = stateless(name, kKey, 0, 14, 5);
    OpRun part("stateless_random_" + name + "_like", {kKey, {Array(DType::kFloat32, {8, 5}), 0, 2}},
               StatelessLikeAttrs());
    part.replica_context.seed = 5;
    part.replica_context.step = 8;
    part.replica_context.first_example = {3};
    CHECK(same_bits(part.run()[0], whole.rows(6, 14)), name);
    CHECK(same_bits(part.run({1, 2})[0], whole.rows(8, 12)), name);
    CHECK(same_bits(stateless(name, kKey, 1, 7, 5), whole.rows(7, 14)), name);
  }
}

TEST("keys are taken modulo 2^32, whatever their type is") {
  const Array wanted = stateless("uniform", {array_of<std::uint32_t>({2}, {~0u, 9})}, 0, 3, 4);
  const std::int64_t big = (std::int64_t{5} << 32) + 9;
  const Operand keys[] = {{array_of<std::int32_t>({2}, {-1, 9})},
                          {array_of<std::int64_t>({2}, {-1, big})},
                          {array_of<std::uint64_t>({2}, {~std::uint64_t{0}, 9})}};
  for (const Operand& key : keys) {
    CHECK(same_bits(stateless("uniform", key, 0, 3, 4), wanted), name_of(key.array.dtype()));
  }
  const Operand swapped{array_of<std::uint32_t>({2}, {9, ~0u})};
  CHECK(!same_bits(stateless("uniform", swapped, 0, 3, 4), wanted));
}

TEST("a draw by a key keeps its numbers for ever") {
  // From an implementation of the formula in NumPy (tests/unit/philox.py).
  const Operand key{array_of<std::uint32_t>({2}, {1, 2})};
  const Array y = stateless("uniform", key, 0, 8, 70);
  const std::array<std::int64_t, 4> places{0, 16, 63, 69};
  const std::array<std::uint32_t, 4> first{1018371008, 1058591360, 1063741107, 1051482110};
  const std::array<std::uint32_t, 4> last{1036403696, 1061250002, 1062167376, 1058762456};
  for (std::size_t i = 0; i < places.size(); ++i) {
    CHECK_EQ(std::bit_cast<std::uint32_t>(y.data<float>()[places[i]]), first[i]);
    CHECK_EQ(std::bit_cast<std::uint32_t>(y.data<float>()[7 * 70 + places[i]]), last[i]);
  }
}

TEST("integers by a key may be all of their type") {
  const auto draw = [](DType dtype, std::int64_t low, std::int64_t high) {
    return OpRun("stateless_random_integers", {kKey, {array_of<std::int64_t>({}, {0})}},
                 StatelessIntegersAttrs({.shape = {9}, .dtype = dtype, .low = low, .high = high}))
        .run()[0];
  };
  const Array all = draw(DType::kUInt64, 0, 0);
  const Array upper = draw(DType::kUInt32, 0, std::int64_t{1} << 32);
  for (int i = 0; i < 9; ++i) {
    CHECK_EQ(all.data<std::uint64_t>()[i] >> 32, upper.data<std::uint32_t>()[i]);
    CHECK(all.data<std::uint64_t>()[i] ==
          std::uint64_t(draw(DType::kInt64, 0, 0).data<std::int64_t>()[i]));
  }
}

TEST("an invalid key, and a range that the type does not have, are refused") {
  const Operand source{array_of<std::int64_t>({}, {0})};
  const auto refused = [&](Operand key) {
    return error_of("stateless_random_uniform", {std::move(key), source},
                    StatelessAttrs({.shape = {3}}));
  };
  const auto says = [](const std::string& message, const char* what) {
    return message.find(what) != std::string::npos;
  };
  CHECK(says(refused({Array(DType::kFloat32, {2})}), "got float32; cast it"));
  CHECK(says(refused({Array(DType::kInt32, {3})}), "the shape (2,)"));
  CHECK(says(refused({Array(DType::kInt32, {2}), 0}), "no examples"));
  const auto range = [&](DType dtype, std::int64_t low, std::int64_t high) {
    return error_of("stateless_random_integers", {kKey, source},
                    StatelessIntegersAttrs({.dtype = dtype, .low = low, .high = high}));
  };
  CHECK(says(range(DType::kInt32, 0, 0), "low must be below high"));
  CHECK(says(range(DType::kInt32, 0, std::int64_t{1} << 32), "below 2147483648"));
  CHECK(says(range(DType::kUInt32, -1, 3), "from 0 to below 4294967296"));
  CHECK(says(range(DType::kUInt64, -1, 3), "from 0"));
  CHECK(says(range(DType::kInt8, 0, 3), "got int8"));
}

}  // namespace
}  // namespace samegrad::testing
