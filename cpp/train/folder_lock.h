// A lock of a folder, among all threads and processes that use it.
#pragma once

#include <sys/types.h>

#include <string>

namespace samegrad {

enum class LockUse { kRead, kWrite };

// An open folder, and its lock once it is taken; both last no longer than the object, or its
// process. One writer or any number of readers hold the lock.
class FolderLock {
 public:
  // Throws std::system_error where the folder cannot be opened.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  // Takes the lock; false if another process holds it. True as well where the file system has no
  // locks. Throws std::system_error on an error.
  bool take(LockUse use);

 private:
  int descriptor_;
  pid_t owner_;
};

}  // namespace samegrad
