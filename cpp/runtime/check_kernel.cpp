#include "runtime/check_kernel.h"

#ifdef SAMEGRAD_ASSERTIONS

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/assert.h"

namespace samegrad {
namespace {

constexpr std::size_t kGuardBytes = 64;
constexpr std::byte kGuard{0xC3};
// NaN in any floating dtype; and a small number.
constexpr std::byte kNaNs{0xFF}, kSmallNumbers{0xA5};

std::byte* first_aligned(std::byte* data) {
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  return data + (kAlignment - at % kAlignment) % kAlignment;
}

std::size_t bytes_of(const View& view) {
  return view.data ? std::size_t(view.size()) * size_of(view.dtype) : 0;
}

bool overlap(const View& a, const View& b) {
  const auto *x = static_cast<const std::byte*>(a.data), *y = static_cast<const std::byte*>(b.data);
  return bytes_of(a) > 0 && bytes_of(b) > 0 && x < y + bytes_of(b) && y < x + bytes_of(a);
}

// The first element in which two arrays differ, all NaN being equal; -1: none.
std::int64_t first_difference(const View& a, const View& b) {
  if (bytes_of(a) == 0 || std::memcmp(a.data, b.data, bytes_of(a)) == 0) return -1;
  return visit(a.dtype, [&]<class T>() -> std::int64_t {
    for (std::int64_t i = 0; i < a.size(); ++i) {
      if (std::memcmp(a.as<T>() + i, b.as<T>() + i, sizeof(T)) == 0) continue;
      if constexpr (kIsOneOf<T, kFloats>) {
        if (std::isnan(float(a.as<T>()[i])) && std::isnan(float(b.as<T>()[i]))) continue;
      }
      return i;
    }
    return -1;
  });
}

// A view of examples [begin, end); the examples are on axis 0.
View examples_of(const View& view, std::int64_t begin, std::int64_t end) {
  if (view.example_axis != 0) return view;
  View part = view;
  const std::int64_t bytes = view.shape[0] ? view.size() / view.shape[0] : 0;
  part.shape[0] = (end - begin) * view.rows_per_example;
  if (part.data) {
    part.data = static_cast<std::byte*>(view.data) +
                begin * view.rows_per_example * bytes * std::int64_t(size_of(view.dtype));
  }
  return part;
}

}  // namespace

bool checks_kernels() {
  static const bool set = [] {
    const char* value = std::getenv("SAMEGRAD_CHECK_KERNELS");
    return value != nullptr && std::string_view(value) == "1";
  }();
  return set;
}

// Results in memory of their own, each followed by guard bytes, and scratch with guards.
class KernelCheck::Results {
 public:
  Results(const KernelArgs& args, std::byte pattern) : scratch(pattern) {
    for (const View& view : args.out) {
      const std::size_t bytes = bytes_of(view);
      memory_.emplace_back(bytes + kGuardBytes + kAlignment, pattern);
      View& own = views.emplace_back(view);
      if (!view.data) continue;
      own.data = first_aligned(memory_.back().data());
      std::fill_n(static_cast<std::byte*>(own.data) + bytes, kGuardBytes, kGuard);
    }
  }
  void check_guards(const Node& node) const {
    for (std::size_t k = 0; k < views.size(); ++k) {
      if (!views[k].data) continue;
      const auto* guard = static_cast<const std::byte*>(views[k].data) + bytes_of(views[k]);
      SG_ASSERT(std::all_of(guard, guard + kGuardBytes, [](std::byte b) { return b == kGuard; }),
                node.op->name, " writes behind result ", k);
    }
  }

  std::vector<View> views;
  Scratch scratch;

