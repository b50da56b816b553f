// Lines that steps print, kept until somebody who may write shows them.
#pragma once

#include <string>
#include <vector>

namespace samegrad {

// From any thread.
void print_message(std::string line);
// All lines since the last call, in order.
std::vector<std::string> take_messages();

}  // namespace samegrad
