#pragma once

#include <atomic>

// Allocations until one fails, once; negative: none does.
extern std::atomic<int> allocations_left;
