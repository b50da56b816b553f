// Variables: state that steps read and write.
#pragma once

#include <memory>
#include <string>

#include "runtime/executor.h"

namespace samegrad {

// A variable has one array, shared by all replicas of the process, or one per replica
// (synchronise-on-read).
class Variable final : public StateCell {
 public:
  // `processes`: which components each process keeps (Program::processes); empty: this one all.
  Variable(std::string name, PerReplica<Array> components, std::vector<int> processes = {});

  const std::string& name() const { return name_; }
  // To be used under a StateLock.
  PerReplica<Array>& components() override { return components_; }

  // These never change.
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::size_t component_count() const { return component_count_; }
  const std::vector<int>& processes() const { return processes_; }
  // The components of all processes, which all ask for them at the same time.
  PerReplica<Array> components_of_world();
  // TypeError or ValueError unless dtype and shape fit. The memory is shared: later steps replace
  // an array that has other owners rather than write into it.
  void set(PerReplica<Array> components);

 private:
  std::string name_;
  DType dtype_;
  Shape shape_;
  std::size_t component_count_;  // of all processes
  std::vector<int> processes_;
  PerReplica<Array> components_;  // of this one
};

}  // namespace samegrad
