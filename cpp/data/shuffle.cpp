#include <algorithm>

#include "base/error.h"
#include "data/index_stream.h"
#include "kernels/table.h"

namespace samegrad {
namespace {

void draw_rows(RandomKey key, std::int64_t first, std::int64_t count, std::int64_t* to) {
  kernels().random_integers(DType::kInt64)(key, first, count, 1, 0, INT64_MAX, to);
}

// u(0), u(1), …, drawn many at once.
class UniformSamples {
 public:
  explicit UniformSamples(RandomKey key) : key_(key) {}

  std::uint64_t next() {
    if (used_ == kAtOnce) {
      draw_rows(key_, first_, kAtOnce, drawn_);
      first_ += kAtOnce;
      used_ = 0;
    }
    return static_cast<std::uint64_t>(drawn_[used_++]);
  }

 private:
  static constexpr int kAtOnce = 512;
  RandomKey key_;
  std::int64_t first_ = 0;
  int used_ = kAtOnce;
  std::int64_t drawn_[kAtOnce];
};

class ShuffleStream final : public IndexStream {
 public:
  ShuffleStream(std::unique_ptr<IndexStream> input, int columns, std::int64_t buffer, RandomKey key)
      : input_(std::move(input)),
        columns_(static_cast<std::size_t>(columns)),
        buffer_(buffer),
        draws_(key) {}

  std::int64_t read(std::int64_t count, RowIndices& to) override {
    return draw(count, [&](const std::int64_t* element) {
      to.numbers.insert(to.numbers.end(), element, element + columns_);
    });
  }
  std::int64_t skip(std::int64_t count) override {
    return draw(count, [](const std::int64_t*) {});
  }

 private:
  template <class Give>
  std::int64_t draw(std::int64_t count, Give give) {
    if (!filled_) {
      held_ = static_cast<std::uint64_t>(input_->read(buffer_, slots_));
      filled_ = true;
    }
    std::int64_t done = 0;
    for (; done < count && held_ > 0; ++done) {
      const auto product = static_cast<unsigned __int128>(draws_.next()) * held_;
      std::int64_t* slot = place(static_cast<std::uint64_t>(product >> 63));
      give(slot);
      const std::int64_t* next = next_of_input();
      if (!next) next = place(--held_);
      std::copy_n(next, columns_, slot);
    }
    return done;
  }
  std::int64_t* place(std::uint64_t index) { return slots_.numbers.data() + index * columns_; }
  // The input's next element, or null after its end.
  const std::int64_t* next_of_input() {
    constexpr std::int64_t kAtOnce = 256;
    if (used_ == ahead_.numbers.size()) {
      if (input_ended_) return nullptr;
      ahead_.clear();
      used_ = 0;
      input_ended_ = input_->read(kAtOnce, ahead_) < kAtOnce;
      if (ahead_.numbers.empty()) return nullptr;
    }
    used_ += columns_;
    return ahead_.numbers.data() + used_ - columns_;
  }

  std::unique_ptr<IndexStream> input_;
  std::size_t columns_;
  std::int64_t buffer_;
  UniformSamples draws_;
  bool filled_ = false, input_ended_ = false;
  RowIndices slots_;
  std::uint64_t held_ = 0;
  RowIndices ahead_;  // read, but not in a slot yet
  std::size_t used_ = 0;
};

class ShufflePlan final : public IndexPlan {
 public:
  ShufflePlan(IndexPlanPtr input, std::int64_t buffer, std::uint64_t seed, bool reshuffle)
      : IndexPlan(input->columns(), false),
        input_(std::move(input)),
        buffer_(buffer),
        seed_(seed),
        reshuffle_(reshuffle) {}
  std::unique_ptr<IndexStream> open(std::int64_t epoch) const override {
    const RandomKey key{seed_, reshuffle_ ? static_cast<std::uint64_t>(epoch) : 0};
    return std::make_unique<ShuffleStream>(input_->open(epoch), columns(), buffer_, key);
  }
  std::int64_t size() const override { return input_->size(); }

 private:
  IndexPlanPtr input_;
  std::int64_t buffer_;
  std::uint64_t seed_;
  bool reshuffle_;
};

}  // namespace

std::vector<std::int64_t> shuffle_draws(std::uint64_t seed, std::int64_t epoch, std::int64_t first,
                                        std::int64_t count) {
  std::vector<std::int64_t> draws(static_cast<std::size_t>(count));
  draw_rows({seed, static_cast<std::uint64_t>(epoch)}, first, count, draws.data());
  return draws;
}

IndexPlanPtr shuffled(IndexPlanPtr input, std::int64_t buffer, std::uint64_t seed,
                      bool reshuffle_each_epoch) {
  SG_CHECK_VALUE(!input->batched(), "Dataset.shuffle", "needs single elements: got batches.");
  SG_CHECK_VALUE(buffer >= 1, "Dataset.shuffle", "buffer_size must be at least 1: got ", buffer,
                 ".");
  return std::make_shared<ShufflePlan>(std::move(input), buffer, seed, reshuffle_each_epoch);
}

}  // namespace samegrad
