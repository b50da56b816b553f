#include "ops/registry.h"

#include <utility>

#include "ops/families.h"
#include "ops/linalg.h"

namespace samegrad {
namespace {

bool add_all() {
  using Family = std::vector<OpDef> (*)();
  constexpr Family kFamilies[] = {
      unary_ops,    binary_ops,     select_ops,        fused_ops,
      alias_ops,    reduce_ops,     arg_reduce_ops,    scan_ops,
      order_ops,    softmax_ops,    cross_entropy_ops, random_ops,
      fact_ops,     collective_ops, control_ops,       movement_ops,
      matmul_ops,   conv_ops,       pool_ops,          print_ops,
      index_ops,    scatter_ops,    attention_ops,     gradient_rule_ops,
      rounds_ops,   array_rows_ops, linalg_solve_ops,  linalg_spectral_ops,
      pointwise_ops};
  for (Family family : kFamilies) {
    for (OpDef& op : family()) OpRegistry::instance().add(std::move(op));
  }
  return true;
}

}  // namespace

void register_all_ops() {
  [[maybe_unused]] static const bool added = add_all();
}

}  // namespace samegrad
