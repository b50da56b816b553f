// The reduction order in each of its forms against the specification in docs/numerics.md.
#include "base/reduction_order.h"

#include <algorithm>
#include <random>
#include <vector>

#include "check.h"
#include "reduction_spec.h"
#include "runtime/world_tree.h"
#include "tensor/tree_accumulator.h"

namespace samegrad::testing {
namespace {

// A sum as a number that tells how it was added: neither order nor brackets can be changed.
using Sum = std::uint64_t;

Sum mixed(Sum a, Sum b, Sum kind) {
  return (a * 0x9E3779B97F4A7C15ull ^ b) * 0xD6E8FEB86659FD93ull + kind;
}
Sum joined(Sum left, Sum right) {
  return mixed(left, right, 1);
}
// Elements that are added in order.
Sum in_order(Sum sum, std::int64_t element) {
  return mixed(sum, Sum(element), 2);
}
Sum leaf_sum(std::int64_t first, std::int64_t count) {
  return mixed(Sum(first), Sum(count), 3);
}
Sum leaf_of(TreeRange range) {
  return leaf_sum(range.begin, range.size());
}

class Random {
 public:
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(generator_);
  }
  // A random size up to `most`, of which short ones are frequent.
  std::int64_t size(std::int64_t most) {
    std::int64_t high = 1;
    while (high < most && between(0, 3) > 0) high *= 2;
    return between(0, std::min(high, most));
  }

 private:
  std::mt19937 generator_{45};
};

// A rule, and the same in the numbers of docs/numerics.md.
template <std::int64_t kUnit>
struct Rule {
  Halving<kUnit> halving;
  std::int64_t most, unit;

  Sum specified(TreeRange range) const {
    return by_specification(range.begin, range.size(), most, unit, leaf_sum, joined);
  }
};

// Calls f for all rules and for ranges of random sizes, some of which are not from 0 on.
template <class F>
void for_each_case(const F& f) {
  Random random;
  const auto check = [&](const auto& rule) {
    for (int i = 0; i < 400; ++i) {
      const std::int64_t begin = random.between(0, 3) * rule.unit;
      f(rule, TreeRange{begin, begin + random.size(200 * rule.most)}, random);
    }
  };
  check(Rule<1>{kExampleTree, 4, 1});
  check(Rule<1>{kReplicaTree, 1, 1});
  check(Rule<kRowBlock>{kRowTree, 1024, 1024});
  check(Rule<kColumnBlock>{kColumnTree, 128, 128});
  check(Rule<kContractionBlock>{kContractionTree, 4096, 4096});
  check(Rule<1>{kIndexTree, 128, 1});
  for (const std::int64_t most : {2, 3, 7, 32}) check(Rule<1>{Halving<>{most}, most, 1});
  check(Rule<128>{Halving<128>{256}, 256, 128});
}

// Sums at the levels that walk_tree and steps tell.
class Levels {
 public:
  explicit Levels(int count) : count_(count) {}

  Sum& operator[](int level) {
    CHECK(level >= 0 && level < count_, level, " of ", count_);
    return at_[std::size_t(level)];
  }
  void join(int level) { (*this)[level] = joined((*this)[level], (*this)[level + 1]); }
  void take(const TreeStep& step, Sum sum) {
    (*this)[step.level] = sum;
    for (int i = 1; i <= step.joins; ++i) join(step.level - i);
  }

