#pragma once

#include <string>

namespace samegrad {

// The innermost line outside this package and NumPy, "train.py:31".
std::string user_line();

}  // namespace samegrad
