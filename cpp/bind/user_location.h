#pragma once

#include <string>

namespace samegrad {

// The innermost line outside this package and NumPy, "train.py:31".
std::string user_location();
// Suffix of an error message for such a line: the file, the line and its source.
std::string in_user_code(const std::string& line);

}  // namespace samegrad
