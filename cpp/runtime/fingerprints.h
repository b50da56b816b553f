// Fingerprints that must be equal on all ranks, as strings, and the message that names a mismatch.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/communicator.h"

namespace samegrad {

// The most ranks and facts that a message shows.
inline constexpr std::size_t kMaxShown = 8;

std::string joined(const std::vector<Fingerprint>& facts);
std::vector<Fingerprint> separated(std::string_view all);
// "seed: 1 on rank 0, 2 on rank 1"
std::string difference(const std::vector<std::vector<Fingerprint>>& of_ranks);
// For such a difference.
std::string remedy(const std::string& difference);

}  // namespace samegrad
