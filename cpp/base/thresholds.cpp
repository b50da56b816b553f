#include "base/thresholds.h"

#include <charconv>
#include <cstdlib>

#include "base/error.h"

namespace samegrad {
namespace {

constexpr const char* kVariable = "SAMEGRAD_THRESHOLDS";

struct ThresholdField {
  std::string_view name;
  std::int64_t Thresholds::*member;
};

#define NAMED(member) \
  { #member, &Thresholds::member }
constexpr ThresholdField kTable[] = {
    NAMED(folded_elements),
    NAMED(fused_operations),
    NAMED(recomputed_bytes),
    NAMED(deferred_bytes),
    NAMED(deferred_examples),
    NAMED(joined_examples),
    NAMED(loop_weight_bytes),
    NAMED(cut_weight_bytes),
    NAMED(loop_tile_examples),
    NAMED(inner_loop_bytes),
    NAMED(inner_loop_stretch),
    NAMED(tile_bytes),
    NAMED(far_tile_bytes),
    NAMED(tile_examples),
    NAMED(parts_per_thread),
    NAMED(fused_block),
    NAMED(fused_row),
    NAMED(fused_piece),
    NAMED(tree_block_bytes),
    NAMED(product_block_bytes),
    NAMED(product_block_columns),
    NAMED(product_packed_bytes),
    NAMED(far_weight_bytes),
    NAMED(product_subtree_rows),
    NAMED(all_reduce_block),
    NAMED(common_state_bytes),
    NAMED(parallel_loop_work),
    NAMED(parallel_operation_bytes),
    NAMED(parallel_replica_bytes),
    NAMED(parallel_product_work),
    NAMED(parallel_tree_work),
    NAMED(parallel_all_reduce_bytes),
};
#undef NAMED
static_assert(sizeof(Thresholds) == std::size(kTable) * sizeof(std::int64_t), "each has a name");

std::string names() {
  std::string all;
  for (const ThresholdField& named : kTable)
    all += (all.empty() ? "" : ", ") + std::string(named.name);
  return all;
}

std::int64_t value_of(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  SG_CHECK_VALUE(whole && value >= 1 && value <= std::int64_t(1) << 40, kVariable,
                 "values must be integers from 1 to 2**40: got '", digits, "'.");
  return value;
}

void set(Thresholds& thresholds, std::string_view item) {
  const std::size_t equals = item.find('=');
  SG_CHECK_VALUE(equals != item.npos, kVariable,
                 "must be a number for all, or name=number,…: got '", item, "'.");
  const std::string_view name = item.substr(0, equals);
  for (const ThresholdField& named : kTable) {
    if (named.name != name) continue;
    thresholds.*named.member = value_of(item.substr(equals + 1));
    return;
  }
  fail(ErrorKind::kValue, kVariable, "there is no threshold '", name, "'; there are ", names(),
       ".");
}

}  // namespace

Thresholds::Thresholds(const Machine& machine)
    : deferred_bytes(machine.l1),
      loop_weight_bytes(machine.l2),
      cut_weight_bytes(machine.l2 / 16),
      inner_loop_bytes(machine.l1 / 4 * 3),
      tile_bytes(machine.l2 / 4),
      far_tile_bytes(machine.l3 / 8),
      fused_block(machine.l1 / 128),
      fused_piece(machine.l2 / 64),
      tree_block_bytes(machine.l1 / 2),
      product_block_bytes(machine.l2 / 4),
      product_packed_bytes(machine.l3 / 2),
      far_weight_bytes(machine.l3 / 16),
      all_reduce_block(machine.l1 / 8) {}

Thresholds thresholds_from(std::string_view text, const Machine& machine) {
  Thresholds result(machine);
  if (text.empty()) return result;
  if (text.find('=') == text.npos) {
    for (const ThresholdField& named : kTable) result.*named.member = value_of(text);
    return result;
  }
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    set(result, text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return result;
}

const Thresholds& thresholds() {
  static const Thresholds result = [] {
    const char* text = std::getenv(kVariable);
    return thresholds_from(text ? text : "", machine());
  }();
  return result;
}

}  // namespace samegrad
