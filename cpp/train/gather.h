// Copies chosen rows of a source next to each other.
#pragma once

#include "train/feed.h"

namespace samegrad {

// The rows numbers[0], numbers[columns], … (counted from the source's column) as one array; without
// an axis of rows if `single`.
Array gather_rows(const FeedSource& source, const std::int64_t* numbers, std::int64_t rows,
                  int columns, bool single);

}  // namespace samegrad
