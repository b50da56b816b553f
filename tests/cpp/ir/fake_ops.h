// Rows that do nothing but have types.
#pragma once

#include <string>

#include "ir/builder.h"

namespace samegrad::testing {

inline Inferred same_as_first(const InferArgs& args) {
  const ValueType& type = args.in[0];
  return {{type}, type.batched() ? Locality::kPerExample : Locality::kFullBatch};
}

inline OpDef fake_op(const std::string& name, int arity, std::uint32_t traits = 0) {
  OpDef op;
  op.name = name;
  op.min_arity = op.max_arity = arity;
  op.traits = traits;
  op.infer = same_as_first;
  return op;
}

struct FakeAttrs {
  std::int64_t size = 0;
  Scalar rate = 0.5;
  std::string name = "none";

  static constexpr auto fields() {
    return std::tuple(required("size", &FakeAttrs::size, ""),
                      defaulted("rate", &FakeAttrs::rate, ""),
                      defaulted("name", &FakeAttrs::name, ""));
  }
};
struct OtherAttrs {
  std::int64_t size = 0;

  static constexpr auto fields() { return std::tuple(required("size", &OtherAttrs::size, "")); }
};

inline OpDef row_with_attributes() {
  OpDef op = fake_op("configured", 1);
  op.attrs = schema_of<FakeAttrs>();
  return op;
}
inline const OpDef& configured() {
  static const OpDef op = row_with_attributes();
  return op;
}

inline ValueType vector_type(std::int64_t size, DType dtype = DType::kFloat32) {
  return {dtype, Shape{size}, {}};
}

// Examples of symbol 0 on axis 0.
inline ValueType batched_type(std::int64_t columns) {
  return {DType::kFloat32, Shape{kBatchDim, columns}, {0, 1, 0}};
}

// A variable "weight" that all replicas share, as it is when the program starts.
inline Value add_weight(Graph& graph, std::int64_t size) {
  graph.variables.push_back({"weight", 1});
  return graph.add_read(graph.variables.next_id() - 1, vector_type(size));
}

}  // namespace samegrad::testing
