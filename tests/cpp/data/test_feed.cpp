#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "check.h"
#include "data/feed.h"

using namespace samegrad;

namespace {

using Numbers = std::vector<std::int64_t>;

std::string to_text(const Numbers& numbers) {
  std::string text = "[";
  for (const auto number : numbers) text += std::to_string(number) + " ";
  return text + "]";
}

Numbers all_of(IndexStream& stream, std::int64_t at_once = 7) {
  RowIndices indices;
  while (stream.read(at_once, indices) == at_once) {
  }
  return indices.numbers;
}

Numbers all_of(const IndexPlanPtr& plan, std::int64_t epoch = 0) {
  return all_of(*plan->open(epoch));
}

Numbers counted(std::int64_t n) {
  Numbers numbers(static_cast<std::size_t>(n));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

void equal(const Numbers& a, const Numbers& b, int line) {
  if (a != b) check::fail(__FILE__, line, to_text(a), " != ", to_text(b));
}
#define EQUAL(a, b) equal((a), (b), __LINE__)

// A source of n rows of two float numbers: row and row + 0.5.
Array table(std::int64_t n) {
  Array array(DType::kFloat32, {n, 2});
  for (std::int64_t i = 0; i < 2 * n; ++i) array.data<float>()[i] = float(i) / 2;
  return array;
}

FeedElement next_of(Feed& feed) {
  FeedElement element;
  CHECK(feed.next(element, std::chrono::seconds(20)) == Feed::Status::kReady);
  return element;
}

bool at_end(Feed& feed) {
  FeedElement element;
  return feed.next(element, std::chrono::seconds(20)) == Feed::Status::kEnd;
}

Numbers rows_of(const FeedElement& element) {
  Numbers rows;
  const Array& array = element.arrays[0];
  for (std::int64_t i = 0; i < array.shape()[0]; ++i) rows.push_back(array.data<std::int64_t>()[i]);
  return rows;
}

std::vector<FeedSource> number_source() {
  return {FeedSource{}};
}

}  // namespace

TEST("plans give their elements in order") {
  EQUAL(all_of(rows_in_order(3)), (Numbers{0, 1, 2}));
  EQUAL(all_of(taken(rows_in_order(5), 2)), (Numbers{0, 1}));
  EQUAL(all_of(skipped(rows_in_order(5), 3)), (Numbers{3, 4}));
  EQUAL(all_of(repeated(rows_in_order(2), 3)), (Numbers{0, 1, 0, 1, 0, 1}));
  EQUAL(all_of(sharded(rows_in_order(8), 3, 1)), (Numbers{1, 4, 7}));
  EQUAL(all_of(zipped({rows_in_order(2), skipped(rows_in_order(9), 4)})), (Numbers{0, 4, 1, 5}));
  EQUAL(all_of(repeated(rows_in_order(0), kEndless)), Numbers());
}

TEST("plans know how many elements they give") {
  CHECK_EQ(repeated(rows_in_order(5), 3)->size(), 15);
  CHECK_EQ(repeated(rows_in_order(5), kEndless)->size(), kEndless);
  CHECK_EQ(batched(rows_in_order(5), 2, false)->size(), 3);
  CHECK_EQ(batched(rows_in_order(5), 2, true)->size(), 2);
  CHECK_EQ(skipped(rows_in_order(5), 7)->size(), 0);
  CHECK_EQ(taken(repeated(rows_in_order(5), kEndless), 8)->size(), 8);
  CHECK_EQ(sharded(rows_in_order(8), 3, 2)->size(), 2);
  CHECK_EQ(zipped({rows_in_order(4), rows_in_order(6)})->size(), 4);
}

TEST("a shuffle gives every element once, another order in every epoch, the same order again") {
  const auto plan = shuffled(rows_in_order(1000), 1000, 7, true);
  Numbers first = all_of(plan, 0);
  EQUAL(all_of(plan, 0), first);
  CHECK(all_of(plan, 1) != first);
  CHECK(all_of(shuffled(rows_in_order(1000), 1000, 8, true), 0) != first);
  EQUAL(all_of(shuffled(rows_in_order(1000), 5000, 7, true), 0), first);
  EQUAL(all_of(shuffled(rows_in_order(1000), 1000, 7, false), 5), first);
  std::sort(first.begin(), first.end());
  EQUAL(first, counted(1000));
}

TEST("a small buffer moves elements forward by no more than its size") {
  Numbers order = all_of(shuffled(rows_in_order(500), 10, 3, true));
  for (std::size_t i = 0; i < order.size(); ++i) CHECK(order[i] < std::int64_t(i) + 10);
  std::sort(order.begin(), order.end());
  EQUAL(order, counted(500));
}

TEST("all orders of four elements are about equally frequent") {
  std::map<Numbers, int> seen;
  const auto plan = shuffled(rows_in_order(4), 4, 1, true);
  for (int epoch = 0; epoch < 24000; ++epoch) ++seen[all_of(plan, epoch)];
  CHECK_EQ(seen.size(), 24u);
  for (const auto& [order, times] : seen) CHECK(times > 850 && times < 1150, to_text(order), times);
}

TEST("passes of a repeated shuffle are its epochs") {
  const auto once = shuffled(rows_in_order(50), 50, 7, true);
  Numbers passes;
  for (int epoch = 0; epoch < 3; ++epoch) {
    const Numbers pass = all_of(once, epoch);
    passes.insert(passes.end(), pass.begin(), pass.end());
  }
  EQUAL(all_of(repeated(once, 3)), passes);
}

TEST("skipping leads to where reading leads") {
  const auto base = shuffled(rows_in_order(23), 6, 7, true);
  const std::vector<IndexPlanPtr> plans = {
      base,
      repeated(base, 3),
      taken(repeated(base, kEndless), 60),
      sharded(base, 2, 1),
      zipped({base, rows_in_order(20)}),
      repeated(repeated(base, 2), 2),
      shuffled(repeated(rows_in_order(11), 3), 5, 2, true),
      skipped(repeated(base, 2), 5),
      batched(base, 4, false),
      repeated(batched(base, 4, false), 3),
      taken(repeated(batched(base, 4, true), kEndless), 17),
  };
  for (const auto& plan : plans) {
    for (std::int64_t skip = 0; skip <= plan->size() + 1; ++skip) {
      const auto skipping = plan->open(1), reading = plan->open(1);
      RowIndices passed;
      CHECK_EQ(skipping->skip(skip), reading->read(skip, passed));
      EQUAL(all_of(*skipping), all_of(*reading));
      if (skip > 2) {  // in two steps
        const auto again = plan->open(1);
        CHECK_EQ(again->skip(2) + again->skip(skip - 2), std::min(skip, plan->size()));
      }
    }
  }
}

TEST("a feed gathers batches of all sources, the last one shorter") {
  Array labels(DType::kUInt8, {5});
  for (int i = 0; i < 5; ++i) labels.data<std::uint8_t>()[i] = std::uint8_t(10 * i);
  std::vector<FeedSource> sources(2);
  sources[0].array = table(5);
  sources[1].array = labels;
  Feed feed(batched(rows_in_order(5), 3, false), sources, {}, 0, 0);
  const FeedElement first = next_of(feed);
  CHECK(first.arrays[0].shape() == Shape({3, 2}));
  CHECK_EQ(first.arrays[0].data<float>()[5], 2.5f);
  CHECK_EQ(reinterpret_cast<std::uintptr_t>(first.arrays[0].raw()) % kAlignment, 0u);
  const FeedElement last = next_of(feed);
  CHECK(last.arrays[0].shape() == Shape({2, 2}));
  CHECK_EQ(int(last.arrays[1].data<std::uint8_t>()[1]), 40);
  CHECK_EQ(feed.position(), 2);
  CHECK(at_end(feed));
  CHECK(at_end(feed));
}

TEST("elements that are not batched have no axis of rows") {
  FeedSource source;
  source.array = table(2);
  Feed feed(rows_in_order(2), {source}, {}, 0, 1);
  const FeedElement element = next_of(feed);
  CHECK(element.arrays[0].shape() == Shape({2}));
  CHECK_EQ(element.arrays[0].data<float>()[0], 1.0f);
}

TEST("a feed begins at any position, and counts from there") {
  for (std::int64_t position = 0; position < 9; ++position) {
    const auto plan = repeated(batched(shuffled(rows_in_order(10), 10, 5, true), 4, false), 3);
    Feed whole(plan, number_source(), {}, 2, 0), rest(plan, number_source(), {}, 2, position);
    for (std::int64_t i = 0; i < position; ++i) next_of(whole);
    EQUAL(rows_of(next_of(whole)), rows_of(next_of(rest)));
    CHECK_EQ(rest.position(), position + 1);
  }
}

TEST("replicas divide a batch in contiguous chunks") {
  EQUAL(share_bounds(8, 2), (Numbers{0, 4, 8}));
  EQUAL(share_bounds(13, 4), (Numbers{0, 4, 8, 12, 13}));
  EQUAL(share_bounds(4, 3), (Numbers{0, 2, 4, 4}));
  EQUAL(share_bounds(0, 3), (Numbers{0, 0, 0, 0}));
  EQUAL(share_bounds(10, 4), (Numbers{0, 3, 6, 9, 10}));
  CHECK_THROWS(share_bounds(4, 0), Error);
}

TEST("replicas' own batches come in order, and batches without rows after the last one") {
  FeedOptions options;
  options.split = FeedSplit::kOwnElements;
  options.replicas = 2;
  Feed feed(batched(rows_in_order(9), 2, false), number_source(), options, 0, 0);
  EQUAL(next_of(feed).bounds, (Numbers{0, 2, 4}));
  EQUAL(next_of(feed).bounds, (Numbers{0, 2, 4}));
  const FeedElement last = next_of(feed);
  EQUAL(rows_of(last), (Numbers{8}));
  EQUAL(last.bounds, (Numbers{0, 1, 1}));
  CHECK_EQ(feed.position(), 5);
  CHECK(at_end(feed));
}

TEST("splitting single elements is an error that names batch()") {
  FeedOptions options;
  options.split = FeedSplit::kChunks;
  CHECK_THROWS(Feed(rows_in_order(9), number_source(), options, 0, 0), Error);
}

TEST("many feeds live and die while their threads work") {
  for (int i = 0; i < 200; ++i) {
    Feed feed(batched(repeated(shuffled(rows_in_order(100), 100, 1, true), kEndless), 8, false),
              number_source(), {}, 0, i);
    if (i % 2) next_of(feed);
  }
}

#ifndef __SANITIZE_THREAD__  // which forbids threads in a forked child
TEST("a forked child goes on where its parent was") {
  Feed feed(batched(repeated(rows_in_order(100), kEndless), 4, false), number_source(), {}, 0, 0);
  next_of(feed);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const Numbers rows = rows_of(next_of(feed));
    _exit(rows == Numbers{4, 5, 6, 7} ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  EQUAL(rows_of(next_of(feed)), (Numbers{4, 5, 6, 7}));
}
#endif

TEST("stopped feeds say so, once their ready elements are used up") {
  Feed feed(batched(rows_in_order(1000000), 4, false), number_source(), {}, 0, 0);
  next_of(feed);
  Feed::stop_all();
  bool failed = false;
  for (int i = 0; i < 1000 && !failed; ++i) {
    try {
      next_of(feed);
    } catch (const std::exception&) {
      failed = true;
    }
  }
  CHECK(failed);
}
