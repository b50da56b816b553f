#include "train/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace samegrad {
namespace {

bool means_without_locks(int error) {
  return error == ENOLCK || error == EOPNOTSUPP || error == ENOSYS || error == EINVAL ||
         error == EBADF;
}

[[noreturn]] void fail_as_system(int error) {
  throw std::system_error(error, std::generic_category());
}

}  // namespace

FolderLock::FolderLock(const std::string& folder)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), owner_(::getpid()) {
  if (descriptor_ < 0) fail_as_system(errno);
}

FolderLock::~FolderLock() {
  // A child forked meanwhile has the descriptor too: closing it is not enough here, and unlocking
  // too much there.
  if (owner_ == ::getpid()) ::flock(descriptor_, LOCK_UN);
  ::close(descriptor_);
}

bool FolderLock::take(LockUse use) {
  while (::flock(descriptor_, (use == LockUse::kRead ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
    const int error = errno;
    if (error == EWOULDBLOCK) return false;
    if (means_without_locks(error)) return true;
    if (error != EINTR) fail_as_system(error);
  }
  return true;
}

}  // namespace samegrad
