// The job of this process, and the communicators of its strategies.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/communicator.h"
#include "runtime/mpi_world.h"

namespace samegrad {

// Once per process; RuntimeError for a second time.
// `shared` may be null: the ranks are on several machines.
MpiWorld& join_world(const MpiLibrary& library, std::unique_ptr<SharedMemory> shared,
                     std::chrono::milliseconds patience, std::function<void()> show_stack);
// Null: this process is alone.
MpiWorld* world();
// Rank r has the replicas [firsts[r], firsts[r + 1]); the last one is their number. ValueError
// unless the world has as many ranks.
Communicator& communicator_of(const std::vector<int>& firsts);

}  // namespace samegrad
