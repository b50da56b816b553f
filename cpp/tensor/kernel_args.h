// Arguments of a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/print_buffer.h"
#include "base/shape.h"
#include "tensor/array.h"
#include "tensor/attrs.h"
#include "tensor/buffer_pool.h"

namespace samegrad {

// A contiguous piece of memory with its concrete shape (the rows of one tile, say).
struct View {
  void* data = nullptr;
  Shape shape;
  DType dtype = DType::kFloat32;
  // The axis of examples, as in the value's type (-1: none): a contraction over it is the tree, one
  // over any other axis a chain, and shapes alone do not tell them apart.
  int example_axis = -1;
  std::int64_t rows_per_example = 1;

  template <class T>
  T* as() const {
    SG_ASSERT(is_stored_as<T>(dtype), "elements of ", name_of(dtype));
    return static_cast<T*>(data);
  }
  std::int64_t size() const { return shape.size(); }
};

// Temporary memory of one task, given back when the kernel returns.
class Scratch {
 public:
  static constexpr std::size_t kBlockBytes = std::size_t(1) << 18;  // of a block, at least

  Scratch() = default;
#ifdef SAMEGRAD_ASSERTIONS
  // With guard bytes behind each piece, which is filled with the pattern.
  explicit Scratch(std::byte pattern) : pattern_(pattern), has_guards_(true) {}
#endif

  // 64-byte aligned, uninitialised; valid until the Frame around it ends.
  void* take(std::size_t bytes) {
    bytes = aligned(bytes);
#ifdef SAMEGRAD_ASSERTIONS
    return take_checked(bytes);
#else
    return take_unchecked(bytes);
#endif
  }
  // Gives all memory back; no Frame is open.
  void release() {
    blocks_.clear();
    open_ = 0;
    next_ = end_ = nullptr;
  }

  class Frame {
   public:
    explicit Frame(Scratch& scratch)
        : scratch_(scratch), open_(scratch.open_), next_(scratch.next_), end_(scratch.end_) {
#ifdef SAMEGRAD_ASSERTIONS
      guards_ = scratch.guards_.size();
#endif
    }
    ~Frame() {
#ifdef SAMEGRAD_ASSERTIONS
      scratch_.check_guards(guards_);
#endif
      scratch_.open_ = open_;
      scratch_.next_ = next_;
      scratch_.end_ = end_;
    }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

   private:
    Scratch& scratch_;
    std::size_t open_;
    std::byte *next_, *end_;
#ifdef SAMEGRAD_ASSERTIONS
    std::size_t guards_;
#endif
  };

 private:
  void* take_unchecked(std::size_t bytes) {
    if (bytes > std::size_t(end_ - next_) || next_ == nullptr) [[unlikely]]
      open_block(bytes);
    return std::exchange(next_, next_ + bytes);
  }
  // Goes to the next block that has so much; blocks never move, so earlier pieces stay valid.
  void open_block(std::size_t bytes);

  std::vector<PooledBuffer> blocks_;
  std::size_t open_ = 0;                        // blocks up to the one that pieces are taken of
  std::byte *next_ = nullptr, *end_ = nullptr;  // what is left of it

#ifdef SAMEGRAD_ASSERTIONS
  void* take_checked(std::size_t bytes);
  // The guards from the first one on are intact; they are taken off the list.
  void check_guards(std::size_t first);

  std::byte pattern_{0xFF};  // NaN in any floating dtype
  bool has_guards_ = false;
  std::vector<std::byte*> guards_;
#endif
};

// Runs body(i) for i in [0, count), possibly in parallel; returns when all are done.
class ParallelFor {
 public:
  virtual ~ParallelFor() = default;
  virtual int threads() const = 0;
  virtual void run(std::int64_t count, const std::function<void(std::int64_t)>& body) const = 0;
};

// Work that threads share: parallel loops, and the pieces of all of them.
struct SharedWork {
  std::int64_t loops = 0, pieces = 0;
};

// Facts of the running step that an op may depend on.
struct ReplicaContext {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;  // the strategy's step counter
  int replica = 0;
  int replicas = 1;
  std::vector<std::int64_t> local_examples;   // of this replica, per symbol
  std::vector<std::int64_t> global_examples;  // of all replicas, per symbol
  std::vector<std::int64_t> first_example;    // of this replica among all, per symbol
  // Each of several replicas whose examples are one list.
  std::span<const ReplicaContext> joint = {};
  PrintBuffer* messages = nullptr;  // what it prints, if somebody is there to show it
};

struct KernelArgs {
  const Attrs& attrs;
  std::span<const View> in;
  std::span<const View> out;
  // The examples this call covers (0 where nothing is batched) and where they start among the
  // examples of the replica.
  std::int64_t examples = 0;
  std::int64_t first_example = 0;
  int symbol = 0;
  const ReplicaContext& replica_context;
  // The packed operand made by OpDef::prepacking, or null.
  const void* prepacked = nullptr;
  Scratch& scratch;
  // The threads that a call is worth; null: the caller's.
  const ParallelFor* parallel = nullptr;
  // The state that the units of a call leave for its finish (ParallelPartition in ir/op_def.h).
  std::byte* state = nullptr;
  // The operands are read from memory or L3: prefetching the next ones pays off.
  bool far_operands = false;
};

// The replica that has an example, which is counted from the first one of the context.
int replica_of(const ReplicaContext& context, int symbol, std::int64_t example);

// The position of an operand's element, for messages: "position (3, 1) of the batch, on replica 2".
std::string place_of(const KernelArgs& args, const View& operand, std::int64_t flat);

// A product of the rows of all replicas with one matrix, which is read once.
struct GroupedGemmArgs {
  const Attrs& attrs;
  std::span<const std::span<const View>> replicas;  // of each: operands, then the result
  Scratch& scratch;
  const ParallelFor& parallel;
  const void* prepacked = nullptr;  // as in KernelArgs
};

// A pure function of a tile: reads `in`, writes `out` and nothing else.
using Kernel = void (*)(const KernelArgs& args);

// The operands and results of every replica, for a collective.
struct ExchangeArgs {
  const Attrs& attrs;
  std::span<const std::vector<View>> in;
  // One, or one per replica; without memory where the replica is another process's.
  std::span<const std::vector<View>> out;
};

}  // namespace samegrad
