// Replays saved programs as parts of the program that is being traced.
#pragma once

#include <memory>
#include <vector>

#include "train/graph_trace.h"

namespace samegrad {

// The results of a program of one replica for these arguments; it reads and writes these variables,
// by its slots. Its nodes become nodes of the trace, for any replicas. ValueError or TypeError
// where an argument does not fit, or where the program took something else for granted of sizes.
std::vector<Tensor> replay_program(GraphTrace& trace, const Graph& program,
                                   const std::vector<Tensor>& arguments,
                                   const std::vector<std::shared_ptr<Variable>>& variables);

// The number of ordinals that the program's random ops take.
std::int64_t count_draws(const Graph& program);

}  // namespace samegrad
