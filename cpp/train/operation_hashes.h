// Hashes of all operations of a run, listed by source line.
#pragma once

#include <vector>

#include "ir/located_error.h"
#include "runtime/hashes.h"
#include "train/step_hashes.h"

namespace samegrad {

// In the order of the plan's graph, those of a body before the operation that runs it.
std::vector<OperationHash> operation_hashes(const Plan& plan, const Hashes& hashes,
                                            const Locations& locations);
// In the order of the plan's steps.
std::vector<StoredHash> stored_hashes(const Plan& plan, const Hashes& hashes,
                                      const Locations& locations);

}  // namespace samegrad
