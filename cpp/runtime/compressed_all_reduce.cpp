// Sums of float32 that travel as bfloat16.
#include <algorithm>
#include <array>
#include <utility>

#include "kernels/table.h"
#include "runtime/world_sums.h"

namespace samegrad {

void WorldSums::put_as_bfloat16(std::byte* to, const std::byte* from, std::int64_t elements) const {
  constexpr std::int64_t kAtOnce = 1024;
  constexpr auto kWide = std::int64_t(sizeof(float)), kNarrow = kWide / 2;
  const CastKernel narrowed = kernels().cast(DType::kFloat32, DType::kBFloat16);
  alignas(64) std::array<std::byte, std::size_t(kAtOnce * kNarrow)> some;
  for (std::int64_t at = 0; at < elements; at += kAtOnce) {
    const std::int64_t n = std::min(kAtOnce, elements - at);
    narrowed(from + at * kWide, some.data(), n);
    put(to + at * kNarrow, some.data(), n * kNarrow);
  }
}

// Fills and takes large sums as float32, and sends them as bfloat16.
void WorldSums::start_as_bfloat16(const Bucket& bucket, const BucketFill& fill, Completion take) {
  Bucket narrow;
  for (const PackedSum& packed : bucket.numbers) {
    narrow.add(packed.narrow ? DType::kBFloat16 : packed.dtype, packed.elements, 0, *packed.tree);
  }
  const auto widen = [](const Bucket& from, const std::byte* x, const Bucket& to, std::byte* y) {
    for (std::size_t i = 0; i < from.numbers.size(); ++i) {
      const PackedSum &a = from.numbers[i], &b = to.numbers[i];
      if (a.dtype == b.dtype) {
        std::copy_n(x + a.offset, a.elements * std::int64_t(size_of(a.dtype)), y + b.offset);
      } else {
        kernels().cast(a.dtype, b.dtype)(x + a.offset, y + b.offset, a.elements);
      }
    }
  };
  const std::int64_t states = std::max<std::int64_t>(bucket.states_of(communicator_.rank()), 1);
  const std::size_t bytes = std::size_t(bucket.bytes * states);
  if (wide_.size() < bytes) wide_ = PooledBuffer(bytes);
  InFlightBucket flight{
      .bucket = narrow,
      .take = [this, widen, bucket, narrow, take = std::move(take)](const std::byte* sum) {
        const auto room = std::size_t(bucket.bytes);
        if (wide_.size() < room) wide_ = PooledBuffer(room);
        widen(narrow, sum, bucket, wide_.data());
        take(wide_.data());
      }};
  start_bucket(std::move(flight), [&](std::span<std::byte* const> states) {
    std::vector<std::byte*> wide;
    for (std::size_t i = 0; i < states.size(); ++i) {
      wide.push_back(wide_.data() + std::int64_t(i) * bucket.bytes);
    }
    const bool past_caches = std::exchange(past_caches_, false);
    fill(wide);
    past_caches_ = past_caches;
    for (std::size_t i = 0; i < states.size(); ++i) narrow_into(bucket, wide[i], narrow, states[i]);
  });
}

void WorldSums::narrow_into(const Bucket& bucket, const std::byte* from, const Bucket& narrow,
                            std::byte* state) const {
  for (std::size_t i = 0; i < bucket.numbers.size(); ++i) {
    const PackedSum &a = bucket.numbers[i], &b = narrow.numbers[i];
    if (a.narrow) {
      put_as_bfloat16(state + b.offset, from + a.offset, a.elements);
    } else {
      put(state + b.offset, from + a.offset, a.elements * std::int64_t(size_of(a.dtype)));
    }
  }
}

}  // namespace samegrad
