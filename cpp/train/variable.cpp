#include "train/variable.h"

#include "base/error.h"
#include "runtime/world.h"

namespace samegrad {
namespace {

PerReplica<Array> own_ones(PerReplica<Array> components, const std::vector<int>& processes) {
  if (processes.empty() || components.size() == 1) return components;
  const ReplicaRange own = communicator_of(processes).own();
  return {components.begin() + own.begin, components.begin() + own.end};
}

}  // namespace

Variable::Variable(std::string name, PerReplica<Array> components, std::vector<int> processes)
    : name_(std::move(name)),
      dtype_(components[0].dtype()),
      shape_(components[0].shape()),
      component_count_(components.size()),
      processes_(component_count_ > 1 ? std::move(processes) : std::vector<int>()),
      components_(own_ones(std::move(components), processes_)) {}

void Variable::set(PerReplica<Array> components) {
  SG_CHECK_VALUE(components.size() == component_count_, name_, "has ", component_count_,
                 " component(s): got ", components.size(), ".");
  for (const Array& array : components) {
    SG_CHECK_TYPE(array.dtype() == dtype(), name_, "holds ", name_of(dtype()), ": got ",
                  name_of(array.dtype()), "; convert the value with samegrad.cast.");
    SG_CHECK_VALUE(array.shape() == shape(), name_, "has shape ", to_string(shape()),
                   ": got a value of shape ", to_string(array.shape()), ".");
  }
  components_ = own_ones(std::move(components), processes_);
  ++version;
}

PerReplica<Array> Variable::components_of_world() {
  if (processes_.empty()) return components_;
  Communicator& world = communicator_of(processes_);
  world.check_fingerprints({{"call", "a read of the variable " + name_}});
  PerReplica<Array> all;
  std::vector<Message> sends, receives;
  const auto message = [](int rank, const Array& array) {
    return Message{rank, array.raw(), std::int64_t(array.bytes())};
  };
  for (int rank = 0; rank < world.size(); ++rank) {
    const ReplicaRange range = world.replicas_of(rank);
    for (int r = range.begin; r < range.end; ++r) {
      const bool own = rank == world.rank();
      all.push_back(own ? components_[std::size_t(r - range.begin)].copy() : Array(dtype_, shape_));
      if (!own) receives.push_back(message(rank, all.back()));
    }
    for (std::size_t c = 0; c < components_.size() && rank != world.rank(); ++c) {
      sends.push_back(message(rank, components_[c]));
    }
  }
  world.exchange(sends, receives);
  return all;
}

}  // namespace samegrad
