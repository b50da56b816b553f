#include "runtime/check_finite.h"

#include <algorithm>
#include <cmath>

#include "ir/located_error.h"
#include "ir/op_def.h"

namespace samegrad {
namespace {

template <class T>
bool is_finite(T x) {
  return std::isfinite(x);
}

}  // namespace

void check_finite(const Node& node, const View& result, int replica) {
  check_finite(node, result, 1, [replica](std::int64_t) { return replica; });
}

void check_finite(const Node& node, const View& result, std::int64_t examples,
                  const std::function<int(std::int64_t)>& replica_of) {
  if (!is_floating(result.dtype)) return;
  const std::int64_t at = visit<kFloats>("check_numerics", result.dtype, [&]<class T>() {
    const T* x = result.as<const T>();
    return std::int64_t(std::find_if_not(x, x + result.size(), is_finite<T>) - x);
  });
  if (at == result.size()) return;
  const bool nan = visit<kFloats>("check_numerics", result.dtype,
                                  [&]<class T>() { return std::isnan(result.as<const T>()[at]); });
  const int replica = replica_of(at * examples / result.size());
  run_located(node, [&] {
    fail(ErrorKind::kNonFinite, node.op->name, "made ", nan ? "NaN" : "an infinity", " at element ",
         at, " of a result of shape ", to_string(result.shape), " on replica ", replica,
         "; look at its operands: data that is not finite, a division by zero, a log "
         "of zero, or a learning rate that is too high.");
  });
}

}  // namespace samegrad
