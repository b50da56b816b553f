// Tree kernels: the functions with which an op is reduced over the examples in the fixed reduction
// order. The engine alone decides which blocks of the result and which subtrees run where.
#pragma once

#include <array>

#include "base/prefetch.h"
#include "base/reduction_order.h"
#include "tensor/kernel_args.h"

namespace samegrad {

inline constexpr int kMaxStateBuffers = 4;

// The shape of an accumulator of examples: a matrix of elements in each of its buffers.
struct AccumulatorShape {
  std::int64_t rows = 1, columns = 1;
  // It may be cut into blocks at multiples of these; 0: not along this axis.
  std::int64_t row_grain = 0, column_grain = 0;
  // The most bytes of a block, and its columns if the state has that many; 0: the engine chooses.
  std::int64_t block_bytes = 0;
  std::int64_t block_columns = 0;
  int buffers = 1;
  std::array<std::int64_t, kMaxStateBuffers> item = {};  // bytes of an element, per buffer
  bool subtrees = false;                                 // TreeKernel::subtree is worth calling

  std::int64_t element_bytes() const {
    std::int64_t bytes = 0;
    for (int i = 0; i < buffers; ++i) bytes += item[std::size_t(i)];
    return bytes;
  }
};

// A part of a state.
struct Rect {
  std::int64_t row = 0, column = 0;
  std::int64_t rows = 0, columns = 0;

  std::int64_t size() const { return rows * columns; }
  bool operator==(const Rect&) const = default;
};

// The memory of a block: its first element in each buffer.
struct Accumulator {
  std::array<std::byte*, kMaxStateBuffers> data = {};
  std::int64_t stride = 0;  // elements from a row to the next

  template <class T>
  T* as(int buffer = 0) const {
    SG_ASSERT(data[std::size_t(buffer)] != nullptr, "buffer ", buffer);
    return reinterpret_cast<T*>(data[std::size_t(buffer)]);
  }
};

struct LeafArgs {
  const void* operands;     // what `open` made of them
  std::int64_t begin, end;  // examples of the operands
  const Rect& block;
  const Accumulator& state;
  bool first;  // nothing is in the state yet; else the leaf goes on from what is there
  Scratch& scratch;
  const PrefetchBlocks* prefetch = nullptr;  // of the block, which is complete afterwards
};

struct CombineArgs {
  const Attrs& attrs;
  DType dtype;  // of the result
  const Rect& block;
  const Accumulator& left;  // becomes the state of both
  const Accumulator& right;
};

struct NeutralArgs {
  const Attrs& attrs;
  DType dtype;
  const Rect& block;
  const Accumulator& state;
};

struct FinishArgs {
  const Attrs& attrs;
  const AccumulatorShape& shape;
  const Accumulator& state;
  std::span<const View> out;
};

// A block of a state that is folded by itself.
struct FoldArgs {
  std::span<const View> in;  // of one example, without memory
  const Attrs& attrs;
  const View& result;
  const Rect& block;
  std::int64_t examples;
};

// A pure fold and a pure join. The bits do not depend on the number of a leaf's examples that are
// passed at a time, nor on the tiles of the accumulator.
struct TreeKernel {
  // `result` tells type and shape; the operands have one example or more.
  AccumulatorShape (*state)(std::span<const View> in, const Attrs& attrs,
                            const View& result) = nullptr;
  // Makes the operands ready for many leaves, in args.scratch; args.out has no memory.
  const void* (*open)(const KernelArgs& args) = nullptr;
  // Folds examples into the state, one after the other.
  void (*leaf)(const LeafArgs& args) = nullptr;
  void (*combine)(const CombineArgs& args) = nullptr;
  // The state of no examples.
  void (*neutral)(const NeutralArgs& args) = nullptr;
  // Examples of a leaf, where that is not always kLeafExamples.
  std::int64_t (*leaf_examples)(const Shape& result) = nullptr;
  // The results of the whole state; null: its only buffer is the result.
  void (*finish)(const FinishArgs& args) = nullptr;
  // Leaves and joins of a whole subtree at once, with their bits, where that is faster.
  void (*subtree)(const LeafArgs& args) = nullptr;
  // Scratch that folding a block takes at most; null: no more than the states of its levels.
  std::size_t (*fold_bytes)(const FoldArgs& args) = nullptr;

  explicit operator bool() const { return leaf != nullptr; }
};

}  // namespace samegrad
