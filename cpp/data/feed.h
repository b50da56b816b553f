// Assembles batches of rows on a thread of its own while a step runs.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "data/index_stream.h"
#include "tensor/array.h"

namespace samegrad {

// Returns `replicas` + 1 bounds: replica r gets rows [bounds[r], bounds[r + 1]) of a batch.
// Replicas have ceil(rows / replicas) rows, the last ones fewer or none.
std::vector<std::int64_t> share_bounds(std::int64_t rows, int replicas);

// One component of the elements: rows of an array, or the numbers first, first + step, …
struct FeedSource {
  Array array;  // undefined: numbers
  int column = 0;
  std::int64_t first = 0, step = 1;
};

enum class FeedSplit {
  kNone,         // elements are given whole
  kChunks,       // each batch is split into equal chunks of rows
  kOwnElements,  // each replica gets a batch of its own; after the last one, batches without rows
};

struct FeedOptions {
  FeedSplit split = FeedSplit::kNone;
  int replicas = 1;
  // The rows of replicas [first, last) are gathered, others are left to their processes; last 0:
  // those of all.
  int first = 0, last = 0;
  // Elements kept ready, at least: of small ones two chunks. 0: as many as fit into 1 MiB, but 2 to
  // 1024.
  int depth = 0;
};

// A gathered element: an array per source, and which rows of the whole are whose (empty: not
// split).
struct FeedElement {
  std::vector<Array> arrays;
  std::vector<std::int64_t> bounds;
  std::int64_t consumed = 0;  // elements of the plan it is made of
};

// Walks once along a plan. The elements depend on plan, epoch and position only. The thread starts
// at the first next(). Several threads may call next(), but not the first time. A forked child goes
// on by itself, with a thread of its own.
class Feed {
 public:
  Feed(IndexPlanPtr plan, std::vector<FeedSource> sources, FeedOptions options, std::int64_t epoch,
       std::int64_t position);
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  enum class Status { kReady, kEnd, kPending };
  // The next element. kPending: it was not finished within `timeout`; ask again. Throws what the
  // thread threw.
  Status next(FeedElement& element, std::chrono::milliseconds timeout);

  // Elements of the plan handed out, those before the first one included.
  std::int64_t position() const { return position_; }

  // Ends the threads of all feeds; for the end of the process.
  static void stop_all();

 private:
  class Worker;
  void start_worker();

  const IndexPlanPtr plan_;
  const std::vector<FeedSource> sources_;
  const FeedOptions options_;
  const std::int64_t epoch_;
  std::atomic<std::int64_t> position_;
  std::uint64_t process_ = 0;  // generation of the process that the worker belongs to
  std::unique_ptr<Worker> worker_;
};

}  // namespace samegrad
