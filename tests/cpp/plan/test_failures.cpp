// Steps for which there is no memory change nothing, wherever it runs out.
#include <new>

#include "allocation.h"
#include "check.h"
#include "programs.h"

using namespace samegrad;

TEST("a step that finds no memory, at whatever point, leaves all variables as they were") {
  int failures = 0;
  for (int k = 0; k < 400; ++k) {
    Fake f(5);
    f.write(0, f.sum({f.old(0), f.old(0)}));        // in place
    f.write(1, f.sum({f.old(1), f.old(0)}));        // in place, in a later step
    f.write(2, f.apply(alias_op(), {f.old(3)}));    // copied
    f.write(3, f.apply(reverse_op(), {f.old(3)}));  // replaced, as the old value is stored
    f.write(4, f.sum({f.old(4), f.old(4)}));        // in place, but somebody holds it
    f.output(f.sum({f.old(4), f.old(1)}));
    Executable executable(f.plan());
    const Array held = f.cell(4).components()[0];
    const bool failed = fails_at_allocation(k, [&] { f.run(executable); });
    failures += failed;
    const float expected[] = {2, 12, 31, 33, 82};
    for (int v = 0; v < 5; ++v) {
      const float old = 10.f * float(v) + 1;
      CHECK_EQ(f.cell(v).data()[1], failed ? old : expected[v]);
    }
    CHECK_EQ(held.data<float>()[1], 41.f);
    if (!failed) break;
  }
  CHECK(failures > 5, failures);
}
