#include "tensor/buffer_pool.h"

#include <algorithm>
#include <utility>

namespace samegrad {
namespace {

constexpr std::size_t kSmallPool = std::size_t(64) << 20;  // that much may always be idle
constexpr std::size_t kSlack = std::size_t(1) << 20;
constexpr std::uint32_t kEpoch = 256;  // takes after which an old peak begins to be forgotten

// A buffer much larger than what is asked for would be missing where it is needed. Idle sizes of
// programs that take turns thus differ by a factor of two at least, and add up to twice the
// largest.
bool suits(const Buffer& buffer, std::size_t bytes) {
  return buffer.size() >= bytes && buffer.size() <= 2 * bytes + kSlack;
}

}  // namespace

BufferPool& BufferPool::instance() {
  static auto* pool = new BufferPool;
  return *pool;
}

std::unique_ptr<Buffer> BufferPool::PoolState::find(std::size_t bytes) {
  std::size_t best = idle.size();
  // Among buffers of equal size, the last one used is still in cache.
  for (std::size_t i = 0; i < idle.size(); ++i) {
    if (!suits(*idle[i], bytes)) continue;
    if (best == idle.size() || idle[i]->size() <= idle[best]->size()) best = i;
  }
  if (best == idle.size()) return nullptr;
  std::unique_ptr<Buffer> buffer = std::move(idle[best]);
  idle.erase(idle.begin() + std::ptrdiff_t(best));
  idle_bytes -= buffer->size();
  return buffer;
}

void BufferPool::PoolState::note_lease(std::size_t bytes) {
  leased_bytes += bytes;
  ++leases;
  if (++takes % kEpoch == 0) last_peak = std::exchange(peak, 0);
  peak = std::max(peak, leased_bytes);
}

std::size_t BufferPool::PoolState::limit() const {
  return std::max(kSmallPool, 2 * std::max(peak, last_peak));
}

std::unique_ptr<Buffer> BufferPool::take(std::size_t bytes) {
  {
    const auto state = state_.lock();
    // Room for all that may be given back, which must not fail.
    state->idle.reserve(state->idle.size() + state->leases + 1);
    if (std::unique_ptr<Buffer> buffer = state->find(bytes)) {
      state->note_lease(buffer->size());
      return buffer;
    }
  }
  auto buffer = std::make_unique<Buffer>(bytes);
  const auto state = state_.lock();
  state->idle.reserve(state->idle.size() + state->leases + 1);
  state->note_lease(buffer->size());
  return buffer;
}

void BufferPool::give(std::unique_ptr<Buffer> buffer) noexcept {
  const auto state = state_.lock();
  const std::size_t bytes = buffer->size();
  // A forked child may give back what its parent counted.
  state->leased_bytes -= std::min(state->leased_bytes, bytes);
  state->leases -= std::min<std::size_t>(state->leases, 1);
  if (state->idle.size() == state->idle.capacity()) return;
  state->idle.push_back(std::move(buffer));
  state->idle_bytes += bytes;
  std::size_t gone = 0;
  while (state->idle_bytes + state->leased_bytes > state->limit() && gone < state->idle.size()) {
    state->idle_bytes -= state->idle[gone++]->size();
  }
  state->idle.erase(state->idle.begin(), state->idle.begin() + std::ptrdiff_t(gone));
}

void BufferPool::reserve(std::size_t count, std::size_t bytes) {
  std::vector<PooledBuffer> leased;
  for (std::size_t i = 0; i < count; ++i) leased.emplace_back(bytes);
}

std::int64_t BufferPool::idle_bytes() {
  return std::int64_t(state_.lock()->idle_bytes);
}

}  // namespace samegrad
