#include "runtime/shared_parameters.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/rounding.h"
#include "runtime/unique_ownership_fence.h"

namespace samegrad {
namespace {

std::atomic<bool> any{false};

struct stat facts_of(int file) {
  struct stat facts {};
  if (::fstat(file, &facts) != 0) facts.st_ino = 0;
  return facts;
}

[[noreturn]] void no_memory(std::int64_t bytes) {
  fail(ErrorKind::kMemory, "variable", "the system maps no memory for ", bytes,
       " bytes that all processes share; use fewer or smaller variables.");
}

std::byte* mapped_or_fail(void* memory, std::int64_t bytes) {
  if (memory == MAP_FAILED) no_memory(bytes);
  return static_cast<std::byte*>(memory);
}

std::size_t whole_pages(std::size_t bytes) {
  constexpr auto kGrain = std::size_t(SharedParameters::kGrain);
  return std::max(round_up(bytes, kGrain), kGrain);
}

// Allocates memory for pages of a file; false if there is not enough.
bool take_pages(int file, std::int64_t begin, std::int64_t bytes) {
  for (;;) {
    if (::fallocate(file, 0, begin, bytes) == 0) return true;
    if (errno != EINTR) return errno == EOPNOTSUPP || errno == ENOSYS;  // it cannot be asked
  }
}

// The buffers that this process has mapped. A forked child copies those that hold an array, so that
// its values do not change. The parent waits for these copies, as nobody writes before the next
// step.
class MappedHere {
 public:
  static MappedHere& instance() {
    static auto* const all = new MappedHere;  // threads may outlive static destruction
    return *all;
  }

  void add(const std::shared_ptr<Buffer>& buffer) {
    const std::lock_guard lock(mutex_);
    if (buffers_.size() == buffers_.capacity()) {
      std::erase_if(buffers_, [](const auto& known) { return known.expired(); });
      buffers_.reserve(2 * buffers_.size() + 16);
    }
    buffers_.push_back(buffer);
  }

 private:
  MappedHere() {
    (void)::pthread_atfork([] { instance().before_fork(); }, [] { instance().in_parent(); },
                           [] { instance().in_child(); });
  }

  // By others than the variable that is there.
  static bool is_held(const std::shared_ptr<Buffer>& buffer) { return buffer.use_count() > 2; }

  void before_fork() {
    mutex_.lock();
    const bool any_held = std::ranges::any_of(
        buffers_, [](const std::weak_ptr<Buffer>& buffer) { return is_held(buffer.lock()); });
    if (!any_held || ::pipe2(pipe_.data(), O_CLOEXEC) != 0) pipe_ = {-1, -1};
  }

  void in_parent() {
    if (pipe_[0] >= 0) {
      ::close(pipe_[1]);
      char end;
      while (::read(pipe_[0], &end, 1) < 0 && errno == EINTR) continue;
      ::close(pipe_[0]);
    }
    mutex_.unlock();
  }

  void in_child() {
    if (pipe_[0] >= 0) {
      for (const std::weak_ptr<Buffer>& known : buffers_) keep(known.lock());
      ::close(pipe_[0]);
      ::close(pipe_[1]);
    }
    mutex_.unlock();
  }

  static void keep(const std::shared_ptr<Buffer>& buffer) {
    try {
      if (is_held(buffer)) SharedParameters::keep_for_itself(*buffer);
    } catch (const Error&) {  // no memory: it changes as the parent's variable does
    }
  }

