#include "runtime/threads.h"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/version.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>

#include "base/error.h"
#include "base/float_environment.h"
#include "base/fork.h"
#include "base/machine.h"

namespace samegrad {
namespace {

// core_share: of a process that shares its cores with others; 0: it does not.
int default_threads(int core_share) {
  if (const char* text = std::getenv("SAMEGRAD_NUM_THREADS")) {
    char* end = nullptr;
    const long threads = std::strtol(text, &end, 10);
    SG_CHECK_VALUE(end != text && *end == '\0' && threads >= 1 && threads <= 4096,
                   "SAMEGRAD_NUM_THREADS", "must be an integer from 1 to 4096: got '", text, "'.");
    return int(threads);
  }
  const auto described = int(machine().threads);
  if (described > 0) return described;
  return core_share > 0 ? core_share : oneapi::tbb::this_task_arena::max_concurrency();
}

std::atomic<std::int64_t> loops_of_process{0}, pieces_of_process{0};

class SerialLoops final : public ParallelFor {
 public:
  int threads() const override { return 1; }
  void run(std::int64_t count, const std::function<void(std::int64_t)>& body) const override {
    for (std::int64_t i = 0; i < count; ++i) body(i);
  }
};

// The error of the first failing piece, in the order of a loop in one thread. A message thus does
// not depend on the number of threads.
class FirstError {
 public:
  bool comes_before(std::int64_t piece) const {
    return piece_.load(std::memory_order_relaxed) < piece;
  }
  void note(std::int64_t piece) {
    const std::lock_guard lock(mutex_);
    if (comes_before(piece)) return;
    piece_ = piece;
    error_ = std::current_exception();
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::atomic<std::int64_t> piece_{INT64_MAX};
  std::mutex mutex_;
  std::exception_ptr error_;
};

// Declares TBB's guarantees to ThreadSanitizer, which does not instrument the library: the caller's
// past happens before the pieces, and all pieces happen before what follows.
class LoopOrder {
 public:
#if defined(__SANITIZE_THREAD__)
  LoopOrder() {
    begun_.store(1, std::memory_order_release);
  }
  void enter() {
    (void)begun_.load(std::memory_order_acquire);
  }
  void leave() {
    left_.fetch_add(1, std::memory_order_acq_rel);
  }
  void join() {
    (void)left_.load(std::memory_order_acquire);
  }

 private:
  std::atomic<int> begun_{0}, left_{0};
#else
  void enter() {}
  void leave() {}
  void join() {}
#endif
};

class ArenaLoops final : public ParallelFor {
 public:
  explicit ArenaLoops(int threads) : threads_(threads), arena_(threads) {}
  int threads() const override { return threads_; }
  void run(std::int64_t count, const std::function<void(std::int64_t)>& body) const override {
    if (count <= 1 || threads_ == 1) return serial_loops().run(count, body);
    loops_of_process.fetch_add(1, std::memory_order_relaxed);
    pieces_of_process.fetch_add(count, std::memory_order_relaxed);
    FirstError first;
    LoopOrder order;
    const auto run_piece = [&](std::int64_t i) {
      order.enter();
      if (first.comes_before(i)) return;
      try {
        body(i);
      } catch (...) {
        first.note(i);
      }
      order.leave();
    };
    arena_.execute([&] {
      // Isolated: a thread that waits here must not take up a piece of an outer loop.
      oneapi::tbb::this_task_arena::isolate([&] {
        oneapi::tbb::parallel_for(
            oneapi::tbb::blocked_range<std::int64_t>(0, count, 1),
            [&](const oneapi::tbb::blocked_range<std::int64_t>& range) {
              const FloatEnvironment environment;
              for (std::int64_t i = range.begin(); i < range.end(); ++i) run_piece(i);
            },
            oneapi::tbb::simple_partitioner());
      });
    });
    order.join();
    first.rethrow();
  }

 private:
  int threads_;
  mutable oneapi::tbb::task_arena arena_;
};

struct ThreadState {
  // The generation of the process that may have started threads.
  const std::uint64_t generation = process_generation();
  std::mutex mutex;
  int requested = 0, core_share = 0;
  // Arenas are kept: a step on another thread may still run on the old one.
  std::vector<std::unique_ptr<ArenaLoops>> arenas;
  std::atomic<const ArenaLoops*> current{nullptr};
};

ThreadState& thread_state() {
  // Never destroyed: threads may outlive static destruction.
  static ThreadState* instance = new ThreadState;
  return *instance;
}

// In the child of a process that had threads, loops run in one.
bool forked() {
  return thread_state().generation != process_generation();
}

const ArenaLoops& arena() {
  ThreadState& s = thread_state();
  if (const ArenaLoops* current = s.current.load()) return *current;
  const std::lock_guard lock(s.mutex);
  const int threads = s.requested > 0 ? s.requested : default_threads(s.core_share);
  for (const auto& known : s.arenas) {
    if (known->threads() == threads) {
      s.current = known.get();
      return *known;
    }
  }
  s.arenas.push_back(std::make_unique<ArenaLoops>(threads));
  s.current = s.arenas.back().get();
  return *s.arenas.back();
}

}  // namespace

std::string tbb_version() {
  return TBB_runtime_version();
}

int thread_count() {
  return forked() ? 1 : arena().threads();
}

void set_thread_count(int threads) {
  SG_CHECK_VALUE(threads >= 0 && threads <= 4096, "threads",
                 "must lie in [0, 4096], where 0 stands for all cores: got ", threads, ".");
  // There the mutex may belong to a thread that stayed in the parent.
  if (forked()) return;
  ThreadState& s = thread_state();
  const std::lock_guard lock(s.mutex);
  s.requested = threads;
  s.current = nullptr;
}

void set_core_share(int cores) {
  SG_CHECK_VALUE(cores >= 1, "cores", "a process has at least one: got ", cores, ".");
  if (forked()) return;
  ThreadState& s = thread_state();
  const std::lock_guard lock(s.mutex);
  s.core_share = cores;
  s.current = nullptr;
}

SharedWork shared_work() {
  return {loops_of_process.load(std::memory_order_relaxed),
          pieces_of_process.load(std::memory_order_relaxed)};
}

const ParallelFor& serial_loops() {
  static const SerialLoops loops;
  return loops;
}

const ParallelFor& parallel_loops() {
  if (forked()) return serial_loops();
  const ArenaLoops& loops = arena();
  return loops.threads() == 1 ? serial_loops() : static_cast<const ParallelFor&>(loops);
}

}  // namespace samegrad
