#include "runtime/mpi_world.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/fork.h"
#include "base/hasher.h"
#include "runtime/fingerprints.h"
#include "runtime/interrupt.h"

namespace samegrad {
namespace {

constexpr auto kLook = std::chrono::milliseconds(20);      // of the watch, at the others
constexpr auto kAnswer = std::chrono::milliseconds(1500);  // for them to say where they are
constexpr int kYields = 200;                               // before a wait sleeps
constexpr auto kShortest = std::chrono::microseconds(20);
constexpr auto kLongest = std::chrono::microseconds(500);

}  // namespace

// Messages on their way.
class MpiWorld::MpiTransfer final : public Communicator::Transfer {
 public:
  MpiTransfer(MpiWorld& world, std::unique_ptr<Mpi::Pending> pending)
      : world_(world), pending_(std::move(pending)) {}
  ~MpiTransfer() override {
    if (!pending_) return;
    try {
      give_up();
    } catch (const std::exception&) {
      // The job is at its end.
    }
  }
  void wait() override {
    if (!pending_) return;
    world_.wait(*pending_);
    pending_ = nullptr;
  }

 private:
  // The memory that was to be filled will be gone.
  void give_up() {
    pending_->cancel();
    for (int i = 0; i < 100 && !pending_->done(); ++i) std::this_thread::sleep_for(kLongest);
  }

  MpiWorld& world_;
  std::unique_ptr<Mpi::Pending> pending_;
};

MpiWorld::MpiWorld(const MpiLibrary& library, std::unique_ptr<SharedMemory> shared,
                   std::chrono::milliseconds patience, std::function<void()> show_stack)
    : mpi_(Mpi::of(library)),
      shared_(std::move(shared)),
      rank_(library.rank),
      size_(library.size),
      process_(process_generation()),
      show_stack_(std::move(show_stack)),
      patience_(patience.count()),
      records_(std::size_t(library.size)),
      others_(std::size_t(library.size)) {
  thread_ = std::thread([this] { watch(); });
}

MpiWorld::~MpiWorld() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void MpiWorld::check_process() const {
  if (process_ == process_generation()) {
    if (caller_ == std::this_thread::get_id()) return;
    fail(ErrorKind::kRuntime, "MultiWorkerMirroredStrategy",
         "the processes go on together, in the thread that made the first such strategy: got a "
         "call in another one, whose turn may come elsewhere in other processes.");
  }
  fail(ErrorKind::kRuntime, "MultiWorkerMirroredStrategy", "rank ", rank_,
       " of the job is the process that began it: got a step in a forked child; run steps in the "
       "parent.");
}

std::unique_ptr<Communicator::Transfer> MpiWorld::start(std::span<const Message> sends,
                                                        std::span<const Message> receives) {
  check_process();
  barrier();
  if (sends.empty() && receives.empty()) return std::make_unique<MpiTransfer>(*this, nullptr);
  return std::make_unique<MpiTransfer>(*this, mpi_->start(sends, receives));
}

void MpiWorld::check_fingerprints(std::vector<Fingerprint>&& facts) {
  check_process();
  barrier();
  if (others_changed_) check_others();  // what a call has left half-done goes no further
  ++calls_;
  {
    const std::lock_guard lock(mutex_);
    where_ = facts.empty() ? "" : facts[0].value;
  }
  facts_ = std::move(facts);
  text_ = joined(facts_);
  Hasher hasher;
  hasher.bytes(text_.data(), text_.size());
  record_ = {hasher.state(), std::int64_t(text_.size())};
  agrees_ = true;
  if (shared_) {
    shared_->write_record(calls_, record_);
    shared_->publish(SharedMemory::Stage::kAgreed, calls_);
    return;
  }
  agreement_ = mpi_->start_gather(reinterpret_cast<const std::byte*>(&record_),
                                  reinterpret_cast<std::byte*>(records_.data()), sizeof(Record));
}

void MpiWorld::barrier() {
  if (!std::exchange(agrees_, false)) return;
  if (shared_) {
    wait_for(SharedMemory::Stage::kAgreed, calls_);
    for (int r = 0; r < size_; ++r) records_[std::size_t(r)] = shared_->record(r, calls_);
  } else {
    MpiTransfer(*this, std::move(agreement_)).wait();
  }
  const auto same = [&](const Record& r) {
    return r.hash == record_.hash && r.bytes == record_.bytes;
  };
  if (!std::ranges::all_of(records_, same)) disagree();
}

void MpiWorld::disagree() {
  std::int64_t longest = 0;
  for (const Record& record : records_) longest = std::max(longest, record.bytes);
  std::string own = text_, all(std::size_t(longest) * std::size_t(size_), '\0');
  own.resize(std::size_t(longest));
  MpiTransfer(*this, mpi_->start_gather(reinterpret_cast<const std::byte*>(own.data()),
                                        reinterpret_cast<std::byte*>(all.data()), longest))
      .wait();
  std::vector<std::vector<Fingerprint>> facts;
  for (std::size_t r = 0; r < records_.size(); ++r) {
    facts.push_back(separated(
        std::string_view(all).substr(r * std::size_t(longest), std::size_t(records_[r].bytes))));
  }
  const std::string found = difference(facts);
  throw FingerprintMismatch(
      ErrorKind::kValue,
      text("[MultiWorkerMirroredStrategy] all ranks must run one program on one state: in call ",
           calls_.load(), " they differ in ", found, "; ", remedy(found)));
}

std::vector<std::string> MpiWorld::gather(std::string_view own) {
  barrier();
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(size_));
  const auto size = std::int64_t(own.size());
  MpiTransfer(*this, mpi_->start_gather(reinterpret_cast<const std::byte*>(&size),
                                        reinterpret_cast<std::byte*>(sizes.data()), sizeof size))
      .wait();
  std::vector<std::string> all;
  std::vector<Message> sends, receives;
  std::string mine(own);
  for (int rank = 0; rank < size_; ++rank)
    all.emplace_back(std::size_t(sizes[std::size_t(rank)]), '\0');
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    std::string& theirs = all[std::size_t(rank)];
    if (size > 0) sends.push_back({rank, reinterpret_cast<std::byte*>(mine.data()), size});
    if (theirs.empty()) continue;
    receives.push_back(
        {rank, reinterpret_cast<std::byte*>(theirs.data()), std::int64_t(theirs.size())});
  }
  start(sends, receives)->wait();
  all[std::size_t(rank_)] = std::move(mine);
  return all;
}

