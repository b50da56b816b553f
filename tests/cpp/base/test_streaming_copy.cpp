#include "base/streaming_copy.h"

#include <vector>

#include "check.h"

using namespace samegrad;

TEST("whatever does not begin or end with a line of the cache is copied too, and no more") {
  constexpr std::int64_t kRoom = 512;
  std::vector<std::byte> from(kRoom), to(kRoom);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = std::byte(i * 7 + 1);
  for (const std::int64_t begin : {0, 1, 16, 63, 64}) {
    for (const std::int64_t source : {0, 3, 64}) {
      for (const std::int64_t bytes : {0, 1, 63, 64, 65, 200, 256}) {
        std::ranges::fill(to, std::byte{0});
        streaming_copy(to.data() + begin, from.data() + source, bytes);
        for (std::int64_t i = 0; i < kRoom; ++i) {
          const bool inside = i >= begin && i < begin + bytes;
          CHECK(to[std::size_t(i)] ==
                (inside ? from[std::size_t(i - begin + source)] : std::byte{0}));
        }
      }
    }
  }
}
