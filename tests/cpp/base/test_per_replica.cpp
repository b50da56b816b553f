// Values that all replicas share, or that each replica has.
#include <string>

#include "base/per_replica.h"
#include "check.h"

using namespace samegrad;

TEST("a shared value is every replica's") {
  const PerReplica<std::string> shared = {"a"};
  CHECK(shared.is_shared());
  CHECK_EQ(shared.at(0), "a");
  CHECK_EQ(shared.at(7), "a");
}

TEST("a value per replica is at the replica's index") {
  PerReplica<int> values(2, 5);
  values[1] = 6;
  values.push_back(7);
  CHECK(!values.is_shared());
  CHECK_EQ(values.at(1), 6);
  CHECK_EQ(values.at(2), 7);
  CHECK(values == PerReplica<int>({5, 6, 7}));
  CHECK(PerReplica<int>().empty());
}
