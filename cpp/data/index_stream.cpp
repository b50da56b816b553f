#include "data/index_stream.h"

#include <algorithm>
#include <limits>
#include <new>

#include "base/error.h"
#include "base/rounding.h"

namespace samegrad {

std::int64_t IndexStream::skip(std::int64_t count) {
  constexpr std::int64_t kAtOnce = 4096;
  RowIndices passed;
  std::int64_t done = 0;
  while (done < count) {
    passed.clear();
    const std::int64_t wanted = std::min(kAtOnce, count - done);
    const std::int64_t got = read(wanted, passed);
    done += got;
    if (got < wanted) break;
  }
  return done;
}

namespace {

// The smaller size, kEndless being the largest.
std::int64_t smaller(std::int64_t a, std::int64_t b) {
  if (a == kEndless) return b;
  return b == kEndless ? a : std::min(a, b);
}

// a * b, at most the largest number: a position beyond every end.
std::int64_t saturated_product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  const bool overflow = __builtin_mul_overflow(a, b, &product);
  return overflow ? std::numeric_limits<std::int64_t>::max() : product;
}

void check_unbatched(const IndexPlan& input, const char* op_name) {
  SG_CHECK_VALUE(!input.batched(), op_name,
                 "needs single elements: got batches; call it before batch().");
}

// Asks for the memory of very many numbers before it is filled: what cannot be had takes none.
void make_room(std::vector<std::int64_t>& numbers, std::int64_t more) {
  constexpr std::int64_t kMany = std::int64_t(1) << 20;
  if (more < kMany) return;
  const std::size_t wanted = numbers.size() + std::size_t(more);
  try {
    if (wanted <= numbers.max_size()) return numbers.reserve(wanted);
  } catch (const std::bad_alloc&) {  // as too many
  }
  fail(ErrorKind::kMemory, "Dataset",
       "there is no memory for the positions of one batch or shuffle ", "buffer: got ", more,
       " elements; use a smaller one.");
}

class RowsStream final : public IndexStream {
 public:
  explicit RowsStream(std::int64_t count) : count_(count) {}

  std::int64_t read(std::int64_t count, RowIndices& to) override {
    const std::int64_t begin = next_;
    const std::int64_t got = skip(count);
    make_room(to.numbers, got);
    for (std::int64_t i = 0; i < got; ++i) to.numbers.push_back(begin + i);
    return got;
  }
  std::int64_t skip(std::int64_t count) override {
    const std::int64_t got = count_ == kEndless ? count : std::min(count, count_ - next_);
    next_ += got;
    return got;
  }

 private:
  std::int64_t count_;
  std::int64_t next_ = 0;
};

class RowsPlan final : public IndexPlan {
 public:
  explicit RowsPlan(std::int64_t count) : IndexPlan(1, false), count_(count) {}
  std::unique_ptr<IndexStream> open(std::int64_t) const override {
    return std::make_unique<RowsStream>(count_);
  }
  std::int64_t size() const override { return count_; }

 private:
  std::int64_t count_;
};

// Opens its input once per pass.
class RepeatStream final : public IndexStream {
 public:
  RepeatStream(IndexPlanPtr input, std::int64_t count, std::int64_t epoch)
      : input_(std::move(input)), count_(count) {
    first_epoch_ = count == kEndless ? epoch << 32 : epoch * count;
  }

  std::int64_t read(std::int64_t count, RowIndices& to) override {
    return walk(count, [&](std::int64_t wanted) { return pass_->read(wanted, to); });
  }
  std::int64_t skip(std::int64_t count) override {
    std::int64_t done = 0;
    const std::int64_t size = input_->size();
    if (size > 0) {
      if (pass_) done = step(std::min(count, size - within_));
      std::int64_t whole = (count - done) / size;  // passes nobody needs to open
      if (!pass_ && whole > 0) {
        if (count_ != kEndless) whole = std::min(whole, count_ - passes_);
        passes_ += whole;
        done += whole * size;
      }
    }
    return done + walk(count - done, [&](std::int64_t wanted) { return pass_->skip(wanted); });
  }

 private:
  // Skips inside the open pass, and closes it at its end.
  std::int64_t step(std::int64_t count) {
    const std::int64_t got = pass_->skip(count);
    within_ += got;
    if (within_ == input_->size()) close_pass();
    return got;
  }
  void close_pass() {
    pass_.reset();
    within_ = 0;
    ++passes_;
  }
  template <class Advance>
  std::int64_t walk(std::int64_t count, Advance advance) {
    std::int64_t done = 0;
    while (done < count) {
      if (!pass_) {
        if (passes_ == count_ || empty_) break;
        pass_ = input_->open(first_epoch_ + passes_);
      }
      const std::int64_t got = advance(count - done);
      done += got;
      within_ += got;
      if (done < count) {
        empty_ = within_ == 0;  // repeating nothing for ever would never return
        close_pass();
      }
    }
    return done;
  }

