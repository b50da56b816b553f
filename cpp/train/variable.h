// Variables: state that steps read and write.
#pragma once

#include <memory>
#include <string>

#include "ir/graph.h"

namespace samegrad {

// A variable has one array, shared by all replicas of the process, or one per replica
// (synchronise-on-read).
class Variable final : public StateCell {
 public:
  Variable(std::string name, std::vector<Array> components)
      : name_(std::move(name)), components_(std::move(components)) {}

  const std::string& name() const override { return name_; }
  std::vector<Array>& components() override { return components_; }

  DType dtype() const { return components_[0].dtype(); }
  const Shape& shape() const { return components_[0].shape(); }
  // TypeError or ValueError unless dtype and shape fit; the memory is shared, later steps replace
  // it rather than write into it while somebody else holds it.
  void set(std::vector<Array> components);

 private:
  std::string name_;
  std::vector<Array> components_;
};

}  // namespace samegrad
