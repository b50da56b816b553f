// The thresholds that choose among plans of equal bits; what a reduction order depends on is
// in base/reduction_order.h and cannot be forced.
//
// Those that are facts of the machine follow from its description (base/machine.h): they are given
// as shares of its caches. The others have the same value everywhere, for the reason beside them.
//
// SAMEGRAD_THRESHOLDS=1 makes all of them 1, SAMEGRAD_THRESHOLDS="inner_loop_bytes=1,tile_bytes=1"
// some: so that small programs take the paths of big ones, and big ones those of small ones.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/machine.h"

namespace samegrad {

struct Thresholds {
  // ---- what a program becomes ----
  std::int64_t folded_elements = 1024;   // larger results of constants are computed each time
  std::int64_t fused_operations = 48;    // of one fused loop: its code stays small
  std::int64_t recomputed_bytes = 4096;  // of an example: smaller values pass from loop to loop
  std::int64_t deferred_bytes;           // L1: larger tree results leave their loop …
  std::int64_t deferred_examples = 4;    // … if so many examples bring fewer bytes than they have
  std::int64_t joined_examples = 32;     // … and are one step with their update if these do
  std::int64_t loop_weight_bytes;        // L2: more weights in a loop would not stay there, so …
  std::int64_t cut_weight_bytes;         // L2 / 16: … products with at least so many leave it
  std::int64_t loop_tile_examples = 4;  // … if these bytes are more than a tile of examples moves
  std::int64_t inner_loop_bytes;        // 3/4 L1: larger values of an example get an inner loop …
  std::int64_t inner_loop_stretch = 8;  // … if they are alive for at most so many operations
  // ---- tiles and chunks ----
  std::int64_t tile_bytes;            // L2 / 4: of all values of a tile, beside weights and sums
  std::int64_t far_tile_bytes;        // L3 / 8: the same, where weights do not stay in L2
  std::int64_t tile_examples = 256;   // in a tile at most: by then a call costs nothing
  std::int64_t parts_per_thread = 4;  // enough to even out, few enough to keep partial sums small
  // Elements, L1 / 128: a dozen registers of floats fit beside what the processor fetches ahead of
  // several arrays; with twice as many, updates of arrays in memory take 1.4 times as long.
  std::int64_t fused_block;
  std::int64_t fused_row = 16 << 10;  // elements: longer rows do not stay in L2 with their results
  std::int64_t fused_piece;           // elements that a thread takes at a time, L2 / 64
  std::int64_t tree_block_bytes;      // L1 / 2: of a state, which stays there through the tree
  std::int64_t product_block_bytes;   // L2 / 4: of a product's: it and what updates it stay there
  std::int64_t product_block_columns = 1024;  // wide enough for what goes row by row after it
  std::int64_t product_packed_bytes;          // L3 / 2: of operands that all blocks share
  // L3 / 16: a larger matrix comes from memory, as it is read once in a step, among much else; it
  // is fetched beside the work on what came before, which costs more than it gives where L3 has it.
  std::int64_t far_weight_bytes;
  std::int64_t product_subtree_rows = 512;  // of operands that are packed at a time: long chains
  std::int64_t all_reduce_block;            // elements, L1 / 8: the stack of partial sums fits
  std::int64_t common_state_bytes = 256 << 10;  // of a variable that ranks of a machine have once
  // ---- from where on a second thread is worth its while: handing on work costs up to 5 µs ----
  std::int64_t parallel_loop_work = 200'000;          // operations of a loop over examples
  std::int64_t parallel_operation_bytes = 512 << 10;  // of an operation
  std::int64_t parallel_replica_bytes = 64 << 10;     // of an operand, to run replicas side by side
  std::int64_t parallel_product_work = 1 << 20;       // operations, at the rate of products
  std::int64_t parallel_tree_work = 1 << 20;          // operations of a reduction of all rows
  std::int64_t parallel_all_reduce_bytes = 256 << 10;

  explicit Thresholds(const Machine& machine);
};

// Read once; ValueError for a name or value that makes no sense.
const Thresholds& thresholds();

// The thresholds of a machine, changed by a text as SAMEGRAD_THRESHOLDS has it; "" changes nothing.
Thresholds thresholds_from(std::string_view text, const Machine& machine);

}  // namespace samegrad
