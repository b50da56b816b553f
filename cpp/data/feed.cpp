#include "data/feed.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/fork.h"
#include "base/rounding.h"
#include "data/gather.h"

namespace samegrad {

std::vector<std::int64_t> share_bounds(std::int64_t rows, int replicas) {
  SG_CHECK_VALUE(replicas >= 1, "share_bounds", "at least one replica is needed: got ", replicas,
                 ".");
  std::vector<std::int64_t> bounds{0};
  const std::int64_t chunk = divide_up(rows, replicas);
  for (int r = 1; r <= replicas; ++r) bounds.push_back(std::min(rows, r * chunk));
  return bounds;
}

// The thread, and what it and next() share. It never touches Python: the sources belong to the
// feed, which outlives it.
class Feed::Worker {
 public:
  explicit Worker(const Feed& feed)
      : plan_(*feed.plan_),
        sources_(feed.sources_),
        options_(feed.options_),
        stream_(feed.plan_->open(feed.epoch_)),
        position_(feed.position_) {
    thread_ = std::thread([this] { run(); });
    const std::lock_guard<std::mutex> lock(registry().mutex);
    registry().workers.insert(this);
  }
  ~Worker() {
    {
      const std::lock_guard<std::mutex> lock(registry().mutex);
      registry().workers.erase(this);
    }
    stop();
  }

  void stop() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    wake_worker_.notify_one();
    wake_consumer_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  Status next(FeedElement& element, std::chrono::milliseconds timeout) {
    std::unique_lock<std::mutex> lock(consumer_mutex_, std::defer_lock);
    if (timeout.count() > 0) {
      lock.lock();
    } else if (!lock.try_lock()) {
      return Status::kPending;
    }
    if (next_in_chunk_ == chunk_.size()) {
      const Status status = take_chunk(timeout);
      if (status != Status::kReady) return status;
    }
    element = std::move(chunk_[next_in_chunk_++]);
    return Status::kReady;
  }

  // All live workers. Never destroyed: threads may outlive static objects.
  struct Registry {
    std::mutex mutex;
    std::set<Worker*> workers;
  };
  static Registry& registry() {
    static auto* all = new Registry;
    static std::uint64_t owner = process_generation();
    if (owner != process_generation()) {  // a forked child knows none of its parent's
      all = new Registry;
      owner = process_generation();
    }
    return *all;
  }

 private:
  using Chunk = std::vector<FeedElement>;

  Status take_chunk(std::chrono::milliseconds timeout) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto settled = [this] { return !ready_.empty() || finished_ || stopping_; };
    if (!settled()) {
      if (timeout.count() <= 0) return Status::kPending;
      consumer_waits_ = true;
      const bool in_time = wake_consumer_.wait_for(lock, timeout, settled);
      consumer_waits_ = false;
      if (!in_time) return Status::kPending;
    }
    if (ready_.empty()) {
      if (error_) std::rethrow_exception(error_);
      if (!finished_) fail(ErrorKind::kRuntime, "Dataset", "the process is ending.");
      return Status::kEnd;
    }
    chunk_ = std::move(ready_.front());
    next_in_chunk_ = 0;
    ready_.pop_front();
    const bool wake = worker_waits_ && ready_.size() <= depth_ / 2;
    if (wake) worker_waits_ = false;
    lock.unlock();
    if (wake) wake_worker_.notify_one();
    return Status::kReady;
  }

  void run() {
    try {
      stream_->skip(position_);
      Chunk chunk;
      while (assemble(chunk) && push(std::move(chunk))) chunk.clear();
    } catch (...) {
      error_ = std::current_exception();
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    finished_ = true;
    wake_consumer_.notify_one();
  }

  // The next elements of the stream; false at its end.
  bool assemble(Chunk& chunk) {
    const bool own = options_.split == FeedSplit::kOwnElements;
    const std::int64_t per_element = own ? options_.replicas : 1;
    indices_.clear();
    const std::int64_t got = stream_->read(std::int64_t(chunk_size_) * per_element, indices_);
    if (got == 0) return false;
    for (std::int64_t i = 1; !plan_.batched() && i <= got; ++i) indices_.ends.push_back(i);
    chunk.resize(std::size_t(divide_up(got, per_element)));
    std::vector<std::int64_t> ends;
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      const auto first = std::int64_t(i) * per_element;
      chunk[i].consumed = std::min(per_element, got - first);
      set_bounds(chunk[i], first, ends.empty() ? 0 : ends.back());
      ends.push_back(indices_.ends[std::size_t(first + chunk[i].consumed - 1)]);
    }
    if (options_.last > 0) keep_own_rows(chunk, ends);
    std::size_t bytes = 0;
    for (const FeedSource& source : sources_) {
      auto arrays = gather_groups(source, indices_, plan_.columns(), ends, !plan_.batched());
      for (std::size_t i = 0; i < chunk.size(); ++i)
        chunk[i].arrays.push_back(std::move(arrays[i]));
      bytes += chunk[0].arrays.back().bytes();
    }
    set_sizes(std::max<std::size_t>(1, bytes));
    return true;
  }

