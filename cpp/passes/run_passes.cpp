#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "passes/hoist_all_reduce.h"
#include "passes/joint_examples.h"
#include "passes/passes.h"

namespace samegrad {
namespace {

bool verifies() {
  const char* set = std::getenv("SAMEGRAD_VERIFY");
  const std::string_view text = set ? set : "";
  SG_CHECK_VALUE(text.empty() || text == "0" || text == "1", "SAMEGRAD_VERIFY",
                 "must be 0 or 1: got '", text, "'.");
#ifdef SAMEGRAD_ASSERTIONS
  return true;
#else
  return text == "1";
#endif
}

struct Pass {
  bool PassOptions::*option;  // null: a lowering
  Graph (*run)(Graph, const LeaveLoops&);
};

template <auto kPass>
Graph run_pass(Graph graph, const LeaveLoops& leave) {
  if constexpr (std::is_invocable_v<decltype(kPass), Graph, const LeaveLoops&>) {
    return kPass(std::move(graph), leave);
  } else {
    return kPass(std::move(graph));
  }
}

template <auto kPass>
constexpr Pass kLowering{nullptr, run_pass<kPass>};
#define SAMEGRAD_PASS(name, doc) constexpr Pass name##_pass{&PassOptions::name, run_pass<name>};
#include "passes/passes.def"
#undef SAMEGRAD_PASS

constexpr Pass kPipeline[] = {
    kLowering<without_gradient_rules>,
    kLowering<promote_types>,
    kLowering<hoist_all_reduce>,
    kLowering<promote_types>,  // the operand of an all-reduce may be a part in 16 bits now
    fission_loops_pass,
    decompose_composites_pass,
    propagate_copies_pass,
    fold_broadcasts_pass,
    eliminate_dead_pass,
    fold_constants_pass,
    eliminate_common_pass,
    sink_masks_pass,
    eliminate_dead_pass,
    fuse_epilogue_pass,
    redirect_type_operands_pass,
    split_tree_reductions_pass,
    rematerialize_for_later_loops_pass,
    fuse_elementwise_pass,
    fold_constants_pass,
    eliminate_common_pass,
    eliminate_dead_pass,
    kLowering<separate_partials>,
};

}  // namespace

bool verifies_programs() {
  static const bool verifying = verifies();
  return verifying;
}

Graph run_passes(Graph graph, const PassOptions& options) {
  const bool verifying = verifies_programs();
  if (verifying) verify(graph);
  for (const Pass& pass : kPipeline) {
    if (pass.option && !(options.*pass.option)) continue;
    graph = pass.run(std::move(graph), options.leave_loops);
    if (verifying) verify(graph);
  }
  return graph;
}

}  // namespace samegrad
