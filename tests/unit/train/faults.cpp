// Preloaded: lets one call of the system fail, the n-th that has to do with a folder since arm.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstring>

namespace {
constexpr int kDescriptors = 4096;
char folder[4096] = "";
std::atomic<long> seen{0}, wanted{0};
std::atomic<int> code{0};
std::atomic<const char*> failed{nullptr};
std::atomic<bool> armed{false};
std::atomic<bool> inside[kDescriptors];

bool is_ours(int descriptor) {
  return descriptor >= 0 && descriptor < kDescriptors && inside[descriptor];
}

bool is_ours(const char* path) {
  return path && folder[0] && std::strncmp(path, folder, std::strlen(folder)) == 0;
}

bool is_ours(int descriptor, const char* path) {
  return is_ours(path) || (is_ours(descriptor) && path && path[0] != '/');
}

// Whether this call, which has to do with the folder or not, is the one.
bool fails(const char* name, bool ours) {
  if (!armed || !ours || ++seen != wanted) return false;
  failed = name;
  errno = code;
  return true;
}

int opened(int descriptor, bool ours) {
  if (descriptor >= 0 && descriptor < kDescriptors) inside[descriptor] = ours;
  return descriptor;
}

template <class F>
F* real(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

mode_t mode_of(int flags, va_list list) {
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
}
}  // namespace

// Calls that take a path or a descriptor first.
#define FAULTY(result, name, wrong, parameters, ...)                 \
  extern "C" result name parameters {                                \
    static auto* const call = real<result parameters>(#name);        \
    return fails(#name, is_ours(first)) ? wrong : call(__VA_ARGS__); \
  }
// Calls that take a descriptor and a path inside it.
#define FAULTY_AT(name, parameters, ...)                                     \
  extern "C" int name parameters {                                           \
    static auto* const call = real<int parameters>(#name);                   \
    return fails(#name, is_ours(descriptor, path)) ? -1 : call(__VA_ARGS__); \
  }

FAULTY(ssize_t, read, -1, (int first, void* to, size_t size), first, to, size)
FAULTY(ssize_t, write, -1, (int first, const void* from, size_t size), first, from, size)
FAULTY(off64_t, lseek64, -1, (int first, off64_t offset, int from), first, offset, from)
FAULTY(int, flock, -1, (int first, int kind), first, kind)
FAULTY(int, fstat64, -1, (int first, struct stat64* to), first, to)
FAULTY(int, stat64, -1, (const char* first, struct stat64* to), first, to)
FAULTY(int, lstat64, -1, (const char* first, struct stat64* to), first, to)
FAULTY(int, statvfs64, -1, (const char* first, struct statvfs64* to), first, to)
FAULTY(int, mkdir, -1, (const char* first, mode_t mode), first, mode)
FAULTY(int, rmdir, -1, (const char* first), first)
FAULTY(int, unlink, -1, (const char* first), first)
FAULTY(int, rename, -1, (const char* first, const char* to), first, to)
FAULTY(DIR*, opendir, nullptr, (const char* first), first)
FAULTY(DIR*, fdopendir, nullptr, (int first), first)
FAULTY_AT(fstatat64, (int descriptor, const char* path, struct stat64* to, int flags), descriptor,
          path, to, flags)
FAULTY_AT(unlinkat, (int descriptor, const char* path, int flags), descriptor, path, flags)

extern "C" {
// Nothing here is to survive a power cut.
int fsync(int descriptor) {
  return fails("fsync", is_ours(descriptor)) ? -1 : 0;
}
int open64(const char* path, int flags, ...) {
  static auto* const call = real<int(const char*, int, ...)>("open64");
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  if (fails("open", is_ours(path))) return -1;
  return opened(call(path, flags, mode), is_ours(path));
}
// The engine's own.
int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return open64(path, flags, mode);
}
int openat64(int descriptor, const char* path, int flags, ...) {
  static auto* const call = real<int(int, const char*, int, ...)>("openat64");
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  const bool ours = is_ours(descriptor, path);
  if (fails("openat", ours)) return -1;
  return opened(call(descriptor, path, flags, mode), ours);
}
struct dirent64* readdir64(DIR* stream) {
  static auto* const call = real<struct dirent64*(DIR*)>("readdir64");
  return fails("readdir", is_ours(dirfd(stream))) ? nullptr : call(stream);
}
// What cannot be closed is closed.
int close(int descriptor) {
  static auto* const call = real<int(int)>("close");
  const bool ours = is_ours(descriptor);
  if (ours) inside[descriptor] = false;
  const int result = call(descriptor);
  return fails("close", ours) ? -1 : result;
}

void faults_arm(const char* path, long n, int error) {
  std::strncpy(folder, path, sizeof folder - 1);
  seen = 0;
  failed = nullptr;
  wanted = n;
  code = error;
  armed = true;
}
long faults_disarm() {
  armed = false;
  return seen;
}
const char* faults_failed() {
  return failed;
}
}
