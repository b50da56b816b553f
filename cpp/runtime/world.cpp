#include "runtime/world.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "base/error.h"

namespace samegrad {
namespace {

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(MpiWorld& world, std::vector<int> firsts)
      : Communicator(world.rank(), std::move(firsts)), world_(world) {}

  std::unique_ptr<Transfer> start(std::span<const Message> sends,
                                  std::span<const Message> receives) override {
    return world_.start(sends, receives);
  }
  SharedMemory* shared() override { return world_.shared(); }
  void wait_for(SharedMemory::Stage stage, std::int64_t count) override {
    world_.wait_for(stage, count);
  }
  std::shared_ptr<SharedParameters> common(std::int64_t bytes) override {
    return world_.common(bytes);
  }
  void check_fingerprints(std::vector<Fingerprint>&& facts) override {
    world_.check_fingerprints(std::move(facts));
  }
  void barrier() override { world_.barrier(); }
  ComparedFacts& compared() override { return world_.compared(); }
  void abort(std::string_view why) noexcept override { world_.fail_with(why); }

 private:
  MpiWorld& world_;
};

// Never destroyed: the process leaves its job before it ends.
std::atomic<MpiWorld*> joined{nullptr};

}  // namespace

MpiWorld* world() {
  return joined;
}

MpiWorld& join_world(const MpiLibrary& library, std::unique_ptr<SharedMemory> shared,
                     std::chrono::milliseconds patience, std::function<void()> show_stack) {
  if (joined) fail(ErrorKind::kRuntime, "join_world", "the process has joined its job already.");
  auto made =
      std::make_unique<MpiWorld>(library, std::move(shared), patience, std::move(show_stack));
  joined = made.release();
  return *joined;
}

Communicator& communicator_of(const std::vector<int>& firsts) {
  static std::mutex mutex;
  static auto* made = new std::map<std::vector<int>, std::unique_ptr<MpiCommunicator>>;
  MpiWorld* const all = world();
  SG_CHECK_VALUE(all && std::ssize(firsts) == all->size() + 1, "MultiWorkerMirroredStrategy",
                 "a program for ", std::ssize(firsts) - 1,
                 " processes runs in a job of as many: got ", all ? all->size() : 1,
                 "; trace it again.");
  const std::lock_guard lock(mutex);
  std::unique_ptr<MpiCommunicator>& found = (*made)[firsts];
  if (!found) found = std::make_unique<MpiCommunicator>(*all, firsts);
  return *found;
}

}  // namespace samegrad
