#include "runtime/shared_parameters.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "check.h"

using namespace samegrad;

namespace {

std::int64_t memory_left = INT64_MAX;

constexpr std::int64_t kBytes = 3 * SharedParameters::kGrain;

std::string text_in(const Buffer& buffer) {
  return reinterpret_cast<const char*>(buffer.data());
}

void write(const Buffer& buffer, const char* text) {
  std::strcpy(reinterpret_cast<char*>(buffer.data()), text);
}

}  // namespace

// In the place of the system's, of which a test cannot take all memory.
extern "C" int fallocate(int file, int mode, off_t begin, off_t bytes) {
  if (bytes > memory_left) {
    errno = ENOSPC;
    return -1;
  }
  memory_left -= bytes;
  return int(::syscall(SYS_fallocate, file, mode, begin, bytes));
}

TEST("what one maps others see, by its name") {
  const auto memory = SharedParameters::create(kBytes);
  const auto other = SharedParameters::open(memory->name(), kBytes);
  CHECK(other != nullptr);
  const auto one = memory->map(memory, SharedParameters::kGrain, 100);
  const auto two = other->map(other, SharedParameters::kGrain, 100);
  CHECK(one->data() != two->data());
  CHECK(!one->owns_memory());
  write(*one, "a number");
  CHECK_EQ(text_in(*two), std::string("a number"));
}

TEST("a name that means something else here opens nothing") {
  const auto memory = SharedParameters::create(kBytes), another = SharedParameters::create(kBytes);
  CHECK(SharedParameters::open("", kBytes) == nullptr);
  CHECK(SharedParameters::open("no path", kBytes) == nullptr);
  CHECK(SharedParameters::open("0:0:/proc/self/fd/999999", kBytes) == nullptr);
  CHECK(SharedParameters::open(memory->name(), kBytes + 1) == nullptr);
  // The file of another process with the same numbers.
  const std::string name = memory->name(), path = another->name();
  const std::string mixed = name.substr(0, name.find('/')) + path.substr(path.find('/'));
  CHECK(SharedParameters::open(mixed, kBytes) == nullptr);
}

TEST("memory that is kept for itself stays where it is, as it was") {
  const auto memory = SharedParameters::create(kBytes);
  const auto kept = memory->map(memory, 0, kBytes), goes_on = memory->map(memory, 0, kBytes);
  write(*kept, "before");
  const std::byte* const where = kept->data();
  SharedParameters::keep_for_itself(*kept);
  write(*goes_on, "after");
  CHECK(kept->data() == where);
  CHECK_EQ(text_in(*kept), std::string("before"));
  write(*kept, "its own");
  CHECK_EQ(text_in(*goes_on), std::string("after"));
}

TEST("large arrays begin where large pages do") {
  CHECK_EQ(SharedParameters::next_offset(1, 100), SharedParameters::kGrain);
  CHECK_EQ(SharedParameters::next_offset(1, SharedParameters::kLargePage),
           SharedParameters::kLargePage);
  const std::int64_t bytes = 2 * SharedParameters::kLargePage;
  const auto memory = SharedParameters::create(bytes);
  CHECK(memory->reserve(0, 1));
  const auto whole = memory->map(memory, 0, std::size_t(bytes));
  CHECK_EQ(reinterpret_cast<std::uintptr_t>(whole->data()) % SharedParameters::kLargePage, 0u);
  for (std::int64_t i = 0; i < bytes; ++i) CHECK(whole->data()[i] == std::byte{0});
}

TEST("memory that the system does not have is not written into") {
  constexpr std::int64_t kLarge = SharedParameters::kLargePage;
  const auto memory = SharedParameters::create(2 * kLarge + kBytes);
  struct Left {
    ~Left() { memory_left = INT64_MAX; }
  } left;
  memory_left = 2 * kLarge;  // the third share has less than a large page
  CHECK(memory->reserve(0, 3));
  CHECK(!memory->reserve(1, 3));
  memory_left = kBytes;
  CHECK(memory->reserve(2, 3));
  CHECK(memory->reserve(3, 3));  // of more ranks than pages
}

TEST("a forked child keeps the values of what is held, whoever goes on writing") {
  const auto memory = SharedParameters::create(kBytes);
  const auto held = memory->map(memory, 0, 100);
  write(*held, "before");
  const std::shared_ptr<Buffer> of_variable = held;
  std::array<int, 2> written{};
  CHECK_EQ(::pipe(written.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte;
    const bool told = ::read(written[0], &byte, 1) == 1;
    ::_exit(told && text_in(*held) == "before" ? 0 : 1);
  }
  write(*of_variable, "after");  // the child's is another page from here on
  CHECK_EQ(::write(written[1], "w", 1), 1);
  int status = -1;
  CHECK_EQ(::waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
  CHECK_EQ(text_in(*held), std::string("after"));
  ::close(written[0]);
  ::close(written[1]);
}
