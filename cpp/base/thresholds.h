// The thresholds that choose among plans of equal bits; what an order of addition depends on stands
// in base/order.h and cannot be forced.
//
// SAMEGRAD_THRESHOLDS=1 makes all of them 1, SAMEGRAD_THRESHOLDS="inner_loop_bytes=1,tile_bytes=1"
// some: so that small programs take the paths of big ones, and big ones those of small ones.
#pragma once

#include <cstdint>
#include <string_view>

namespace samegrad {

struct Thresholds {
  // ---- what a program becomes ----
  std::int64_t folded_elements = 1024;       // larger results of constants are computed each time
  std::int64_t fused_operations = 48;        // of one fused loop
  std::int64_t deferred_bytes = 32 << 10;    // larger tree results may be deferred …
  std::int64_t deferred_rows = 16;           // … if an example brings fewer rows than this
  std::int64_t loop_weight_bytes = 1 << 20;  // more weights in a loop would not stay in L2, so …
  std::int64_t cut_weight_bytes = 64 << 10;  // … products with at least so many leave it
  std::int64_t loop_tile_examples = 4;  // … if these bytes are more than a tile of examples moves
  std::int64_t inner_loop_bytes = 24 << 10;  // larger values of an example get an inner loop …
  std::int64_t inner_loop_stretch = 8;       // … if they are alive for at most so many operations
  // ---- tiles and chunks ----
  std::int64_t tile_bytes = 256 << 10;  // of all live values: about half of a typical L2
  std::int64_t tile_examples = 256;     // in a tile at most
  std::int64_t parts_per_thread = 4;    // enough to even out, few enough to keep partial sums small
  std::int64_t fused_block = 512;       // elements: a dozen registers fit into L1
  std::int64_t fused_row = 16 << 10;  // elements: longer rows do not stay in L2 with their results
  std::int64_t fused_piece = 16 << 10;           // elements that a thread takes at a time
  std::int64_t tree_block_bytes = 16 << 10;      // of a state: it stays in L1 through the tree
  std::int64_t product_block_bytes = 512 << 10;  // of a product's: it and its operands stay in L2
  std::int64_t product_block_columns = 1024;     // wide enough for what goes row by row after it
  std::int64_t product_subtree_rows = 512;       // of operands that are packed at a time: they, too
  std::int64_t all_reduce_block = 4096;          // elements: the stack of partial sums stays in L1
  // ---- from where on a second thread is worth its while ----
  std::int64_t parallel_loop_work = 200'000;        // operations of a loop over examples
  std::int64_t parallel_operation_bytes = 1 << 20;  // of an operation that has all rows
  std::int64_t parallel_replica_bytes = 64 << 10;   // of an operand, to run replicas side by side
  std::int64_t parallel_fused_elements = 64 << 10;
  std::int64_t parallel_product_work = 1 << 20;  // multiplications
  std::int64_t parallel_tree_work = 1 << 20;     // operations of a reduction of all rows
  std::int64_t parallel_all_reduce_elements = 64 << 10;
};

// Read once; ValueError for a name or value that makes no sense.
const Thresholds& thresholds();

// The same for a text as SAMEGRAD_THRESHOLDS has it; "" changes nothing.
Thresholds thresholds_from(std::string_view text);

}  // namespace samegrad
