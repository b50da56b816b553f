#pragma once

#include <atomic>
#include <new>

#include "base/error.h"

// Allocations until one fails, once; negative: none does.
extern std::atomic<int> allocations_left;

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