std::shared_ptr<SharedParameters> MpiWorld::common(std::int64_t bytes) {
  if (!shared_ || !maps_common_) return nullptr;
  std::shared_ptr<SharedParameters> memory;
  if (rank_ == 0) memory = SharedParameters::create(bytes);
  const std::string name = gather(memory ? memory->name() : "")[0];
  if (rank_ != 0) memory = SharedParameters::open(name, bytes);
  const bool is_there = memory && memory->reserve(rank_, size_);
  const std::vector<std::string> found = gather(is_there ? "yes" : "");
  maps_common_ = std::ranges::none_of(found, &std::string::empty);
  return maps_common_ ? memory : nullptr;
}

namespace {

// Whoever waits is asked about it by the watch.
class Waits {
 public:
  explicit Waits(std::atomic<std::chrono::steady_clock::rep>& since) : since_(since) {
    since_ = std::chrono::steady_clock::now().time_since_epoch().count();
  }
  ~Waits() { since_ = 0; }
  Waits(const Waits&) = delete;
  Waits& operator=(const Waits&) = delete;

 private:
  std::atomic<std::chrono::steady_clock::rep>& since_;
};

}  // namespace

// Called from time to time by a waiting thread.
void MpiWorld::look_around() {
  if (others_changed_) check_others();
  poll_interrupt();
}

void MpiWorld::wait(Mpi::Pending& pending) {
  if (pending.done()) return;
  const Waits waits(waits_since_);
  auto pause = kShortest;
  for (int round = 0; !pending.done(); ++round) {
    if (round < kYields) {
      std::this_thread::yield();
      continue;
    }
    look_around();
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongest);
  }
}

void MpiWorld::wait_for(SharedMemory::Stage stage, std::int64_t count) {
  if (shared_->spin(stage, count)) return;
  const Waits waits(waits_since_);
  while (!shared_->futex_wait(stage, count)) look_around();
}

// RuntimeError where a rank that this one may wait for fails or does not arrive.
void MpiWorld::check_others() const {
  const std::lock_guard lock(mutex_);
  for (std::size_t r = 0; r < others_.size(); ++r) {
    const Other& other = others_[r];
    if (!other.failure.empty()) {
      fail(ErrorKind::kRuntime, "MultiWorkerMirroredStrategy", "rank ", r, " failed in call ",
           other.calls, ": ", other.failure);
    }
    if (other.ended && other.calls < calls_) {
      fail(ErrorKind::kRuntime, "MultiWorkerMirroredStrategy", "rank ", r,
           " has ended its program after call ", other.calls, ": rank ", rank_, " is in call ",
           calls_.load(), ", ", where_,
           "; all ranks must make the same number of steps: give them the same data.");
    }
  }
}

std::string MpiWorld::failure_elsewhere() const {
  const std::lock_guard lock(mutex_);
  for (const Other& other : others_) {
    if (!other.failure.empty()) return other.failure;
  }
  return {};
}

MpiWorld::Notice MpiWorld::notice(Notice::Kind kind, std::string_view text) const {
  Notice made{kind, waits_since_ != 0, calls_, {}};
  text.copy(made.text.data(), made.text.size() - 1);
  return made;
}

// With mutex_ locked.
void MpiWorld::send(int rank, const Notice& notice) {
  std::erase_if(sent_, [](const Sent& sent) { return sent.pending->done(); });
  auto kept = std::make_unique<Notice>(notice);
  auto pending =
      mpi_->start_notice(rank, reinterpret_cast<const std::byte*>(kept.get()), sizeof(Notice));
  sent_.push_back({std::move(kept), std::move(pending)});
}

void MpiWorld::send_to_all(const Notice& notice) {
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_) send(rank, notice);
  }
}

