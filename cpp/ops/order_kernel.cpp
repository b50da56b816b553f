#include "ops/order_kernel.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/dtype.h"
#include "ops/order.h"

namespace samegrad {
namespace {

// An element as an unsigned number of the same order, and where it was.
template <class Key>
struct Entry {
  Key key;
  std::uint32_t place;

  bool operator<(const Entry& other) const {
    return key < other.key || (key == other.key && place < other.place);
  }
};

template <class T>
BitsOf<T> key_of(T x, bool descending) {
  using Key = BitsOf<T>;
  constexpr Key kSign = Key(Key(1) << (8 * sizeof(Key) - 1));
  if (x != x) return std::numeric_limits<Key>::max();
  Key key;
  if (is_floating(kDTypeOf<T>) && x == T(0)) x = T(0);  // of either sign
  std::memcpy(&key, &x, sizeof(key));
  if (is_floating(kDTypeOf<T>)) key = key & kSign ? Key(~key) : Key(key | kSign);
  if (kIsOneOf<T, kInts>) key ^= kSign;
  return descending ? Key(~key) : key;
}

// From the lowest byte to the highest, each pass keeping the order of equals; the result is in one
// of the two arrays.
template <class Key>
Entry<Key>* sort_by_bytes(Entry<Key>* x, Entry<Key>* y, std::int64_t n) {
  std::int64_t starts[sizeof(Key)][256] = {};
  const auto digit = [](Key key, std::size_t byte) { return std::size_t(key >> 8 * byte & 255u); };
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::size_t b = 0; b < sizeof(Key); ++b) ++starts[b][digit(x[i].key, b)];
  }
  for (std::size_t b = 0; b < sizeof(Key); ++b) {
    if (starts[b][digit(x[0].key, b)] == n) continue;  // all alike
    std::int64_t sum = 0;
    for (std::int64_t& start : starts[b]) start = std::exchange(sum, sum + start);
    for (std::int64_t i = 0; i < n; ++i) y[starts[b][digit(x[i].key, b)]++] = x[i];
    std::swap(x, y);
  }
  return x;
}

// Calls choose(entries, spare, n), which returns the entries in order, for each line along an axis
// and writes the places of the first `count`.
template <class T, class Choose>
void order_lines(const KernelArgs& args, int axis, bool descending, const Choose& choose) {
  using Key = BitsOf<T>;
  const View &x = args.in[0], &y = args.out[0];
  const std::int64_t n = x.shape[axis], count = y.shape[axis];
  const std::int64_t outer = x.shape.size(0, axis);
  const std::int64_t width = x.shape.size(axis + 1, x.shape.rank());
  if (y.size() == 0) return;
  const Scratch::Frame frame(args.scratch);
  const auto take = [&] {
    return static_cast<Entry<Key>*>(args.scratch.take(std::size_t(n) * sizeof(Entry<Key>)));
  };
  Entry<Key>*const entries = take(), *const spare = take();
  for (std::int64_t line = 0; line < outer * width; ++line) {
    const std::int64_t o = line / width, c = line % width;
    const T* from = x.as<T>() + o * n * width + c;
    for (std::int64_t i = 0; i < n; ++i) {
      entries[i] = {key_of(from[i * width], descending), std::uint32_t(i)};
    }
    const Entry<Key>* ordered = choose(entries, spare, n);
    std::int32_t* to = y.as<std::int32_t>() + o * count * width + c;
    for (std::int64_t i = 0; i < count; ++i) to[i * width] = std::int32_t(ordered[i].place);
  }
}

constexpr auto sorted = [](auto* entries, auto* spare, std::int64_t n) {
  constexpr std::int64_t kShort = 256;  // passes over all bytes do not pay
  if (n > kShort) return sort_by_bytes(entries, spare, n);
  std::sort(entries, entries + n);
  return entries;
};

template <class T>
void search_lines(const KernelArgs& args, bool right) {
  const View &s = args.in[0], &v = args.in[1];
  const std::int64_t n = s.shape[s.shape.rank() - 1];
  const std::int64_t lines = s.shape.size(0, s.shape.rank() - 1);
  const std::int64_t count = lines ? v.size() / lines : 0;
  // NaN is behind all numbers.
  const auto before = [](T a, T b) { return a < b || (b != b && a == a); };
  for (std::int64_t line = 0; line < lines; ++line) {
    const T *begin = s.as<T>() + line * n, *end = begin + n;
    const T* value = v.as<T>() + line * count;
    std::int32_t* y = args.out[0].as<std::int32_t>() + line * count;
    for (std::int64_t i = 0; i < count; ++i) {
      const T* place = right ? std::upper_bound(begin, end, value[i], before)
                             : std::lower_bound(begin, end, value[i], before);
      y[i] = std::int32_t(place - begin);
    }
  }
}

}  // namespace

void arg_sort_kernel(const KernelArgs& args) {
  const auto& attrs = args.attrs.as<SortAttrs>();
  const View& x = args.in[0];
  const int axis = normalize_axis(attrs.axis, x.shape.rank(), "arg_sort");
  visit(x.dtype, [&]<class T>() { order_lines<T>(args, axis, attrs.descending, sorted); });
}

void top_k_kernel(const KernelArgs& args) {
  const std::int64_t k = args.attrs.as<TopKAttrs>().k;
  const auto first = [k](auto* entries, auto* spare, std::int64_t n) {
    if (k > n / 8) return sorted(entries, spare, n);
    std::nth_element(entries, entries + k, entries + n);
    std::sort(entries, entries + k);
    return entries;
  };
  const View& x = args.in[0];
  visit(x.dtype, [&]<class T>() { order_lines<T>(args, x.shape.rank() - 1, true, first); });
}

void search_sorted_kernel(const KernelArgs& args) {
  const bool right = args.attrs.as<SearchAttrs>().right;
  visit<kNumbers>("search_sorted", args.in[0].dtype,
                  [&]<class T>() { search_lines<T>(args, right); });
}

}  // namespace samegrad
