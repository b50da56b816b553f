// Sliding windows of convolution and pooling, over images in NHWC.
#pragma once

#include <algorithm>

#include "base/thresholds.h"
#include "kernels/geometry.h"
#include "ops/attributes.h"
#include "ops/rules.h"

namespace samegrad {

// ValueError unless there are so many, of this size at least and none beyond 32 bits.
void check_ints(const InferArgs& args, const char* name, const Ints& values, std::size_t count,
                std::int64_t least);
// ValueError unless strides, padding and dilations have the right lengths and ranges for so many
// dimensions of space.
void check_window_attrs(const InferArgs& args, int dimensions = 2);

// ValueError unless the operand has axes (images, rows, columns, channels), with the depth before
// the rows in three dimensions. Its examples, if any, must be on axis 0.
void check_images(const InferArgs& args, int operand, int dimensions = 2);
// Names of those axes, for messages.
const char* axes_of_images(int dimensions);

// Sizes of the result of a window over images, one per dimension; ValueError if it does not fit in.
Ints output_sizes(const InferArgs& args, const Ints& image, const Ints& window);

// The geometry of one image of two or three dimensions: x and y are shapes of whole batches, the
// first axes of `window` its sizes.
WindowGeometry geometry_of(const WindowAttrs& attrs, const Shape& x, const Shape& y,
                           const Shape& window);

// Calls body(image, scratch memory) for all images, in parallel where the kernel has all rows.
template <class Body>
void for_each_image(const KernelArgs& args, std::int64_t images, std::size_t scratch_bytes,
                    const Body& body) {
  const Scratch::Frame frame(args.scratch);
  const std::int64_t threads = args.parallel ? args.parallel->threads() : 1;
  const std::int64_t tasks =
      threads > 1 ? std::min(images, thresholds().parts_per_thread * threads) : 1;
  const std::size_t bytes = aligned(scratch_bytes);
  char* memory = static_cast<char*>(args.scratch.take(bytes * std::size_t(tasks)));
  if (tasks <= 1) {
    for (std::int64_t i = 0; i < images; ++i) body(i, memory);
    return;
  }
  struct ImageTasks {
    const Body& body;
    std::int64_t images, tasks;
    char* memory;
    std::size_t bytes;
  } const shared{body, images, tasks, memory, bytes};
  args.parallel->run(tasks, [&shared](std::int64_t task) {
    const std::int64_t begin = task * shared.images / shared.tasks;
    const std::int64_t end = (task + 1) * shared.images / shared.tasks;
    char* own = shared.memory + shared.bytes * std::size_t(task);
    for (std::int64_t i = begin; i < end; ++i) shared.body(i, own);
  });
}

}  // namespace samegrad
