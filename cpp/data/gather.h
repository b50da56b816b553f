// Copies chosen rows of sources next to each other.
#pragma once

#include <span>

#include "data/feed.h"

namespace samegrad {

// Rows [ends[g - 1], ends[g]) of `indices` become an array of group g, all groups in one buffer
// with aligned beginnings. `single`: a group is one row, and its array has no axis of rows.
std::vector<Array> gather_groups(const FeedSource& source, const RowIndices& indices, int columns,
                                 std::span<const std::int64_t> ends, bool single);

}  // namespace samegrad
