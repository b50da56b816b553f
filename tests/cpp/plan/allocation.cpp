// Memory of the test program, which can be made to run out.
#include "allocation.h"

#include <cstdlib>
#include <new>

std::atomic<int> allocations_left{-1};
std::atomic<std::size_t> largest_object{0};

namespace {

bool fails() {
  int now = allocations_left.load();
  while (now >= 0 && !allocations_left.compare_exchange_weak(now, now - 1)) {
  }
  return now == 0;
}

void* allocate(std::size_t alignment, std::size_t bytes) {
  void* memory = nullptr;
  if (fails() || posix_memalign(&memory, alignment, bytes ? bytes : alignment) != 0) return nullptr;
  return memory;
}

}  // namespace

// What buffers are made with.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return allocate(alignment, bytes);
}
void* operator new(std::size_t bytes) {
  std::size_t largest = largest_object.load();
  while (largest < bytes && !largest_object.compare_exchange_weak(largest, bytes)) {
  }
  void* memory = allocate(sizeof(void*) * 2, bytes);
  if (!memory) throw std::bad_alloc();
  return memory;
}
// All forms, so that each memory goes back to where it came from.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(sizeof(void*) * 2, bytes);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
