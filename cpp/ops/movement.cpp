// Rows that move elements without computing: one file per kind.
#include "ops/movement.h"

#include <cstring>
#include <iterator>

namespace samegrad {

void copy_bytes(const KernelArgs& args) {
  const View& y = args.out[0];
  const std::size_t bytes = std::size_t(y.size()) * size_of(y.dtype);
  if (bytes && y.data != args.in[0].data) std::memcpy(y.data, args.in[0].data, bytes);
}

void Move::run(const View& y, const View& x, std::int64_t begin, std::int64_t end) const {
  const auto item = std::int64_t(size_of(y.dtype));
  copy.run(y.as<char>() + to * item, x.as<char>() + from * item, y.dtype, begin, end);
}

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
