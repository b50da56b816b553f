#include "train/argument_symbols.h"

#include <numeric>

namespace samegrad {
namespace {

// The symbolic type of an array in a trace, given the symbol of its count of examples.
ValueType type_in_trace(const Array& array, ExampleAxis batch, int symbol) {
  ValueType type{array.dtype(), array.shape(), batch};
  if (batch.exists()) {
    type.shape[batch.axis] = kBatchDim;
    type.batch.symbol = symbol;
  }
  return type;
}

}  // namespace

int ArgumentSymbols::symbol_for(const ExampleCounts& counts, bool own) {
  for (const auto& [symbol, known] : symbols_) {
    if (!own && same_counts(known, counts)) return symbol;
  }
  Symbol symbol;
  symbol.traced_count = counts[0];
  if (counts.size() > 1) symbol.traced_total = std::accumulate(counts.begin(), counts.end(), 0ll);
  if (!same_counts({counts[0]}, counts)) symbol.traced_counts = counts;
  const int index = graph_.add_symbol(symbol);
  if (!own) symbols_.emplace_back(index, counts);
  return index;
}

Value ArgumentSymbols::add(const PerReplica<Array>& arrays, const ExampleAxis& batch,
                           std::uint32_t lengths, bool own_symbol) {
  const int symbol = batch.exists() ? symbol_for(counts_of(arrays.values(), batch), own_symbol) : 0;
  const bool differs = !arrays.is_shared() && graph_.replicas > 1;
  const Placement placement = !differs         ? Placement::kReplicated
                              : batch.exists() ? Placement::kSharded
                                               : Placement::kVarying;
  ValueType type = type_in_trace(arrays[0], batch, symbol);
  for (int axis = 0; axis < type.shape.rank(); ++axis) {
    if (axis == batch.axis || !(lengths >> axis & 1u)) continue;
    Symbol length;
    length.kind = Symbol::Kind::kLength;
    length.traced_count = type.shape[axis];
    type.shape[axis] = kSymbols + graph_.add_symbol(length);
  }
  return graph_.add_argument(type, placement);
}

}  // namespace samegrad