  IndexPlanPtr input_;
  std::int64_t count_;
  std::int64_t first_epoch_;
  std::int64_t passes_ = 0;
  std::int64_t within_ = 0;
  std::unique_ptr<IndexStream> pass_;
  bool empty_ = false;
};

class RepeatPlan final : public IndexPlan {
 public:
  RepeatPlan(IndexPlanPtr input, std::int64_t count)
      : IndexPlan(input->columns(), input->batched()), input_(std::move(input)), count_(count) {}
  std::unique_ptr<IndexStream> open(std::int64_t epoch) const override {
    return std::make_unique<RepeatStream>(input_, count_, epoch);
  }
  std::int64_t size() const override {
    const std::int64_t size = input_->size();
    if (size == 0 || count_ == 0) return 0;
    if (size == kEndless || count_ == kEndless) return kEndless;
    return saturated_product(size, count_);
  }

 private:
  IndexPlanPtr input_;
  std::int64_t count_;
};

// Elements [begin, end) of the input.
class RangeStream final : public IndexStream {
 public:
  RangeStream(std::unique_ptr<IndexStream> input, std::int64_t begin, std::int64_t end)
      : input_(std::move(input)), begin_(begin), left_(end - begin) {}

  std::int64_t read(std::int64_t count, RowIndices& to) override {
    start();
    return left_ > 0 ? count_off(input_->read(std::min(count, left_), to)) : 0;
  }
  std::int64_t skip(std::int64_t count) override {
    start();
    return left_ > 0 ? count_off(input_->skip(std::min(count, left_))) : 0;
  }

 private:
  void start() {
    if (begin_ > 0) input_->skip(begin_);
    begin_ = 0;
  }
  std::int64_t count_off(std::int64_t got) {
    left_ -= got;
    return got;
  }

  std::unique_ptr<IndexStream> input_;
  std::int64_t begin_, left_;
};

class RangePlan final : public IndexPlan {
 public:
  RangePlan(IndexPlanPtr input, std::int64_t begin, std::int64_t end)
      : IndexPlan(input->columns(), input->batched()),
        input_(std::move(input)),
        begin_(begin),
        end_(end) {}
  std::unique_ptr<IndexStream> open(std::int64_t epoch) const override {
    return std::make_unique<RangeStream>(input_->open(epoch), begin_, end_);
  }
  std::int64_t size() const override {
    const bool open_end = end_ == std::numeric_limits<std::int64_t>::max();
    const std::int64_t end = smaller(input_->size(), open_end ? kEndless : end_);
    return end == kEndless ? kEndless : std::max<std::int64_t>(0, end - begin_);
  }

 private:
  IndexPlanPtr input_;
  std::int64_t begin_, end_;
};

class ShardStream final : public IndexStream {
 public:
  ShardStream(std::unique_ptr<IndexStream> input, std::int64_t count, std::int64_t index)
      : input_(std::move(input)), count_(count), before_(index) {}

  std::int64_t read(std::int64_t count, RowIndices& to) override {
    std::int64_t done = 0;
    while (done < count && input_->skip(before_) == before_ && input_->read(1, to) == 1) {
      before_ = count_ - 1;
      ++done;
    }
    return done;
  }

 private:
  std::unique_ptr<IndexStream> input_;
  std::int64_t count_, before_;
};

class ShardPlan final : public IndexPlan {
 public:
  ShardPlan(IndexPlanPtr input, std::int64_t count, std::int64_t index)
      : IndexPlan(input->columns(), input->batched()),
        input_(std::move(input)),
        count_(count),
        index_(index) {}
  std::unique_ptr<IndexStream> open(std::int64_t epoch) const override {
    return std::make_unique<ShardStream>(input_->open(epoch), count_, index_);
  }
  std::int64_t size() const override {
    const std::int64_t size = input_->size();
    return size == kEndless ? kEndless
                            : divide_up(std::max<std::int64_t>(size - index_, 0), count_);
  }

 private:
  IndexPlanPtr input_;
  std::int64_t count_, index_;
};

class ZipStream final : public IndexStream {
 public:
  ZipStream(std::vector<std::unique_ptr<IndexStream>> inputs, std::vector<int> columns)
      : inputs_(std::move(inputs)), columns_(std::move(columns)) {}

  std::int64_t read(std::int64_t count, RowIndices& to) override {
    parts_.resize(inputs_.size());
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      parts_[i].clear();
      count = inputs_[i]->read(count, parts_[i]);
    }
    for (std::int64_t row = 0; row < count; ++row) {
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        const auto from = parts_[i].numbers.begin() + row * columns_[i];
        to.numbers.insert(to.numbers.end(), from, from + columns_[i]);
      }
    }
    return count;
  }
  std::int64_t skip(std::int64_t count) override {
    for (const auto& input : inputs_) count = input->skip(count);
    return count;
  }

 private:
  std::vector<std::unique_ptr<IndexStream>> inputs_;
  std::vector<int> columns_;
  std::vector<RowIndices> parts_;
};