 private:
  std::vector<std::vector<std::byte>> memory_;
};

KernelCheck::KernelCheck(const Node& node, const KernelArgs& args) : node_(node), args_(args) {
  check_counts();
  for (const View& view : args.in) {
    const auto* data = static_cast<const std::byte*>(view.data);
    operands_.emplace_back(data, data + bytes_of(view));
  }
  if (node.op->has(kSideEffect)) return;
  expected_ = std::make_unique<Results>(args, kNaNs);
  Results other(args, kSmallNumbers);
  static std::atomic<std::int64_t> calls{0};
  const std::int64_t cut = calls.fetch_add(1, std::memory_order_relaxed);
  try {
    node.op->kernel({.attrs = args.attrs,
                     .in = args.in,
                     .out = expected_->views,
                     .examples = args.examples,
                     .first_example = args.first_example,
                     .symbol = args.symbol,
                     .replica_context = args.replica_context,
                     .prepacked = args.prepacked,
                     .scratch = expected_->scratch});
    run_cut(other, cut);
  } catch (...) {  // the engine's own call raises it again
    expected_ = nullptr;
    return;
  }
  expected_->check_guards(node);
  other.check_guards(node);
  check_operands(expected_->views);
  for (std::size_t k = 0; k < other.views.size(); ++k) {
    const std::int64_t at = first_difference(expected_->views[k], other.views[k]);
    SG_ASSERT(at < 0, node.op->name, ": element ", at, " of result ", k,
              " is not written, depends on memory before the call, or on how calls are cut");
  }
}

KernelCheck::~KernelCheck() = default;

// Examples that the replica does not have cannot be covered.
void KernelCheck::check_counts() const {
  if (node_.locality != Locality::kPerExample) return;
  const auto& counts = args_.replica_context.local_examples;
  if (std::size_t(args_.symbol) >= counts.size()) return;
  SG_ASSERT(args_.first_example + args_.examples <= counts[std::size_t(args_.symbol)],
            node_.op->name, ": examples ", args_.first_example, " and ", args_.examples,
            " more of ", counts[std::size_t(args_.symbol)]);
  const auto check = [&](const View& view) {
    if (view.example_axis < 0 || is_symbolic(view.rows_per_example)) return;
    SG_ASSERT(view.shape[view.example_axis] == args_.examples * view.rows_per_example,
              node_.op->name, ": shape ", to_string(view.shape), " of ", args_.examples,
              " examples");
  };
  // An operand that only gives its type may count its examples by another symbol.
  for (std::size_t k = 0; k < args_.in.size(); ++k) {
    if (node_.op->reads(k)) check(args_.in[k]);
  }
  for (const View& view : args_.out) check(view);
}

void KernelCheck::run_cut(Results& results, std::int64_t cut) const {
  const OpDef& op = *node_.op;
  const auto with = [&](std::span<const View> in, std::span<const View> out, std::int64_t begin,
                        std::int64_t end, std::byte* state) {
    return KernelArgs{.attrs = args_.attrs,
                      .in = in,
                      .out = out,
                      .examples = end - begin,
                      .first_example = args_.first_example + begin,
                      .symbol = args_.symbol,
                      .replica_context = args_.replica_context,
                      .prepacked = args_.prepacked,
                      .scratch = results.scratch,
                      .state = state};
  };
  const auto first = [](const View& view) {
    return view.example_axis < 0 || (view.example_axis == 0 && !is_symbolic(view.rows_per_example));
  };
  const bool by_example = node_.locality == Locality::kPerExample && args_.examples > 1 &&
                          std::ranges::all_of(args_.in, first) &&
                          std::ranges::all_of(args_.out, first);
  if (by_example) {
    const std::int64_t middle = 1 + cut % (args_.examples - 1);
    for (const auto& [begin, end] :
         {std::pair{std::int64_t(0), middle}, std::pair{middle, args_.examples}}) {
      std::vector<View> in, out;
      for (const View& view : args_.in) in.push_back(examples_of(view, begin, end));
      for (const View& view : results.views) out.push_back(examples_of(view, begin, end));
      op.kernel(with(in, out, begin, end, nullptr));
    }
    return;
  }
  const CostArgs shapes{args_.attrs, args_.in, args_.out};
  // Calls from a loop have no parts.
  const std::int64_t units = op.parts.run && args_.parallel ? op.parts.count(shapes) : 0;
  const auto all = [&](std::byte* state) {
    return with(args_.in, results.views, 0, args_.examples, state);
  };
  if (units < 2) return op.kernel(all(nullptr));
  const std::size_t bytes = op.parts.state_bytes ? op.parts.state_bytes(shapes) : 0;
  std::vector<std::byte> state(bytes, kSmallNumbers);
  std::byte* at = bytes > 0 ? state.data() : nullptr;
  const std::int64_t middle = 1 + cut % (units - 1);
  op.parts.run(all(at), 0, middle);
  op.parts.run(all(at), middle, units);
  if (op.parts.finish) op.parts.finish(all(at));
}

// Operands are unchanged, but for those that a result is on.
void KernelCheck::check_operands(std::span<const View> results) const {
  for (std::size_t k = 0; k < operands_.size(); ++k) {
    const View& in = args_.in[k];
    if (std::ranges::any_of(results, [&](const View& out) { return overlap(in, out); })) continue;
    SG_ASSERT(
        operands_[k].empty() || std::memcmp(operands_[k].data(), in.data, operands_[k].size()) == 0,
        node_.op->name, " writes its operand ", k);
  }
}

void KernelCheck::compare() const {
  check_operands(args_.out);
  if (!expected_) return;
  for (std::size_t k = 0; k < args_.out.size(); ++k) {
    const std::int64_t at = first_difference(expected_->views[k], args_.out[k]);
    SG_ASSERT(at < 0, node_.op->name, ": element ", at, " of result ", k,
              " differs where the engine cuts the call, or lets results alias operands");
  }
}

namespace {

// States of examples [begin, end): the whole one, and those of unfinished subtrees.
std::size_t tree_bytes(const TreeReduction& reduction, std::int64_t examples) {
  return std::size_t(reduction.whole.bytes +
                     TreeAccumulator::partial_bytes(reduction, reduction.whole, examples)) +
         kAlignment;
}

// Elements of 4 and 8 bytes may be floats: all NaN are equal.
bool same_element(const std::byte* a, const std::byte* b, std::int64_t bytes) {
  if (std::memcmp(a, b, std::size_t(bytes)) == 0) return true;
  const auto both_nan = [&]<class T>(T x, T y) {
    std::memcpy(&x, a, sizeof(T));
    std::memcpy(&y, b, sizeof(T));
    return std::isnan(x) && std::isnan(y);
  };
  return (bytes == 4 && both_nan(0.f, 0.f)) || (bytes == 8 && both_nan(0.0, 0.0));
}

}  // namespace

TreeCheck::TreeCheck(const TreeReduction& reduction, std::int64_t begin, std::int64_t end)
    : reduction_(reduction),
      memory_(tree_bytes(reduction, end - begin), kSmallNumbers),
      state_(reduction.whole.at(first_aligned(memory_.data()))),
      accumulator_(reduction, reduction.whole, begin, end, state_,
                   first_aligned(memory_.data()) + reduction.whole.bytes) {}

void TreeCheck::feed(const void* operands, std::int64_t first, std::int64_t begin, std::int64_t end,
                     Scratch& scratch) {
  const std::int64_t middle = begin + (end - begin + 1) / 2;
  accumulator_.feed(operands, first, begin, middle, scratch);
  accumulator_.feed(operands, first, middle, end, scratch);
}

void TreeCheck::compare(const Node& node, const Accumulator& state) const {
  const Rect& block = reduction_.whole.block;
  for (std::size_t k = 0; k < std::size_t(reduction_.state.buffers); ++k) {
    const std::int64_t item = reduction_.whole.item[k];
    for (std::int64_t i = 0; i < block.size(); ++i) {
      const std::int64_t row = i / block.columns, column = i % block.columns;
      const std::byte* here = state_.data[k] + (row * state_.stride + column) * item;
      const std::byte* there = state.data[k] + (row * state.stride + column) * item;
      SG_ASSERT(same_element(here, there, item), node.op->name, ": element ", i, " of state ", k,
                " depends on how its examples are cut");
    }
  }
}

}  // namespace samegrad

#endif
