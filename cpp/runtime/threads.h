// The single TBB arena whose threads the replicas, tiles and kernels share.
#pragma once

#include <string>

#include "tensor/kernel_args.h"

namespace samegrad {

// Threads in use: set_thread_count(), else SAMEGRAD_NUM_THREADS, else those of SAMEGRAD_MACHINE,
// else the share of the cores that set_core_share() said, else the cores of the process.
int thread_count();
// 0 stands for the default; ValueError if negative.
void set_thread_count(int threads);
// Sets this process's number of cores, which it shares with others of its job.
void set_core_share(int cores);

// "2022.3"
std::string tbb_version();

// Loops on the arena; in the calling thread if there is one thread only, or in a forked child (the
// workers stayed in the parent; the results are the same).
const ParallelFor& parallel_loops();
// The work that all threads of the process shared since it began.
SharedWork shared_work();
// Loops in the calling thread.
const ParallelFor& serial_loops();

}  // namespace samegrad
