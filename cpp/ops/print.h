// Where what a step prints goes.
#pragma once

namespace samegrad {

// Begins a text, and so a message, for standard output; others are for standard error.
inline constexpr char kForStandardOutput = '\1';

}  // namespace samegrad
