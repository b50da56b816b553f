#include "ir/type.h"

#include <algorithm>

#include "base/error.h"

namespace samegrad {

std::string to_string(const ValueType& type) {
  std::string out = text(name_of(type.dtype), " ", to_string(type.shape));
  if (type.batched()) {
    out += text(" examples", type.batch.symbol ? text("#", type.batch.symbol) : "", " on axis ",
                type.batch.axis);
    if (type.batch.rows_per_example != 1) out += text(" x", type.batch.rows_per_example);
  }
  return out;
}

namespace {
std::int64_t slice_count(const Symbol& symbol, std::int64_t n) {
  const auto clamp = [n](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + n : at, 0, n);
  };
  const std::int64_t begin = clamp(symbol.begin);
  const std::int64_t end = symbol.end == INT64_MAX ? n : clamp(symbol.end);
  return end > begin ? (end - begin + symbol.step - 1) / symbol.step : 0;
}
}  // namespace

void complete_counts(const std::vector<Symbol>& symbols, std::vector<std::int64_t>& counts) {
  counts.resize(symbols.size());
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    const Symbol& symbol = symbols[i];
    if (symbol.kind == Symbol::Kind::kInput) continue;
    if (symbol.kind == Symbol::Kind::kSlice) {
      counts[i] = slice_count(symbol, counts[std::size_t(symbol.parts[0])]);
      continue;
    }
    counts[i] = 0;
    for (int part : symbol.parts) counts[i] += counts[std::size_t(part)];
  }
}

Shape concrete_shape(const ValueType& type, const std::vector<std::int64_t>& counts) {
  Shape shape = type.shape;
  if (type.batched()) {
    shape[type.batch.axis] = type.batch.rows_per_example * counts[std::size_t(type.batch.symbol)];
  }
  return shape;
}

std::int64_t example_size(const ValueType& type) {
  Shape shape = type.shape;
  if (type.batched()) shape[type.batch.axis] = type.batch.rows_per_example;
  return shape.size();
}

}  // namespace samegrad