void MpiWorld::fail_with(std::string_view why) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (failed_) return;
    failed_ = true;
    send_to_all(notice(Notice::Kind::kFailed, why));
    others_[std::size_t(rank_)].failure = std::string(why);
    others_[std::size_t(rank_)].calls = calls_;
    others_changed_ = true;
  } catch (const std::exception&) {
    // The others wait until they have no patience left.
  }
}

void MpiWorld::leave() noexcept {
  try {
    if (process_ != process_generation()) return;
    {
      const std::lock_guard lock(mutex_);
      send_to_all(notice(Notice::Kind::kEnded, {}));
      others_[std::size_t(rank_)].ended = true;
    }
    for (bool all = false; !all; std::this_thread::sleep_for(kLongest)) {
      const std::lock_guard lock(mutex_);
      if (others_changed_.exchange(false)) tell_of_later_failures();
      all = std::ranges::all_of(others_, &Other::ended) &&
            std::ranges::all_of(sent_, [](Sent& sent) { return sent.pending->done(); });
    }
    {
      const std::lock_guard lock(mutex_);
      stops_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "samegrad: rank %d could not leave the job: %s\n", rank_, error.what());
    abort(1);
  }
}

// With mutex_ locked: the others may have gone on to calls that this rank does not make.
void MpiWorld::tell_of_later_failures() const {
  for (std::size_t r = 0; r < others_.size(); ++r) {
    const Other& other = others_[r];
    if (int(r) == rank_ || other.failure.empty() || other.calls <= calls_) continue;
    std::fprintf(stderr,
                 "samegrad: rank %d has ended its program after call %lld, and rank %d failed in "
                 "call %lld: all ranks must make the same number of steps: give them the same "
                 "data.\n",
                 rank_, static_cast<long long>(calls_.load()), int(r),
                 static_cast<long long>(other.calls));
    return;
  }
}

void MpiWorld::abort(int code) noexcept {
  // MPI may wait for ranks that do not answer.
  std::thread([code] {
    std::this_thread::sleep_for(std::chrono::seconds(5));
    ::_exit(code);
  }).detach();
  std::fflush(nullptr);
  mpi_->abort(code);
  ::_exit(code);
}

void MpiWorld::watch() {
  std::unique_lock lock(mutex_);
  try {
    while (!wake_.wait_for(lock, kLook, [this] { return stops_; })) {
      read_notices();
      check_patience();
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "samegrad: rank %d lost the other ranks: %s\n", rank_, error.what());
    abort(1);
  }
}

void MpiWorld::read_notices() {
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    while (mpi_->has_notice(rank)) {
      Notice notice;
      mpi_->read_notice(rank, reinterpret_cast<std::byte*>(&notice), sizeof notice);
      take(rank, notice);
    }
  }
}

void MpiWorld::take(int rank, const Notice& given) {
  Other& other = others_[std::size_t(rank)];
  other.calls = given.calls;
  switch (given.kind) {
    case Notice::Kind::kFailed:
      other.failure = given.text.data();
      others_changed_ = true;
      break;
    case Notice::Kind::kEnded:
      other.ended = true;
      others_changed_ = true;
      break;
    case Notice::Kind::kWhere:
      send(rank, notice(Notice::Kind::kHere, where_));
      if (waits_since_ == 0) {
        std::fprintf(stderr, "samegrad: rank %d is waited for, after call %lld (%s):\n", rank_,
                     static_cast<long long>(calls_.load()), where_.c_str());
        show_stack_();
      }
      break;
    case Notice::Kind::kHere:
      other.answered = true;
      other.waits = given.waits != 0;
      break;
  }
}

// Describes the ranks that this rank waits for, as far as they have said where they are.
std::string MpiWorld::missing() const {
  std::string out;
  std::size_t shown = 0;
  for (std::size_t r = 0; r < others_.size() && shown < kMaxShown; ++r) {
    const Other& other = others_[r];
    if (int(r) == rank_ || (other.answered && other.waits && other.calls >= calls_)) continue;
    ++shown;
    out += out.empty() ? "" : "; ";
    if (!other.answered) {
      out += text("rank ", r, " does not answer");
    } else {
      out += text("rank ", r, other.waits ? " waits in call " : " has not come on after call ",
                  other.calls);
    }
  }
  return out.empty() ? "all ranks wait" : out;
}

void MpiWorld::check_patience() {
  const Clock::rep since = waits_since_;
  if (since == 0) {
    asked_ = {};
    return;
  }
  const Clock::time_point now = Clock::now(), begin{Clock::duration(since)};
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now - begin);
  if (waited.count() < patience_) {
    asked_ = {};
    return;
  }
  if (asked_ == Clock::time_point{}) {
    asked_ = now;
    for (Other& other : others_) other.answered = false;
    send_to_all(notice(Notice::Kind::kWhere, {}));
    return;
  }
  if (now - asked_ < kAnswer) return;
  std::fprintf(stderr,
               "samegrad: rank %d has waited for %.1f s in call %lld (%s), and ends the job: %s\n",
               rank_, double(waited.count()) / 1000, static_cast<long long>(calls_.load()),
               where_.c_str(), missing().c_str());
  abort(1);
}

}  // namespace samegrad
