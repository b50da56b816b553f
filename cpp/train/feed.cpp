#include "train/feed.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include "base/error.h"
#include "tensor/tree.h"
#include "train/gather.h"

namespace samegrad {
namespace {

void add_balanced(std::int64_t rows, int replicas, std::vector<std::int64_t>& bounds) {
  if (replicas > 1 && rows > kLeafExamples) {
    const int left = (replicas + 1) / 2;
    add_balanced(tree_split(rows), left, bounds);
    add_balanced(rows - tree_split(rows), replicas - left, bounds);
    return;
  }
  bounds.insert(bounds.end(), std::size_t(replicas), bounds.back() + rows);
}

// Counts forks: threads and locked mutexes of the parent are not the child's.
std::atomic<std::uint64_t> forks{0};

std::uint64_t process_generation() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  return forks.load(std::memory_order_relaxed);
}

}  // namespace

std::vector<std::int64_t> share_bounds(std::int64_t rows, int replicas, bool balanced) {
  check_value(replicas >= 1, "share_bounds", "at least one replica is needed: got ", replicas, ".");
  std::vector<std::int64_t> bounds{0};
  if (balanced) {
    add_balanced(rows, replicas, bounds);
    return bounds;
  }
  const std::int64_t chunk = (rows + replicas - 1) / replicas;
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
    if (thread_.joinable()) thread_.join();
  }

  Status next(FeedElement& element, std::chrono::milliseconds patience) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto settled = [this] { return !ready_.empty() || finished_ || stopping_; };
    if (!settled()) {
      if (patience.count() <= 0) return Status::kPending;
      consumer_waits_ = true;
      const bool in_time = wake_consumer_.wait_for(lock, patience, settled);
      consumer_waits_ = false;
      if (!in_time) return Status::kPending;
    }
    if (ready_.empty()) {
      if (error_) std::rethrow_exception(error_);
      if (!finished_) fail(ErrorKind::kRuntime, "Dataset", "the process is ending.");
      return Status::kEnd;
    }
    element = std::move(ready_.front());
    ready_.pop_front();
    // Woken when half of the elements are gone: seldom, if they are small.
    const bool wake = worker_waits_ && ready_.size() <= depth_ / 2;
    if (wake) worker_waits_ = false;
    lock.unlock();
    if (wake) wake_worker_.notify_one();
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
  void run() {
    try {
      stream_->skip(position_);
      FeedElement element;
      while (assemble(element) && push(std::move(element))) element = {};
    } catch (...) {
      error_ = std::current_exception();
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    finished_ = true;
    wake_consumer_.notify_one();
  }

  bool assemble(FeedElement& element) {
    indices_.clear();
    const bool own = options_.split == FeedSplit::kOwnElements;
    element.consumed = stream_->read(own ? options_.replicas : 1, indices_);
    if (element.consumed == 0) return false;
    const auto rows = std::int64_t(indices_.numbers.size()) / plan_.columns();
    std::size_t bytes = 0;
    for (const FeedSource& source : sources_) {
      element.arrays.push_back(
          gather_rows(source, indices_.numbers.data(), rows, plan_.columns(), !plan_.batched()));
      bytes += element.arrays.back().bytes();
    }
    if (own) {
      element.bounds = {0};
      element.bounds.insert(element.bounds.end(), indices_.ends.begin(), indices_.ends.end());
      element.bounds.resize(std::size_t(options_.replicas) + 1, rows);
    } else if (options_.split != FeedSplit::kNone) {
      element.bounds =
          share_bounds(rows, options_.replicas, options_.split == FeedSplit::kBalanced);
    }
    bytes_ = std::max<std::size_t>(1, bytes);
    return true;
  }

  // Hands it over and waits for room; false if the feed is no longer wanted.
  bool push(FeedElement element) {
    constexpr std::size_t kBytesAhead = 1 << 20;
    std::unique_lock<std::mutex> lock(mutex_);
    depth_ = options_.depth > 0 ? std::size_t(options_.depth)
                                : std::clamp<std::size_t>(kBytesAhead / bytes_, 2, 64);
    ready_.push_back(std::move(element));
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
  std::size_t bytes_ = 1;

  std::mutex mutex_;
  std::condition_variable wake_worker_, wake_consumer_;
  std::deque<FeedElement> ready_;
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
  check_value(options.replicas >= 1, "Dataset", "at least one replica is needed: got ",
              options.replicas, ".");
  check_value(options.split == FeedSplit::kNone || plan_->batched(),
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

Feed::Status Feed::next(FeedElement& element, std::chrono::milliseconds patience) {
  if (!worker_ || process_ != process_generation()) start_worker();
  const Status status = worker_->next(element, patience);
  if (status == Status::kReady) position_ += element.consumed;
  return status;
}

void Feed::stop_all() {
  const std::lock_guard<std::mutex> lock(Worker::registry().mutex);
  for (Worker* worker : Worker::registry().workers) worker->stop();
}

}  // namespace samegrad
