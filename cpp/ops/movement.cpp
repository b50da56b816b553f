// Rows that move elements without computing: one file per kind.
#include "ops/movement.h"

#include <iterator>

#include "ops/families.h"

namespace samegrad {

std::vector<OpDef> movement_ops() {
  std::vector<OpDef> all;
  for (auto part :
       {reshape_ops, permute_ops, slice_ops, concat_ops, broadcast_ops, tile_ops, fill_ops}) {
    std::vector<OpDef> ops = part();
    std::move(ops.begin(), ops.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace samegrad