  // Sets the bounds of each replica's rows in the batch that begins with the stream's element
  // `first`.
  void set_bounds(FeedElement& element, std::int64_t first, std::int64_t begin) const {
    if (options_.split == FeedSplit::kNone) return;
    const std::int64_t* ends = indices_.ends.data() + first;
    const std::int64_t rows = ends[element.consumed - 1] - begin;
    if (options_.split != FeedSplit::kOwnElements) {
      element.bounds = share_bounds(rows, options_.replicas);
      return;
    }
    element.bounds.push_back(0);
    for (std::int64_t i = 0; i < element.consumed; ++i) element.bounds.push_back(ends[i] - begin);
    element.bounds.resize(std::size_t(options_.replicas) + 1, rows);
  }

  // Keeps only the rows of whole elements that belong to this process's replicas.
  void keep_own_rows(const Chunk& chunk, std::vector<std::int64_t>& ends) {
    std::vector<std::int64_t>& numbers = indices_.numbers;
    const std::int64_t columns = plan_.columns();
    std::int64_t begin = 0, kept = 0;
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      const std::int64_t first = begin + chunk[i].bounds[std::size_t(options_.first)];
      const std::int64_t last = begin + chunk[i].bounds[std::size_t(options_.last)];
      std::copy(numbers.begin() + first * columns, numbers.begin() + last * columns,
                numbers.begin() + kept * columns);
      kept += last - first;
      begin = std::exchange(ends[i], kept);
    }
  }

  // Small elements change threads in chunks: waking a thread costs as much as gathering dozens of
  // them. The first ones come quickly, for chunks grow from one element on.
  void set_sizes(std::size_t element_bytes) {
    constexpr std::size_t kChunkBytes = 1 << 16, kBytesAhead = 1 << 20;
    const std::size_t largest = std::clamp<std::size_t>(kChunkBytes / element_bytes, 1, 256);
    const auto ahead = options_.depth > 0
                           ? std::max(std::size_t(options_.depth), 2 * largest)
                           : std::clamp<std::size_t>(kBytesAhead / element_bytes, 2, 1024);
    chunk_size_ = std::min({2 * chunk_size_, largest, std::max<std::size_t>(1, ahead / 2)});
    chunks_ahead_ = std::max<std::size_t>(2, ahead / chunk_size_);
  }

  // Hands it over and waits for room; false if the feed is no longer wanted.
  bool push(Chunk chunk) {
    std::unique_lock<std::mutex> lock(mutex_);
    depth_ = chunks_ahead_;
    ready_.push_back(std::move(chunk));
    if (consumer_waits_) wake_consumer_.notify_one();
    if (ready_.size() >= depth_) {
      worker_waits_ = true;
      wake_worker_.wait(lock, [this] { return !worker_waits_ || stopping_; });
    }
    return !stopping_;
  }

  const IndexPlan& plan_;
  const std::vector<FeedSource>& sources_;
  const FeedOptions options_;
  std::unique_ptr<IndexStream> stream_;
  const std::int64_t position_;
  RowIndices indices_;
  std::size_t chunk_size_ = 1, chunks_ahead_ = 2;

  std::mutex consumer_mutex_;  // guards the chunk that is being used up
  Chunk chunk_;
  std::size_t next_in_chunk_ = 0;

  std::mutex mutex_;  // guards the rest
  std::condition_variable wake_worker_, wake_consumer_;
  std::deque<Chunk> ready_;
  std::size_t depth_ = 2;
  bool worker_waits_ = false, consumer_waits_ = false, stopping_ = false, finished_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

Feed::Feed(IndexPlanPtr plan, std::vector<FeedSource> sources, FeedOptions options,
           std::int64_t epoch, std::int64_t position)
    : plan_(std::move(plan)),
      sources_(std::move(sources)),
      options_(options),
      epoch_(epoch),
      position_(position) {
  SG_CHECK_VALUE(options.replicas >= 1, "Dataset", "at least one replica is needed: got ",
                 options.replicas, ".");
  SG_CHECK_VALUE(
      options.last == 0 || (options.split != FeedSplit::kNone && options.first >= 0 &&
                            options.first < options.last && options.last <= options.replicas),
      "Dataset", "this process's replicas are some of those that a batch is split for: got ",
      options.first, " to ", options.last, " of ", options.replicas, ".");
  SG_CHECK_VALUE(options.split == FeedSplit::kNone || plan_->batched(),
                 "experimental_distribute_dataset",
                 "the dataset's elements are single examples, which cannot be split; call "
                 ".batch(global_batch_size) first.");
}

Feed::~Feed() {
  // The parent's thread does not exist here, and its mutex may be locked for ever.
  if (worker_ && process_ != process_generation()) static_cast<void>(worker_.release());
}

void Feed::start_worker() {
  static_cast<void>(worker_.release());  // none, or the parent's
  process_ = process_generation();
  worker_ = std::make_unique<Worker>(*this);
}

Feed::Status Feed::next(FeedElement& element, std::chrono::milliseconds timeout) {
  if (!worker_ || process_ != process_generation()) start_worker();
  const Status status = worker_->next(element, timeout);
  if (status == Status::kReady) position_ += element.consumed;
  return status;
}

void Feed::stop_all() {
  const std::lock_guard<std::mutex> lock(Worker::registry().mutex);
  for (Worker* worker : Worker::registry().workers) worker->stop();
}

}  // namespace samegrad
