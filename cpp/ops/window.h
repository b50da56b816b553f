// What convolution and pooling share: windows that slide over images, NHWC.
#pragma once

#include <algorithm>

#include "base/thresholds.h"
#include "kernels/geometry.h"
#include "ops/attributes.h"
#include "ops/rules.h"

namespace samegrad {

// ValueError unless there are so many, of this size at least.
void check_ints(const InferArgs& args, const char* name, const Ints& values, std::size_t count,
                std::int64_t least);
// ValueError unless strides and padding have the right lengths and ranges.
void check_window_attrs(const InferArgs& args);

// ValueError unless the operand has four axes and its examples, if any, lie on axis 0.
void check_images(const InferArgs& args, int operand);

// Rows and columns of the result of a window over an image; ValueError if it does not fit in.
struct OutputSize {
  std::int64_t height, width;
};
OutputSize output_size(const InferArgs& args, const Shape& x, std::int64_t window_height,
                       std::int64_t window_width);

// The geometry of one image: x and y are shapes of whole batches.
WindowGeometry geometry_of(const WindowAttrs& attrs, const Shape& x, const Shape& y,
                           std::int64_t window_height, std::int64_t window_width);

// Calls body(image, scratch memory) for all images, in parallel where the kernel has all rows.
template <class Body>
void for_each_image(const KernelArgs& args, std::int64_t images, std::size_t scratch_bytes,
                    const Body& body) {
  const Scratch::Frame frame(args.scratch);
  const std::int64_t threads = args.parallel ? args.parallel->threads() : 1;
  const std::int64_t tasks =
      threads > 1 ? std::min(images, thresholds().parts_per_thread * threads) : 1;
  const std::size_t bytes = (scratch_bytes + kAlignment - 1) / kAlignment * kAlignment;
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
