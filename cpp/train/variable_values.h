// Values that variables have in a trace: the present ones, and those that were read.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "ir/graph.h"
#include "train/variable.h"

namespace samegrad {

class VariableValues {
 public:
  using Reads = std::map<const StateCell*, Values>;

  // Returns the present value; kNoValue if the trace does not know it.
  Value present(const StateCell& variable) const;
  // True if the present value is what the variable was read as last.
  bool is_read(const StateCell& variable) const;
  // Makes a value the present one.
  void set(const StateCell& variable, Value value) { present_[&variable] = value; }
  // Makes a value that is read the present one. It is a source of gradients.
  Value set_read(const StateCell& variable, Value value);
  // Adds a source of gradients.
  void add_read(const StateCell& variable, Value value) { reads_[&variable].push_back(value); }
  void add_read_once(const StateCell& variable, Value value);
  const Values& reads(const StateCell& variable) { return reads_[&variable]; }
  const Reads& reads() const { return reads_; }
  // Forgets the present values: variables are read anew.
  void forget() { present_.clear(); }
  // Forgets the values from `first` on.
  void forget_from(Value first);

  // Starts to count, and returns the number of reads so far.
  std::size_t count_reads();
  void count_read(const std::shared_ptr<Variable>& variable) {
    if (counts_) counted_.push_back(variable);
  }
  // The variables read since they were counted first, each as often as it was read.
  const std::vector<std::shared_ptr<Variable>>& counted() const { return counted_; }
  void end_count() { counted_.clear(); }

 private:
  std::map<const StateCell*, Value> present_;
  Reads reads_;
  bool counts_ = false;
  std::vector<std::shared_ptr<Variable>> counted_;
};

}  // namespace samegrad
