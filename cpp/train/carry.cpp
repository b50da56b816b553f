#include "train/carry.h"

#include <algorithm>

#include "base/error.h"
#include "ir/placement.h"
#include "ops/as_type.h"

namespace samegrad {

Carry::Carry(const char* op_name, std::shared_ptr<GraphTrace> outer,
             const std::vector<Tensor>& variables)
    : op_name_(op_name), outer_(std::move(outer)), given_(variables.size()) {
  for (const Tensor& tensor : variables) add(outer_->lift(tensor));
}

void Carry::add(Value value) {
  initial_.push_back(value);
  placements_.push_back(outer_->program().placement(value));
}

std::vector<Tensor> Carry::add_to(BodyTrace& body) const {
  std::vector<Tensor> arguments;
  for (std::size_t i = 0; i < initial_.size(); ++i) {
    const Value value = body.add_argument(outer_->type(initial_[i]), placements_[i]);
    if (i < given_) {
      arguments.push_back(body.tensor(value));
    } else {
      body.variables().set_read(*written_[i - given_], value);
    }
  }
  return arguments;
}

bool Carry::join(BodyTrace& body, Values& returned, bool differs) {
  const std::size_t known = written_.size();
  for (const auto& variable : body.written()) {
    if (std::ranges::find(written_, variable) != written_.end()) continue;
    written_.push_back(variable);
    add(outer_->read(variable));
  }
  bool again = written_.size() > known;
  again = join_types(body, returned) || again;
  if (again) return true;
  for (const auto& variable : written_) returned.push_back(body.read(variable));
  for (std::size_t i = 0; i < placements_.size(); ++i) {
    const Placement after = differs ? Placement::kVarying : body.program().placement(returned[i]);
    const Placement either = joined(placements_[i], after);
    again = again || either != placements_[i];
    placements_[i] = either;
  }
  return again;
}

bool Carry::join_types(BodyTrace& body, Values& returned) {
  bool again = false;
  for (std::size_t i = 0; i < given_; ++i) {
    const ValueType before = outer_->type(initial_[i]), after = body.type(returned[i]);
    const auto either = outer_->joined_type(before, after);
    SG_CHECK_VALUE(either.has_value(), op_name_, "loop variable ", i,
                   " must keep its dtype and shape: it was ", to_string(before), " and became ",
                   to_string(after), ".");
    if (*either != before) {
      initial_[i] = as_type(*outer_, initial_[i], *either);
      placements_[i] = joined(placements_[i], outer_->program().placement(initial_[i]));
      again = true;
    } else {
      returned[i] = body.leave_as(returned[i], *either);
    }
  }
  return again;
}

void Carry::write(const Values& results) const {
  for (std::size_t i = 0; i < written_.size(); ++i) {
    outer_->write(written_[i], results[given_ + i]);
  }
}

}  // namespace samegrad
