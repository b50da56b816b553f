// Rows that do nothing but have types.
#pragma once

#include <memory>
#include <string>

#include "ir/builder.h"

namespace samegrad::testing {

inline Inferred same_as_first(const InferArgs& args) {
  const ValueType& type = args.in[0];
  return {{type}, type.batched() ? Locality::kExample : Locality::kWhole};
}

inline OpDef fake_row(const std::string& name, int arity, std::uint32_t traits = 0) {
  OpDef op;
  op.name = name;
  op.min_arity = op.max_arity = arity;
  op.traits = traits;
  op.infer = same_as_first;
  return op;
}

// A row with an attribute of each simple kind, two of which have fallbacks.
inline OpDef row_with_attributes() {
  OpDef op = fake_row("configured", 1);
  op.attrs = {{"size", AttrKind::kInteger, ""},
              {"rate", AttrKind::kNumber, "", {0.5}},
              {"name", AttrKind::kString, "", {std::string("none")}}};
  return op;
}

class FakeCell final : public StateCell {
 public:
  explicit FakeCell(std::string name) : name_(std::move(name)) {}
  const std::string& name() const override { return name_; }
  std::vector<Array>& components() override { return components_; }

 private:
  std::string name_;
  std::vector<Array> components_;
};

inline ValueType vector_type(std::int64_t size, DType dtype = DType::kFloat32) {
  return {dtype, Shape{size}, {}};
}

// Examples of symbol 0 on axis 0.
inline ValueType batched_type(std::int64_t columns) {
  return {DType::kFloat32, Shape{kRows, columns}, {0, 1, 0}};
}

}  // namespace samegrad::testing