int sum_of_columns(const std::vector<IndexPlanPtr>& inputs) {
  int columns = 0;
  for (const auto& input : inputs) columns += input->columns();
  return columns;
}

class ZipPlan final : public IndexPlan {
 public:
  explicit ZipPlan(std::vector<IndexPlanPtr> inputs)
      : IndexPlan(sum_of_columns(inputs), false), inputs_(std::move(inputs)) {}
  std::unique_ptr<IndexStream> open(std::int64_t epoch) const override {
    std::vector<std::unique_ptr<IndexStream>> streams;
    std::vector<int> columns;
    for (const auto& input : inputs_) {
      streams.push_back(input->open(epoch));
      columns.push_back(input->columns());
    }
    return std::make_unique<ZipStream>(std::move(streams), std::move(columns));
  }
  std::int64_t size() const override {
    std::int64_t size = kEndless;
    for (const auto& input : inputs_) size = smaller(size, input->size());
    return size;
  }

 private:
  std::vector<IndexPlanPtr> inputs_;
};

class BatchStream final : public IndexStream {
 public:
  BatchStream(std::unique_ptr<IndexStream> input, int columns, std::int64_t batch_size, bool drop)
      : input_(std::move(input)), columns_(columns), batch_size_(batch_size), drop_(drop) {}

  std::int64_t read(std::int64_t count, RowIndices& to) override {
    for (std::int64_t done = 0; done < count; ++done) {
      const std::size_t before = to.numbers.size();
      const std::int64_t got = input_->read(batch_size_, to);
      if (got == 0 || (got < batch_size_ && drop_)) {
        to.numbers.resize(before);
        return done;
      }
      to.ends.push_back(std::int64_t(to.numbers.size()) / columns_);
    }
    return count;
  }
  std::int64_t skip(std::int64_t count) override {
    const std::int64_t got = input_->skip(saturated_product(count, batch_size_));
    return got / batch_size_ + (got % batch_size_ != 0 && !drop_);
  }

 private:
  std::unique_ptr<IndexStream> input_;
  int columns_;
  std::int64_t batch_size_;
  bool drop_;
};

class BatchPlan final : public IndexPlan {
 public:
  BatchPlan(IndexPlanPtr input, std::int64_t batch_size, bool drop)
      : IndexPlan(input->columns(), true),
        input_(std::move(input)),
        batch_size_(batch_size),
        drop_(drop) {}
  std::unique_ptr<IndexStream> open(std::int64_t epoch) const override {
    return std::make_unique<BatchStream>(input_->open(epoch), columns(), batch_size_, drop_);
  }
  std::int64_t size() const override {
    const std::int64_t size = input_->size();
    if (size == kEndless) return kEndless;
    return size / batch_size_ + (size % batch_size_ != 0 && !drop_);
  }

 private:
  IndexPlanPtr input_;
  std::int64_t batch_size_;
  bool drop_;
};

}  // namespace

IndexPlanPtr rows_in_order(std::int64_t count) {
  SG_CHECK_VALUE(count >= kEndless, "Dataset", "the number of rows must be at least 0: got ", count,
                 ".");
  return std::make_shared<RowsPlan>(count);
}

IndexPlanPtr repeated(IndexPlanPtr input, std::int64_t count) {
  return std::make_shared<RepeatPlan>(std::move(input), std::max(count, kEndless));
}

IndexPlanPtr taken(IndexPlanPtr input, std::int64_t count) {
  const std::int64_t end = count < 0 ? std::numeric_limits<std::int64_t>::max() : count;
  return std::make_shared<RangePlan>(std::move(input), 0, end);
}

IndexPlanPtr skipped(IndexPlanPtr input, std::int64_t count) {
  constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  if (count < 0) return taken(std::move(input), 0);
  return std::make_shared<RangePlan>(std::move(input), count, kEnd);
}

IndexPlanPtr sharded(IndexPlanPtr input, std::int64_t count, std::int64_t index) {
  SG_CHECK_VALUE(count >= 1 && index >= 0 && index < count, "Dataset.shard",
                 "the index must be one of 0 … num_shards - 1: got num_shards=", count,
                 " and index=", index, ".");
  return std::make_shared<ShardPlan>(std::move(input), count, index);
}

IndexPlanPtr zipped(std::vector<IndexPlanPtr> inputs) {
  SG_CHECK_VALUE(!inputs.empty(), "Dataset.zip", "at least one dataset is needed: got none.");
  for (const auto& input : inputs) check_unbatched(*input, "Dataset.zip");
  return std::make_shared<ZipPlan>(std::move(inputs));
}

IndexPlanPtr batched(IndexPlanPtr input, std::int64_t batch_size, bool drop_remainder) {
  check_unbatched(*input, "Dataset.batch");
  SG_CHECK_VALUE(batch_size >= 1, "Dataset.batch", "batch_size must be at least 1: got ",
                 batch_size, ".");
  return std::make_shared<BatchPlan>(std::move(input), batch_size, drop_remainder);
}

}  // namespace samegrad
