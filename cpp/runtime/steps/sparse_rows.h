// Blocks of touched rows of sparse gradients: sums them, and runs the nodes of a pass on them. A
// block needs only a task's scratch. Arrays of the variable's size are read only by passes over all
// rows with operands that have all of them.
#pragma once

#include "runtime/execution_context.h"

namespace samegrad {

class SparseBlocks {
 public:
  // A pass through named rows alone, or through all.
  SparseBlocks(const Plan& plan, const SparseUpdate& step, SparseUpdateBinding& binding,
               SparsePassBinding& pass, ExecutionContext& context);

  // Some of them, and where they are.
  struct Rows {
    std::int64_t count;
    std::int64_t named;          // the number of the first named one among all of these
    std::int64_t* row;           // which of the variable
    const std::int64_t** begin;  // the places of each, up to those of the next
    const std::int64_t** end;
    std::byte* memory;  // of the slots
  };

  // Fills the registers with what is known with the numbers that this run has.
  std::span<LatticeValue> registers() const;
  // Named ones only? Set before anything below.
  bool sparse = true;

  std::int64_t count() const { return sparse ? binding_.named.count : binding_.rows; }
  std::int64_t rows_of_block() const { return sparse ? binding_.block_rows : binding_.most_rows; }
  // Finds the results of a pass over all rows that their nodes can write where they belong.
  void find_direct_results();
  // The first of those that it goes through that is not before a row.
  std::int64_t position_of(std::int64_t row) const;
  std::int64_t row_at(std::int64_t position) const { return sparse ? row_[position] : position; }
  // Rough counts of operations: of all, and of adding up the named rows.
  std::int64_t work() const {
    return count() * binding_.width * std::int64_t(4 * pass_.slots.size()) +
           (binding_.named.summed_at.empty() ? work_of_sums() : 0);
  }
  std::int64_t work_of_sums() const { return binding_.places * binding_.width * 4; }

  // A frame is open: memory for one block.
  Rows take_rows(Scratch& scratch) const;
  void take_at_once(Scratch& scratch) const;
  // At most a block's, from a position up to an end.
  void find(std::int64_t position, std::int64_t end, Rows& rows) const;
  void prefetch(const Rows& rows) const;
  void run(const Rows& rows, Scratch& scratch) const;
  // Adds up all named rows, for all passes.
  void store_sums() const;
  // The named row of this number: its index, and its sum over some examples. is_named() is true if
  // one of these examples names it for a sum. They are given by replica, unless they are a list.
  std::int64_t named_row(std::int64_t named) const { return row_[named]; }
  bool is_named(std::size_t s, TreeRange of, std::int64_t named) const;
  void sum_named(std::size_t s, TreeRange of, std::int64_t named, std::byte* to,
                 Scratch& scratch) const;
  // True if the operands of a sum are one list of examples: else they are its replicas'.
  bool is_list(std::size_t s) const { return context_.node(step_.sums[s].tree).joint; }
  // The memory of a value after the pass.
  const std::byte* at(Value value, const Rows& rows) const {
    return slot_at(*std::ranges::find(pass_.slots, value, &SparsePassBinding::PassOperand::value),
                   rows);
  }

 private:
  struct Places {
    const std::int64_t *begin, *end;
  };
  Places places_of(std::size_t s, TreeRange of, std::int64_t named) const;
  void sum_places(std::size_t s, TreeRange of, const Places& places, std::byte* to,
                  Scratch& scratch) const;

  std::byte* base(Value value) const { return context_.base(0, plan_.root[value]); }
  std::byte* slot_at(const SparsePassBinding::PassOperand& slot, const Rows& rows) const;
  bool is_direct(const SparsePassBinding::PassOperand& slot) const;
  std::span<const SparsePassBinding::PassOperand> whole_slots() const {
    return std::span(pass_.slots).subspan(pass_.pass.sums.size(), pass_.program.whole.size());
  }
  void gather(const Rows& rows) const;
  std::span<const SparsePassBinding::PassOperand> sum_slots() const {
    return std::span(pass_.slots).first(pass_.pass.sums.size());
  }
  std::int64_t row_bytes(std::size_t s) const;
  std::byte* summed_at(std::size_t s, std::int64_t named) const {
    return binding_.named.summed + binding_.named.summed_at[s] + named * row_bytes(s);
  }
  void take_sums(std::size_t s, const Rows& rows, std::byte* to) const;
  void sum(std::size_t s, const Rows& rows, std::byte* to, Scratch& scratch) const;
  void sum_replicas(std::size_t s, const NamedRange& replicas, std::byte* to,
                    Scratch& scratch) const;
  void run_node(NodeId index, const Rows& rows, Scratch& scratch) const;

  const Plan& plan_;
  const SparseUpdate& step_;
  SparseUpdateBinding& binding_;
  SparsePassBinding& pass_;
  ExecutionContext& context_;
  const std::int64_t *row_, *begin_, *place_;
};

}  // namespace samegrad
