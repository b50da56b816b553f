#include "ops/sort_kernel.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/dtype.h"
#include "ops/partition.h"
#include "ops/sort.h"

namespace samegrad {
namespace {

// An element as an unsigned number of the same order, and where it was.
template <class Key>
struct SortKey {
  Key key;
  std::uint32_t place;

  bool operator<(const SortKey& other) const {
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
SortKey<Key>* sort_by_bytes(SortKey<Key>* x, SortKey<Key>* y, std::int64_t n) {
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

// Calls choose(entries, spare, n), which returns the entries in order, for the lines [begin, end)
// along an axis and writes the places of the first `count`.
template <class T, class Choose>
void order_lines(const KernelArgs& args, int axis, bool descending, std::int64_t begin,
                 std::int64_t end, const Choose& choose) {
  using Key = BitsOf<T>;
  const View &x = args.in[0], &y = args.out[0];
  const std::int64_t n = x.shape[axis], count = y.shape[axis];
  const std::int64_t width = x.shape.size(axis + 1, x.shape.rank());
  if (y.size() == 0) return;
  const Scratch::Frame frame(args.scratch);
  const auto take = [&] {
    return static_cast<SortKey<Key>*>(args.scratch.take(std::size_t(n) * sizeof(SortKey<Key>)));
  };
  SortKey<Key>*const entries = take(), *const spare = take();
  for (std::int64_t line = begin; line < end; ++line) {
    const std::int64_t o = line / width, c = line % width;
    const T* from = x.as<T>() + o * n * width + c;
    for (std::int64_t i = 0; i < n; ++i) {
      entries[i] = {key_of(from[i * width], descending), std::uint32_t(i)};
    }
    const SortKey<Key>* ordered = choose(entries, spare, n);
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

// Searches for the values [begin, end).
template <class T>
void search(const KernelArgs& args, bool right, std::int64_t begin, std::int64_t end) {
  const View &s = args.in[0], &v = args.in[1];
  const std::int64_t n = s.shape[s.shape.rank() - 1];
  const std::int64_t lines = s.shape.size(0, s.shape.rank() - 1);
  const std::int64_t count = lines ? v.size() / lines : 0;
  // NaN is behind all numbers.
  const auto before = [](T a, T b) { return a < b || (b != b && a == a); };
  auto* y = args.out[0].as<std::int32_t>();
  for (std::int64_t i = begin; i < end; ++i) {
    const T *first = s.as<T>() + i / count * n, *last = first + n;
    const T* place = right ? std::upper_bound(first, last, v.as<T>()[i], before)
                           : std::lower_bound(first, last, v.as<T>()[i], before);
    y[i] = std::int32_t(place - first);
  }
}

int axis_of_sort(const CostArgs& args) {
  return normalize_axis(args.attrs.as<SortAttrs>().axis, args.in[0].shape.rank(), "arg_sort");
}

}  // namespace

std::int64_t lines_to_sort(const CostArgs& args) {
  return Lines(args.in[0].shape, axis_of_sort(args)).count();
}

void run_arg_sort(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const int axis = axis_of_sort(cost_args(args));
  const bool descending = args.attrs.as<SortAttrs>().descending;
  visit(args.in[0].dtype,
        [&]<class T>() { order_lines<T>(args, axis, descending, begin, end, sorted); });
}

std::int64_t lines_of_top_k(const CostArgs& args) {
  const Shape& shape = args.in[0].shape;
  return shape.size(0, shape.rank() - 1);
}

void run_top_k(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t k = args.attrs.as<TopKAttrs>().k;
  const auto first = [k](auto* entries, auto* spare, std::int64_t n) {
    if (k > n / 8) return sorted(entries, spare, n);
    std::nth_element(entries, entries + k, entries + n);
    std::sort(entries, entries + k);
    return entries;
  };
  const View& x = args.in[0];
  visit(x.dtype,
        [&]<class T>() { order_lines<T>(args, x.shape.rank() - 1, true, begin, end, first); });
}

void run_search_sorted(const KernelArgs& args, std::int64_t begin, std::int64_t end) {
  const bool right = args.attrs.as<SearchAttrs>().right;
  visit<kNumbers>("search_sorted", args.in[0].dtype,
                  [&]<class T>() { search<T>(args, right, begin, end); });
}

}  // namespace samegrad
