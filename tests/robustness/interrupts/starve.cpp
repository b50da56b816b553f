// Preloaded: lets one allocation of the process fail, the n-th since arm(n). Those of optree are
// not counted: pybind11 frees an instance twice whose entry it could not make.
#include <dlfcn.h>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {
std::atomic<long> seen{0}, wanted{0};
std::atomic<bool> armed{false}, failed{false};

bool is_of_optree(void* caller) {
  Dl_info info;
  return dladdr(caller, &info) && info.dli_fname && std::strstr(info.dli_fname, "optree");
}

bool fails(void* caller) {
  if (!armed || is_of_optree(caller)) return false;
  if (++seen != wanted) return false;
  failed = true;
  return true;
}

// An entry of the table in which pybind11 finds instances: it ends the process without one.
constexpr std::size_t kSizeOfEntry = 24;

void* take(void* caller, std::size_t bytes) {
  const bool refused = bytes != kSizeOfEntry && fails(caller);
  if (void* memory = refused ? nullptr : std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}

void* real_aligned(std::size_t alignment, std::size_t bytes) {
  static auto* real =
      reinterpret_cast<void* (*)(std::size_t, std::size_t)>(dlsym(RTLD_NEXT, "aligned_alloc"));
  return real(alignment, bytes);
}

void* take(void* caller, std::size_t bytes, std::align_val_t alignment) {
  const auto a = std::size_t(alignment);
  if (void* memory = fails(caller) ? nullptr : real_aligned(a, (bytes + a - 1) / a * a))
    return memory;
  throw std::bad_alloc();
}
}  // namespace

extern "C" {
void starve_arm(long n) {
  seen = 0;
  failed = false;
  wanted = n;
  armed = true;
}
long starve_disarm() {
  armed = false;
  return seen;
}
int starve_failed() {
  return failed;
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return fails(__builtin_return_address(0)) ? nullptr : real_aligned(alignment, bytes);
}
}

void* operator new(std::size_t bytes) {
  return take(__builtin_return_address(0), bytes);
}
void* operator new[](std::size_t bytes) {
  return take(__builtin_return_address(0), bytes);
}
void* operator new(std::size_t bytes, std::align_val_t a) {
  return take(__builtin_return_address(0), bytes, a);
}
void* operator new[](std::size_t bytes, std::align_val_t a) {
  return take(__builtin_return_address(0), bytes, a);
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete[](void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::size_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}
