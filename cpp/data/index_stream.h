// The order in which a dataset's rows are read: plans describe it, streams walk along it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace samegrad {

inline constexpr std::int64_t kEndless = -1;

// Elements as numbers of rows, one number per column (a column per zipped source). In a batched
// stream an element has several rows and ends[i] is where it ends; otherwise each row is an
// element.
struct RowIndices {
  std::vector<std::int64_t> numbers;  // row after row
  std::vector<std::int64_t> ends;

  void clear() {
    numbers.clear();
    ends.clear();
  }
};

class IndexStream {
 public:
  virtual ~IndexStream() = default;
  // Appends up to `count` elements and returns how many: fewer only at the end.
  virtual std::int64_t read(std::int64_t count, RowIndices& to) = 0;
  // Passes over them.
  virtual std::int64_t skip(std::int64_t count);
};

// Immutable. All streams opened for the same epoch are equal, on every machine.
class IndexPlan {
 public:
  IndexPlan(int columns, bool batched) : columns_(columns), batched_(batched) {}
  virtual ~IndexPlan() = default;

  virtual std::unique_ptr<IndexStream> open(std::int64_t epoch) const = 0;
  // Elements of one pass, or kEndless.
  virtual std::int64_t size() const = 0;
  int columns() const { return columns_; }
  bool batched() const { return batched_; }

 private:
  int columns_;
  bool batched_;
};

using IndexPlanPtr = std::shared_ptr<const IndexPlan>;

// 0, 1, … count - 1 (kEndless: on and on).
IndexPlanPtr rows_in_order(std::int64_t count);

// A buffer holds the next `buffer` elements; element p of the output is the one in place
//   floor(u(p) * held / 2^63)
// of the `held` ones, where u(p) is row p of random_integers(key {seed, epoch}, 0, 2^63 - 1). The
// next element of the input takes the empty place; after the input's end the last one held does. So
// every buffer that holds the whole input gives the same permutation.
IndexPlanPtr shuffled(IndexPlanPtr input, std::int64_t buffer, std::uint64_t seed,
                      bool reshuffle_each_epoch);

// u(first) … u(first + count - 1) of the formula above.
std::vector<std::int64_t> shuffle_draws(std::uint64_t seed, std::int64_t epoch, std::int64_t first,
                                        std::int64_t count);

// Pass r of `count` is the input's epoch `epoch * count + r`, of endless ones `epoch * 2^32 + r`:
// ten epochs and one epoch of ten passes are the same.
IndexPlanPtr repeated(IndexPlanPtr input, std::int64_t count);

IndexPlanPtr taken(IndexPlanPtr input, std::int64_t count);    // kEndless: all
IndexPlanPtr skipped(IndexPlanPtr input, std::int64_t count);  // kEndless: all
// Elements index, index + count, index + 2 count, …
IndexPlanPtr sharded(IndexPlanPtr input, std::int64_t count, std::int64_t index);
// Their columns side by side, as long as the shortest.
IndexPlanPtr zipped(std::vector<IndexPlanPtr> inputs);
IndexPlanPtr batched(IndexPlanPtr input, std::int64_t batch_size, bool drop_remainder);

}  // namespace samegrad