 private:
  int count_;
  std::array<Sum, kMaxTreeLevels> at_;
};

TEST("the recursive form is the specification") {
  for_each_case([](const auto& rule, TreeRange range, Random&) {
    const Sum expected = rule.specified(range);
    CHECK_EQ(reduce_tree(rule.halving, range, leaf_of, joined), expected);
    Levels levels(rule.halving.levels(range.size()));
    walk_tree(
        rule.halving, range, [&](TreeRange of, int level) { levels[level] = leaf_of(of); },
        [&](int level) { levels.join(level); });
    CHECK_EQ(levels[0], expected);
  });
}

TEST("there are as many levels as the left half can be halved") {
  for_each_case([](const auto& rule, TreeRange range, Random&) {
    int levels = 1;
    for (std::int64_t n = range.size(); n > rule.most; ++levels) {
      const std::int64_t units = n / rule.unit + (n % rule.unit ? 1 : 0);
      n = (units / 2 + units % 2) * rule.unit;
    }
    CHECK_EQ(rule.halving.levels(range.size()), levels);
  });
}

TEST("the incremental form is the specification") {
  for_each_case([](const auto& rule, TreeRange range, Random&) {
    Levels levels(rule.halving.levels(range.size()));
    std::int64_t next = range.begin;
    for_each_leaf(rule.halving, range, [&](const TreeStep& step) {
      CHECK_EQ(step.range.begin, next);
      next = step.range.end;
      levels.take(step, leaf_of(step.range));
    });
    CHECK_EQ(next, range.end);
    CHECK_EQ(levels[0], rule.specified(range));
  });
}

TEST("the form that may be cut anywhere is the specification") {
  for_each_case([](const auto& rule, TreeRange range, Random& random) {
    Levels levels(rule.halving.levels(range.size()));
    ReductionCursor cursor(range);
    for (std::int64_t end = range.begin; !cursor.done();) {
      end = std::min(range.end, end + 1 + random.size(range.size() + 1));
      const TreeStep step = cursor.next(rule.halving, end);
      levels.take(step, rule.specified(step.range));
      end = std::max(end, step.range.end);
    }
    CHECK_EQ(levels[0], rule.specified(range));
  });
}

TEST("the form in subtrees of threads is the specification") {
  for_each_case([](const auto& rule, TreeRange range, Random& random) {
    const std::int64_t units = rule.halving.units(range.size());
    int levels = 0;
    while (units >> (levels + 1) > 0 && random.between(0, 4) > 0) ++levels;
    if (range.size() == 0 || rule.most != rule.unit) return;
    std::vector<Sum> sums(std::size_t(1) << levels);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] = rule.specified(rule.halving.subtree(range, levels, std::int64_t(i)));
    }
    join_levels(std::ssize(sums), levels, [&](std::int64_t left, std::int64_t right) {
      sums[std::size_t(left)] = joined(sums[std::size_t(left)], sums[std::size_t(right)]);
    });
    CHECK_EQ(sums[0], rule.specified(range));
  });
}

TEST("the form over processes is the specification") {
  Random random;
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t most = i % 2 ? 4 : 1, n = random.size(500);
    std::vector<std::int64_t> firsts{0, n};
    while (random.between(0, 5) > 0) firsts.push_back(random.between(0, n));
    std::ranges::sort(firsts);
    const Rule<1> rule{Halving<>{most}, most, 1};
    std::vector<WorldTree::Subtree> all;
    for (int rank = 0; rank + 1 < int(firsts.size()); ++rank) {
      const WorldTree tree(firsts, rule.halving, rank);
      all.assign(tree.all().begin(), tree.all().end());
      std::size_t own = 0;
      for (const WorldTree::Subtree& subtree : all) {
        if (subtree.rank != rank) continue;
        const std::int64_t first = firsts[std::size_t(rank)];
        CHECK_EQ(tree.own()[own].begin + first, subtree.range.begin);
        CHECK_EQ(tree.own()[own++].end + first, subtree.range.end);
      }
      CHECK_EQ(own, tree.own().size());
    }
    Levels levels(kReplicaTree.levels(n));
    join_subtrees(
        {0, n}, all,
        [&](std::size_t k, int level) { levels[level] = rule.specified(all[k].range); },
        [&](int level) { levels.join(level); });
    CHECK_EQ(levels[0], rule.specified({0, n}));
  }
}

