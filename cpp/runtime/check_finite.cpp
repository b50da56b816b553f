#include "runtime/check_finite.h"

#include <cmath>

#include "base/error.h"
#include "ir/op_def.h"

namespace samegrad {

void check_finite(const Locations* locations, const Node& node, const View& result, int replica) {
  if (!is_floating(result.dtype)) return;
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const double x =
        result.dtype == DType::kFloat32 ? result.as<float>()[i] : result.as<double>()[i];
    if (std::isfinite(x)) continue;
    std::string line;
    if (locations && node.location >= 0) line = (*locations)[std::size_t(node.location)];
    if (!line.empty()) line = " (" + line + ")";
    fail(ErrorKind::kNonFinite, node.op->name, "made ", std::isnan(x) ? "NaN" : "an infinity",
         " at element ", i, " of a result of shape ", to_string(result.shape), " on replica ",
         replica, line,
         "; look at its operands: data that is not finite, a division by zero, a log "
         "of zero, or a learning rate that is too high.");
  }
}

}  // namespace samegrad
