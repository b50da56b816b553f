// Output of print ops during a step.
#pragma once

namespace samegrad {

// Begins a text, and so a message, for standard output; others are for standard error.
inline constexpr char kForStandardOutput = '\1';

}  // namespace samegrad
