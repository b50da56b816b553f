#include "data/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace samegrad {
namespace {

// Reads until there is no more; whether that went well.
bool read_all(int file, std::string& contents) {
  std::size_t done = 0;
  while (true) {
    if (done == contents.size()) contents.resize(contents.size() + (std::size_t(1) << 16));
    const ssize_t count = ::read(file, contents.data() + done, contents.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    if (count == 0) break;
    done += std::size_t(count);
  }
  contents.resize(done);
  return true;
}

}  // namespace

std::optional<std::string> read_whole_file(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos) return std::nullopt;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  struct stat about = {};
  std::optional<std::string> contents;
  if (::fstat(file, &about) == 0 && S_ISREG(about.st_mode)) {
    // One more, so that the end is seen without more room.
    contents.emplace(std::size_t(about.st_size) + 1, '\0');
    if (!read_all(file, *contents)) contents.reset();
  }
  ::close(file);
  return contents;
}

}  // namespace samegrad
