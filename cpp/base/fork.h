// Forks: a child has the memory of its parent, but not its threads, and what they had locked stays
// locked.
#pragma once

#include <cstdint>

namespace samegrad {

// Differs between a process and its forked children, from the first call on.
std::uint64_t process_generation();

}  // namespace samegrad
