// Slots of the variables that a graph reads or writes.
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "ir/graph.h"
#include "train/variable.h"

namespace samegrad {

class VariableSlots {
 public:
  struct Slot {
    std::shared_ptr<Variable> variable;
    bool written = false;
  };

  // Returns the variable's slot, and true if it is new.
  std::pair<SlotId, bool> add(const std::shared_ptr<Variable>& variable) {
    const auto [at, is_new] = ids_.try_emplace(variable.get(), slots_.next_id());
    if (is_new) slots_.push_back({variable});
    return {at->second, is_new};
  }
  void mark_written(SlotId slot) { slots_[slot].written = true; }
  const IndexedVector<SlotId, Slot>& all() const { return slots_; }
  std::vector<std::shared_ptr<Variable>> written() const {
    std::vector<std::shared_ptr<Variable>> variables;
    for (const Slot& slot : slots_) {
      if (slot.written) variables.push_back(slot.variable);
    }
    return variables;
  }
  std::vector<std::shared_ptr<StateCell>> cells() const {
    std::vector<std::shared_ptr<StateCell>> cells;
    for (const Slot& slot : slots_) cells.push_back(slot.variable);
    return cells;
  }

 private:
  IndexedVector<SlotId, Slot> slots_;
  std::unordered_map<const Variable*, SlotId> ids_;
};

}  // namespace samegrad
