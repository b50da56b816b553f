// Where values are in a run's arena: those that are needed together never overlap, and the others
// share memory.
#include <algorithm>
#include <chrono>
#include <map>
#include <random>

#include "check.h"
#include "plan/memory.h"
#include "programs.h"

using namespace samegrad;

namespace {

std::vector<Interval> random_intervals(std::mt19937& random, int count, int steps) {
  std::vector<Interval> intervals;
  const auto below = [&](int n) { return std::int32_t(random() % std::uint32_t(n)); };
  for (int i = 0; i < count; ++i) {
    const std::int32_t first = below(steps);
    const std::int32_t length = below(4) == 0 ? below(steps) : below(3);
    intervals.push_back({64 * std::int64_t(below(40)), first, std::min(first + length, steps)});
  }
  return intervals;
}

std::int64_t most_alive(const std::vector<Interval>& intervals, std::int32_t steps) {
  std::int64_t most = 0;
  for (std::int32_t s = 0; s <= steps; ++s) {
    std::int64_t alive = 0;
    for (const Interval& i : intervals) alive += i.first <= s && s <= i.last ? i.bytes : 0;
    most = std::max(most, alive);
  }
  return most;
}

void check_packing(const std::vector<Interval>& intervals, const Packing& packing) {
  CHECK_EQ(packing.offsets.size(), intervals.size());
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    CHECK(packing.offsets[i] >= 0);
    CHECK(packing.offsets[i] + intervals[i].bytes <= packing.bytes);
    for (std::size_t k = 0; k < i; ++k) {
      const Interval &a = intervals[i], &b = intervals[k];
      const bool together = a.first <= b.last && b.first <= a.last;
      const bool overlap = packing.offsets[i] < packing.offsets[k] + b.bytes &&
                           packing.offsets[k] < packing.offsets[i] + a.bytes;
      CHECK(!(together && overlap && a.bytes > 0 && b.bytes > 0), i, " ", k);
    }
  }
}

// A program of fake operations, and what it computes.
struct RandomProgram {
  static constexpr int kVariables = 3;
  using Numbers = std::array<float, 5>;

  explicit RandomProgram(std::mt19937& random) : fake(kVariables) {
    const auto below = [&](std::size_t n) { return std::size_t(random() % n); };
    for (int v = 0; v < kVariables; ++v) {
      Numbers numbers;
      for (int i = 0; i < 5; ++i) numbers[std::size_t(i)] = 10.f * float(v) + float(i);
      add(fake.old(v), numbers);
    }
    const std::size_t count = 3 + below(30);
    for (std::size_t n = 0; n < count; ++n) {
      // Mostly of what is new, so that old values die.
      const auto pick = [&] {
        return below(3) ? values.size() - 1 - below(std::min<std::size_t>(4, values.size()))
                        : below(values.size());
      };
      const std::size_t a = pick(), b = pick();
      Numbers result = numbers_of[a];
      switch (below(4)) {
        case 0:
          std::ranges::reverse(result);
          add(fake.apply(reverse_op(), {values[a]}), result);
          break;
        case 1:
          add(fake.apply(alias_op(), {values[a]}), result);
          break;
        default:
          for (std::size_t i = 0; i < 5; ++i) result[i] += numbers_of[b][i];
          add(fake.sum({values[a], values[b]}), result);
      }
    }
    for (int v = 0; v < kVariables; ++v) {
      written.push_back(below(3) ? below(values.size()) : values.size());
      if (written.back() < values.size()) fake.write(v, values[written.back()]);
    }
    for (std::size_t o = 0; o < 1 + below(3); ++o) {
      outputs.push_back(below(values.size()));
      fake.output(values[outputs.back()]);
    }
  }

  void add(Value value, const Numbers& numbers) {
    values.push_back(value);
    numbers_of.push_back(numbers);
  }

  void run_and_check(bool in_place) {
    const auto results = fake.run(in_place);
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const float* got = results[o][0].data<float>();
      CHECK(std::equal(got, got + 5, numbers_of[outputs[o]].begin()));
    }
    for (int v = 0; v < kVariables; ++v) {
      const std::size_t source = written[std::size_t(v)];
      const Numbers& wanted = numbers_of[source < values.size() ? source : std::size_t(v)];
      CHECK(std::equal(wanted.begin(), wanted.end(), fake.cell(v).data()));
    }
  }

  Fake fake;
  Values values;
  std::vector<Numbers> numbers_of;
  std::vector<std::size_t> written, outputs;
};

// By brute force: whoever is read is untouched since it was written.
void check_live_ranges(const Plan& plan) {
  std::map<Value, Value> occupant;  // by home
  for (StepId s : plan.steps.ids()) {
    const BufferUses uses = plan.steps[s].uses(plan);
    for (Value root : uses.reads) {
      const LiveRange& life = plan.live_ranges[root];
      if (life.home != kNoValue) CHECK_EQ(occupant.at(life.home), root);
    }
    for (Value root : uses.writes) {
      const LiveRange& life = plan.live_ranges[root];
      if (life.home == kNoValue) continue;
      CHECK(life.first == s && life.last >= s);
      const LiveRange& home = plan.live_ranges[life.home];
      CHECK(home.home == life.home && home.first <= s && home.last >= life.last);
      occupant[life.home] = root;
    }
  }
  for (std::size_t w = 0; w < plan.stores.size(); ++w) {
    const Value root = plan.root[plan.graph.writes[w].value];
    const LiveRange& life = plan.live_ranges[root];
    if (life.home == kNoValue) continue;
    CHECK_EQ(occupant.at(life.home), root);
    CHECK_EQ(plan.live_ranges[life.home].last, plan.steps.next_id());
  }
}

