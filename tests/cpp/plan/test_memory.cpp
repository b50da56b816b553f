// Runs lease their memory: nothing stays with a plan, and a forked child finds all locks free.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "check.h"
#include "programs.h"
#include "tensor/buffer_pool.h"

using namespace samegrad;

TEST("a plan that is not running holds no memory") {
  const std::int64_t before = Buffer::live_bytes() - BufferPool::instance().idle_bytes();
  std::vector<std::unique_ptr<Executable>> kept;
  for (int i = 0; i < 20; ++i) {
    Fake f(2);
    f.write(0, f.apply(reverse_op(), {f.sum({f.old(0), f.old(1)})}));
    kept.push_back(std::make_unique<Executable>(f.plan()));
    f.run(*kept.back());
  }
  CHECK_EQ(Buffer::live_bytes() - BufferPool::instance().idle_bytes(), before);
}

TEST("what is idle stays in proportion to what was in use at once") {
  BufferPool& pool = BufferPool::instance();
  constexpr std::size_t kMiB = std::size_t(1) << 20;
  for (int i = 0; i < 40; ++i) PooledBuffer(std::size_t(20 + i) * kMiB);
  CHECK(pool.idle_bytes() <= std::int64_t(120 * kMiB), pool.idle_bytes());
  // A peak is forgotten.
  { PooledBuffer large(500 * kMiB); }
  for (int i = 0; i < 600; ++i) PooledBuffer(1000);
  CHECK(pool.idle_bytes() <= std::int64_t(64 * kMiB), pool.idle_bytes());
}

TEST("a buffer is used again while it is warm, and one that is far too large is not") {
  const std::byte* first = nullptr;
  {
    const PooledBuffer leased(3 << 20);
    first = leased.data();
  }
  { CHECK(PooledBuffer(3 << 20).data() == first); }
  { CHECK(PooledBuffer(1000).data() != first); }
}

TEST("a child that is forked beside running steps runs steps itself") {
  std::atomic<bool> stop{false};
  Fake busy(1);
  busy.output(busy.sum({busy.old(0), busy.old(0)}));
  Executable executable(busy.plan());
  std::thread other([&] {
    while (!stop) busy.run(executable);
  });
  int failed = 0;
  for (int i = 0; i < 40; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // a lock that nobody will open
      const float result = busy.run(executable)[0][0].data<float>()[4];
      _exit(result == 8.f ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    failed += status != 0;
  }
  stop = true;
  other.join();
  CHECK_EQ(failed, 0);
}
