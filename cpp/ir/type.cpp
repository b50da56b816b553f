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
void complete(const Symbol& symbol, std::int64_t& count, const std::vector<std::int64_t>& counts) {
  if (symbol.kind == Symbol::Kind::kSlice) {
    count = slice_count(symbol, counts[std::size_t(symbol.parts[0])]);
  } else if (symbol.kind == Symbol::Kind::kSum) {
    count = 0;
    for (int part : symbol.parts) count += counts[std::size_t(part)];
  }
}
}  // namespace

void complete_counts(const std::vector<Symbol>& symbols,
                     std::vector<std::vector<std::int64_t>>& counts) {
  for (auto& of_replica : counts) of_replica.resize(symbols.size());
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i].kind == Symbol::Kind::kGlobal) {
      std::int64_t all = 0;
      for (const auto& of_replica : counts) all += of_replica[std::size_t(symbols[i].parts[0])];
      for (auto& of_replica : counts) of_replica[i] = all;
      continue;
    }
    for (auto& of_replica : counts) complete(symbols[i], of_replica[i], of_replica);
  }
}

void complete_counts(const std::vector<Symbol>& symbols, std::vector<std::int64_t>& counts) {
  counts.resize(symbols.size());
  for (std::size_t i = 0; i < symbols.size(); ++i) complete(symbols[i], counts[i], counts);
}

bool joins_replicas(const std::vector<Symbol>& symbols, std::size_t symbol) {
  const Symbol& s = symbols[symbol];
  if (s.kind == Symbol::Kind::kInput || s.parts.empty()) return false;
  return s.kind == Symbol::Kind::kGlobal ||
         std::all_of(s.parts.begin(), s.parts.end(),
                     [&](int part) { return joins_replicas(symbols, std::size_t(part)); });
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
