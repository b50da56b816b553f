#include "base/hasher.h"

#include <set>
#include <vector>

#include "check.h"

using samegrad::Hasher;

namespace {

std::uint64_t hash_of(const std::vector<unsigned char>& data) {
  Hasher hasher;
  hasher.many(data.data(), data.size());
  return hasher.state();
}

}  // namespace

TEST("a hash of many bytes knows each bit and the length") {
  std::set<std::uint64_t> found;
  std::size_t count = 0;
  for (const std::size_t size : {0, 1, 63, 64, 65, 200}) {
    std::vector<unsigned char> data(size);
    found.insert(hash_of(data));
    ++count;
    for (std::size_t bit = 0; bit < 8 * size; ++bit, ++count) {
      data[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
      found.insert(hash_of(data));
      data[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
    }
  }
  CHECK_EQ(found.size(), count);
}

TEST("the signs of two numbers below each other do not cancel") {
  std::vector<unsigned char> data(256);
  const std::uint64_t before = hash_of(data);
  for (const std::size_t distance : {64, 128, 192}) {
    data[7] ^= 0x80;
    data[7 + distance] ^= 0x80;
    CHECK(hash_of(data) != before);
    data[7] ^= 0x80;
    data[7 + distance] ^= 0x80;
  }
}
