// Files that are read at once.
#pragma once

#include <optional>
#include <string>

namespace samegrad {

// The bytes of a file; nothing where it cannot be read, or is not a regular file.
std::optional<std::string> read_whole_file(const std::string& path);

}  // namespace samegrad
