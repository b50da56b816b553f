#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "passes/commute_all_reduce.h"
#include "passes/joint_rows.h"
#include "passes/passes.h"
#include "passes/split_round_sums.h"

namespace samegrad {
namespace {

bool verifies() {
  const char* set = std::getenv("SAMEGRAD_VERIFY");
  const std::string_view text = set ? set : "";
  check_value(text.empty() || text == "0" || text == "1", "SAMEGRAD_VERIFY",
              "must be 0 or 1: got '", text, "'.");
#ifdef SAMEGRAD_ASSERTIONS
  return true;
#else
  return text == "1";
#endif
}

}  // namespace

bool verifies_programs() {
  static const bool verifying = verifies();
  return verifying;
}

Graph run_passes(Graph graph, const PassOptions& options) {
  const struct {
    bool wanted;
    Graph (*pass)(Graph);
  } passes[] = {
      {options.expand_rows, expand_rows},
      {options.forward_identities, forward_identities},
      {options.forward_broadcasts, forward_broadcasts},
      {options.eliminate_dead, eliminate_dead},
      {options.fold_constants, fold_constants},
      {options.eliminate_common, eliminate_common},
      {options.commute_masks, commute_masks},
      {options.eliminate_dead, eliminate_dead},
      {options.fuse_epilogue, fuse_epilogue},
      {options.fuse_elementwise, fuse_elementwise},
      {options.fold_constants, fold_constants},
      {options.eliminate_common, eliminate_common},
      {options.eliminate_dead, eliminate_dead},
  };
  const bool verifying = verifies_programs();
  if (verifying) verify(graph);
  graph = widen(without_gradient_rules(std::move(graph)));
  if (verifying) verify(graph);
  // Before and after: what an all-reduce is taken of instead may be a part in 16 bits.
  graph = widen(commute_all_reduce(std::move(graph)));
  if (verifying) verify(graph);
  graph = split_round_sums(std::move(graph));
  if (verifying) verify(graph);
  for (const auto& [wanted, pass] : passes) {
    if (!wanted) continue;
    graph = pass(std::move(graph));
    if (verifying) verify(graph);
  }
  graph = separate_partials(std::move(graph));
  if (verifying) verify(graph);
  return graph;
}

}  // namespace samegrad
