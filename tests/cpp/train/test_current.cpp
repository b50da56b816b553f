// What is current, and whose end restores it.
#include <optional>
#include <thread>

#include "check.h"
#include "tracing.h"
#include "train/current.h"

using namespace samegrad;

namespace {
std::shared_ptr<Trace> new_trace() {
  return std::make_shared<FunctionTrace>(host, 1);
}
}  // namespace

TEST("the end of a scope takes what was entered since, and not left, with it") {
  const auto outer = new_trace(), inner = new_trace();
  const auto kept = std::make_shared<int>(3);
  std::optional<Scope> forgotten;
  {
    const Scope scope(with_trace(outer));
    forgotten.emplace(Current{inner, std::make_shared<RandomState>(5, 6), kept});
    CHECK(current_trace() == inner);
    CHECK_EQ(random_state().seed.load(), 5u);
    CHECK_EQ(kept.use_count(), 2);
  }
  CHECK(!current_trace() && !current().random && !current().context);
  CHECK_EQ(kept.use_count(), 1);
  const Scope later(with_trace(outer));
  forgotten.reset();  // too late to do anything
  CHECK(current_trace() == outer);
}

TEST("scopes that end in the order of their beginning leave nothing") {
  const auto first = new_trace(), second = new_trace();
  std::optional<Scope> a(with_trace(first)), b(with_trace(second));
  a.reset();
  CHECK(!current_trace());
  b.reset();
  CHECK(!current_trace());
}

TEST("a scope that ends in another thread is none of that thread's") {
  const Scope around(with_trace(nullptr));  // takes away what stays here
  std::optional<Scope> scope(with_trace(new_trace()));
  const auto own = new_trace();
  std::thread([&] {
    const Scope here(with_trace(own));
    scope.reset();
    CHECK(current_trace() == own);
  }).join();
  CHECK(current_trace() != nullptr);
}

TEST("a trace that gives way to another one does so wherever it will be current again") {
  const auto old = new_trace(), fresh = new_trace();
  const Scope scope(with_trace(old));
  {
    const Scope nothing(with_trace(nullptr));
    replace_current(old, fresh);
    CHECK(!current_trace());
  }
  CHECK(current_trace() == fresh);
}