// The specification of sums over named elements: a half without one is left out.
Sum named_sum(const std::vector<std::int64_t>& places, std::int64_t first, std::int64_t n) {
  const auto count = [&](std::int64_t begin, std::int64_t end) {
    return std::ranges::count_if(places, [&](std::int64_t k) { return begin <= k && k < end; });
  };
  if (n <= 4) return mixed(leaf_sum(first, n), Sum(count(first, first + n)), 4);
  const std::int64_t left = n - n / 2;
  if (count(first + left, first + n) == 0) return named_sum(places, first, left);
  if (count(first, first + left) == 0) return named_sum(places, first + left, n - left);
  return joined(named_sum(places, first, left), named_sum(places, first + left, n - left));
}

TEST("the form over named elements is the specification") {
  Random random;
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t n = 1 + random.size(300);
    std::vector<std::int64_t> places(std::size_t(random.between(1, 12)));
    for (std::int64_t& place : places) place = random.between(0, n - 1);
    std::ranges::sort(places);
    const auto split = [](const NamedRange& named, std::int64_t element) {
      return std::lower_bound(named.begin, named.end, element);
    };
    const NamedRange all{{0, n}, places.data(), places.data() + places.size()};
    const Sum sum = reduce_tree(
        NamedHalving<decltype(split)>{kExampleTree, split}, all,
        [](const NamedRange& of) { return mixed(leaf_of(of.range), Sum(of.end - of.begin), 4); },
        joined);
    CHECK_EQ(sum, named_sum(places, 0, n));
  }
}

// ---- the accumulator ----

constexpr std::int64_t kStateColumns = 6;

// Column c of the state is the sum of elements i * kStateColumns + c.
void fold_leaf(const LeafArgs& args) {
  for (std::int64_t c = 0; c < args.block.columns; ++c) {
    Sum& sum = args.state.as<Sum>()[c];
    if (args.first) sum = 0;
    for (std::int64_t i = args.begin; i < args.end; ++i) {
      sum = in_order(sum, i * kStateColumns + args.block.column + c);
    }
  }
}
void combine(const CombineArgs& args) {
  for (std::int64_t c = 0; c < args.block.columns; ++c) {
    Sum& left = args.left.as<Sum>()[c];
    left = joined(left, args.right.as<Sum>()[c]);
  }
}
void neutral(const NeutralArgs& args) {
  std::fill_n(args.state.as<Sum>(), args.block.columns, Sum(0));
}
AccumulatorShape state(std::span<const View>, const Attrs&, const View&) {
  return {.columns = kStateColumns, .column_grain = 1, .block_bytes = 16, .item = {sizeof(Sum)}};
}
constexpr TreeKernel kSums{
    .state = state, .leaf = fold_leaf, .combine = combine, .neutral = neutral};

Sum column_sum(std::int64_t first, std::int64_t count, std::int64_t column) {
  return by_specification(
      first, count, 4, 1,
      [&](std::int64_t begin, std::int64_t examples) {
        Sum sum = 0;
        for (std::int64_t i = begin; i < begin + examples; ++i) {
          sum = in_order(sum, i * kStateColumns + column);
        }
        return sum;
      },
      joined);
}

TEST("an accumulator that is fed pieces of any size sums by the specification") {
  Random random;
  const Attrs attrs;
  const View result{nullptr, Shape({kStateColumns}), DType::kInt64};
  const TreeReduction reduction(kSums, attrs, {}, result);
  Scratch scratch;
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t n = random.size(300);
    std::vector<std::byte> memory(std::size_t(reduction.whole.bytes) + 64);
    std::vector<std::byte> partials(
        std::size_t(TreeAccumulator::partial_bytes(reduction, reduction.whole, n)) + 64);
    const Accumulator sums = reduction.whole.at(memory.data());
    TreeAccumulator accumulator(reduction, reduction.whole, 0, n, sums, partials.data());
    for (std::int64_t begin = 0, end = 0; begin < n; begin = end) {
      end = std::min(n, begin + 1 + random.size(n));
      accumulator.feed(nullptr, 0, begin, end, scratch);
    }
    for (std::int64_t c = 0; c < kStateColumns; ++c) {
      CHECK_EQ(sums.as<Sum>()[c], column_sum(0, n, c));
    }
  }
}

}  // namespace
}  // namespace samegrad::testing
