#pragma once

#include <atomic>
#include <new>

#include "base/error.h"

// Allocations until one fails, once; negative: none does.
extern std::atomic<int> allocations_left;

// The largest object that operator new has made since this was set to 0.
extern std::atomic<std::size_t> largest_object;

// Whether f raises where the allocation after k others fails.
template <class F>
bool fails_at_allocation(int k, const F& f) {
  bool failed = false;
  allocations_left = k;
  try {
    f();
  } catch (const std::bad_alloc&) {
    failed = true;
  } catch (const samegrad::Error&) {
    failed = true;
  }
  allocations_left = -1;
  return failed;
}