  std::mutex mutex_;
  std::vector<std::weak_ptr<Buffer>> buffers_;
  std::array<int, 2> pipe_ = {-1, -1};
};

}  // namespace

std::shared_ptr<SharedParameters> SharedParameters::create(std::int64_t bytes) {
  const int file = ::memfd_create("samegrad", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  std::shared_ptr<SharedParameters> made(new SharedParameters(file, bytes));
  return ::ftruncate(file, bytes) == 0 ? made : nullptr;
}

std::string SharedParameters::name() const {
  const struct stat facts = facts_of(file_);
  return std::to_string(facts.st_dev) + ":" + std::to_string(facts.st_ino) + ":/proc/" +
         std::to_string(::getpid()) + "/fd/" + std::to_string(file_);
}

std::shared_ptr<SharedParameters> SharedParameters::open(const std::string& name,
                                                         std::int64_t bytes) {
  const std::size_t path = name.find('/');
  if (path == std::string::npos) return nullptr;
  const int file = ::open(name.c_str() + path, O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  std::shared_ptr<SharedParameters> found(new SharedParameters(file, bytes));
  // Processes of containers may number each other otherwise.
  const struct stat facts = facts_of(file);
  const std::string here = std::to_string(facts.st_dev) + ":" + std::to_string(facts.st_ino) + ":";
  return name.starts_with(here) && facts.st_size == bytes ? found : nullptr;
}

SharedParameters::~SharedParameters() {
  ::close(file_);
}

std::int64_t SharedParameters::next_offset(std::int64_t end, std::int64_t bytes) {
  const std::int64_t grain = bytes < kLargePage ? kGrain : kLargePage;
  return round_up(end, grain);
}

std::shared_ptr<Buffer> SharedParameters::map(const std::shared_ptr<SharedParameters>& self,
                                              std::int64_t offset, std::size_t bytes) const {
  any = true;
  // At an address that has large pages where the file has them.
  constexpr auto kLarge = std::size_t(kLargePage);
  const std::size_t length = whole_pages(bytes);
  const std::size_t spare = length < kLarge ? 0 : kLarge;
  std::byte* const room = mapped_or_fail(::mmap(nullptr, length + spare, PROT_NONE,
                                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
                                         std::int64_t(bytes));
  const std::size_t skipped =
      spare ? (kLarge - reinterpret_cast<std::uintptr_t>(room) % kLarge) % kLarge : 0;
  if (skipped) ::munmap(room, skipped);
  if (spare > skipped) ::munmap(room + skipped + length, spare - skipped);
  std::byte* const data = room + skipped;
  if (::mmap(data, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_, offset) ==
      MAP_FAILED) {
    ::munmap(data, length);
    no_memory(std::int64_t(bytes));
  }
  auto mapped =
      std::make_shared<Buffer>(data, bytes, [self, data, length] { (void)::munmap(data, length); });
  MappedHere::instance().add(mapped);
  return mapped;
}

void SharedParameters::keep_for_itself(const Buffer& mapped) {
  const std::size_t length = whole_pages(mapped.size());
  std::byte* const copy = mapped_or_fail(
      ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
      std::int64_t(mapped.size()));
  std::memcpy(copy, mapped.data(), mapped.size());
  if (::mremap(copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, mapped.data()) == MAP_FAILED) {
    ::munmap(copy, length);
    no_memory(std::int64_t(mapped.size()));
  }
}

bool SharedParameters::reserve(std::int64_t share, std::int64_t count) const {
#ifdef MADV_COLLAPSE
  constexpr int kCollapse = MADV_COLLAPSE;
#else
  constexpr int kCollapse = 25;
#endif
  std::shared_ptr<Buffer> mapped;  // null: there are no large pages
  if (bytes_ >= kLargePage) mapped = map(nullptr, 0, std::size_t(bytes_));
  for (std::int64_t at = share * kLargePage; at < bytes_; at += count * kLargePage) {
    const std::int64_t bytes = std::min(kLargePage, bytes_ - at);
    if (mapped && bytes == kLargePage) {
      // Only what has a small page becomes a large one.
      if (!take_pages(file_, at, 1)) return false;
      if (::madvise(mapped->data() + at, std::size_t(bytes), kCollapse) != 0) mapped = nullptr;
    }
    if (!take_pages(file_, at, bytes)) return false;
  }
  return true;
}

Array SharedLocation::array(const Array& now) {
  if (const std::shared_ptr<Buffer> mapped = mapped_.lock()) {
    if (now.buffer() == mapped && mapped.use_count() == 2) {  // now's and this one
      unique_ownership_fence(mapped);
      return now;
    }
    SharedParameters::keep_for_itself(*mapped);
  }
  const std::shared_ptr<Buffer> fresh = memory_->map(memory_, offset_, now.bytes());
  mapped_ = fresh;
  return Array(now.dtype(), now.shape(), fresh);
}

bool has_shared_parameters() {
  return any;
}

}  // namespace samegrad