std::int64_t arena_bytes(const Fake& fake) {
  Executable executable(fake.plan());
  ExecuteParams call;
  call.counts = {{}};
  return executable.arena_bytes(call).planned;
}

}  // namespace

TEST("intervals with a common step never overlap, and little memory is wasted") {
  std::mt19937 random(1);
  double wasted = 0;
  for (int i = 0; i < 1000; ++i) {
    const int steps = 1 + int(random() % 60);
    const auto intervals = random_intervals(random, int(random() % 60), steps);
    const Packing packing = pack(intervals);
    check_packing(intervals, packing);
    const std::int64_t least = most_alive(intervals, steps);
    CHECK(packing.bytes >= least);
    CHECK(packing.bytes <= 2 * least, packing.bytes, " ", least);
    wasted += least == 0 ? 0 : double(packing.bytes) / double(least) - 1;
  }
  CHECK(wasted / 1000 < 0.1, wasted / 1000);
}

TEST("a hundred thousand intervals are packed in no time") {
  std::mt19937 random(2);
  const auto intervals = random_intervals(random, 100'000, 20'000);
  const auto start = std::chrono::steady_clock::now();
  const Packing packing = pack(intervals);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  CHECK(packing.bytes > 0);
  CHECK(took.count() < 5, took.count());
}

TEST("a value is untouched from the step that writes it to the last that reads it") {
  std::mt19937 random(3);
  for (int i = 0; i < 1000; ++i) {
    RandomProgram program(random);
    check_live_ranges(program.fake.plan(true));
    check_live_ranges(program.fake.plan(false));
    program.run_and_check(i % 2 == 0);
  }
}

TEST("a chain of any length needs the memory of two values") {
  std::int64_t of_ten = 0;
  for (const int length : {10, 1000}) {
    Fake fake(1);
    Value value = fake.old(0);
    for (int i = 0; i < length; ++i) value = fake.apply(reverse_op(), {value});
    fake.output(value);
    const std::int64_t bytes = arena_bytes(fake);
    CHECK_EQ(bytes, 2 * 64);
    of_ten = of_ten ? of_ten : bytes;
    CHECK_EQ(bytes, of_ten);
  }
}

TEST("elementwise results take the memory of operands that nobody reads afterwards") {
  Fake fake(1);
  Value value = fake.apply(reverse_op(), {fake.old(0)});
  for (int i = 0; i < 10; ++i) value = fake.sum({value, value});
  fake.output(fake.apply(reverse_op(), {value}));
  CHECK_EQ(arena_bytes(fake), 64);
  const auto outputs = fake.run();
  CHECK_EQ(outputs[0][0].data<float>()[4], 4 * 1024.f);
}

TEST("an operand that is read later keeps its memory") {
  Fake fake(1);
  const Value first = fake.apply(reverse_op(), {fake.old(0)});
  const Value second = fake.sum({first, first});
  fake.output(fake.apply(reverse_op(), {second}));
  fake.output(fake.sum({first, first}));
  const auto outputs = fake.run();
  CHECK_EQ(outputs[0][0].data<float>()[0], 0.f);
  CHECK_EQ(outputs[1][0].data<float>()[0], 8.f);
}

TEST("outputs and what is written in place take nothing of the arena") {
  Fake fake(2);
  fake.output(fake.apply(reverse_op(), {fake.old(1)}));
  fake.write(0, fake.sum({fake.old(0), fake.old(1)}));
  CHECK_EQ(arena_bytes(fake), 0);
}

TEST("a dry run computes what a run would, and leaves variables as they are") {
  std::mt19937 random(4);
  for (int i = 0; i < 200; ++i) {
    RandomProgram program(random);
    Executable executable(program.fake.plan());
    std::vector<StepUsage> usages;
    std::vector<std::vector<float>> before;
    for (int v = 0; v < RandomProgram::kVariables; ++v) {
      const float* data = program.fake.cell(v).data();
      before.emplace_back(data, data + 5);
    }
    const auto results = program.fake.run_dry(executable, usages);
    CHECK_EQ(usages.size(), executable.plan().steps.size());
    for (std::size_t o = 0; o < program.outputs.size(); ++o) {
      const float* got = results[o][0].data<float>();
      CHECK(std::equal(got, got + 5, program.numbers_of[program.outputs[o]].begin()));
    }
    for (int v = 0; v < RandomProgram::kVariables; ++v) {
      const float* data = program.fake.cell(v).data();
      CHECK(std::equal(data, data + 5, before[std::size_t(v)].begin()));
    }
  }
}
