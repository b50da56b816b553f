// Assertions abort with what they found, and cost nothing where they are off.
#include "base/assert.h"

#include "base/ids.h"
#include "base/per_replica.h"
#include "check.h"
#include "death.h"

using namespace samegrad;

TEST("an assertion is evaluated in builds with assertions alone") {
  int evaluated = 0;
  SG_ASSERT(++evaluated > 0, "printed ", evaluated);
#ifdef SAMEGRAD_ASSERTIONS
  CHECK_EQ(evaluated, 1);
#else
  CHECK_EQ(evaluated, 0);
#endif
}

#ifdef SAMEGRAD_ASSERTIONS

namespace {

using Lion = Id<struct LionTag>;

}  // namespace

TEST("an assertion prints its place, condition and values, and aborts") {
  const std::string said = said_before_abort([] { SG_ASSERT(1 + 1 == 3, "sum ", 2); });
  CHECK(check::has(said, "test_assert.cpp:"), said);
  CHECK(check::has(said, "assertion failed: 1 + 1 == 3: sum 2"), said);
}

TEST("an id that is not in a list does not index it") {
  IndexedVector<Lion, int> lions(3);
  const auto at = [&](int id) { return said_before_abort([&] { ++lions[Lion(id)]; }); };
  CHECK_EQ(at(2), "");
  CHECK(check::has(at(3), "id 3 of a list of 3"), at(3));
  CHECK(check::has(at(-1), "id -1 of a list of 3"), at(-1));
}

TEST("a replica without a value is not looked up") {
  const PerReplica<int> values = {1, 2};
  const auto at = [&](std::size_t r) {
    return said_before_abort([&] { static_cast<void>(values.at(r)); });
  };
  CHECK_EQ(at(1), "");
  CHECK(check::has(at(2), "value 2 of 2"), at(2));
}

TEST("an element of another list has no id") {
  IndexedVector<Lion, int> lions(3);
  const int other = 0;
  const std::string said = said_before_abort([&] { static_cast<void>(lions.id_of(other)); });
  CHECK(check::has(said, "an element of another list"), said);
}

#endif
