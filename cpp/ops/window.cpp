#include "ops/window.h"

#include <limits>

namespace samegrad {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

const char* direction(std::size_t dimension, std::size_t dimensions) {
  constexpr const char* kNames[] = {"depth", "rows", "columns"};
  return kNames[dimension + 3 - dimensions];
}

}  // namespace

void check_ints(const InferArgs& args, const char* name, const Ints& values, std::size_t count,
                std::int64_t least) {
  const bool ok = values.size() == count && std::ranges::all_of(values, [least](std::int64_t v) {
                    return v >= least && v <= kMost;
                  });
  SG_CHECK_VALUE(ok, args.op.name, name, " must be ", count, " ints of at least ", least,
                 " and at most ", kMost, ": got ", to_string(values), ".");
}

void check_window_attrs(const InferArgs& args, int dimensions) {
  const auto& attrs = args.attrs.as<WindowAttrs>();
  const auto count = std::size_t(dimensions);
  check_ints(args, "strides", attrs.strides, count, 1);
  check_ints(args, "padding", attrs.padding, 2 * count, 0);
  check_ints(args, "dilations", attrs.dilations, count, 1);
}

const char* axes_of_images(int dimensions) {
  return dimensions == 2 ? "(images, rows, columns, channels)"
                         : "(images, depth, rows, columns, channels)";
}

void check_images(const InferArgs& args, int operand, int dimensions) {
  const ValueType& type = args.in[std::size_t(operand)];
  const std::string& name = args.op.operands[std::size_t(operand)];
  SG_CHECK_VALUE(type.shape.rank() == dimensions + 2, args.op.name, "'", name,
                 "' must have the axes ", axes_of_images(dimensions), ": got shape ",
                 args.shape_of(operand), "; add axes with reshape.");
  SG_CHECK_VALUE(type.batch.axis <= 0, args.op.name, "the examples of '", name,
                 "' must lie on axis 0: got axis ", type.batch.axis, "; transpose it first.");
  for (int axis = 1; axis < dimensions + 2; ++axis) {
    SG_CHECK_VALUE(!is_symbolic(type.shape[axis]), args.op.name, "rows, columns and channels of '",
                   name, "' must not follow from the number of examples: got axis ", axis,
                   " of shape ", args.shape_of(operand), "; cut or pad it to a fixed size.");
  }
}

Ints output_sizes(const InferArgs& args, const Ints& image, const Ints& window) {
  const auto& [strides, padding, dilations] = args.attrs.as<WindowAttrs>();
  Ints sizes;
  for (std::size_t i = 0; i < image.size(); ++i) {
    const std::int64_t around = padding[2 * i] + padding[2 * i + 1];
    const std::int64_t extent = window[i] > 0 ? (window[i] - 1) * dilations[i] + 1 : 0;
    SG_CHECK_VALUE(image[i] + around >= extent, args.op.name,
                   "the window must fit into the padded ", direction(i, image.size()),
                   ": got a window of ", extent, " for ", image[i], " + ", around,
                   " padding; use more padding or a smaller window.");
    sizes.push_back((image[i] + around - extent) / strides[i] + 1);
  }
  return sizes;
}

WindowGeometry geometry_of(const WindowAttrs& attrs, const Shape& x, const Shape& y,
                           const Shape& window) {
  const auto& [strides, padding, dilations] = attrs;
  const int rows = x.rank() - 3;          // the axis of images
  const auto at = std::size_t(rows - 1);  // where attributes and window tell of rows
  WindowGeometry g{.in_height = x[rows],
                   .in_width = x[rows + 1],
                   .in_channels = x[rows + 2],
                   .out_height = y[rows],
                   .out_width = y[rows + 1],
                   .out_channels = y[rows + 2],
                   .window_height = window[rows - 1],
                   .window_width = window[rows],
                   .stride_height = strides[at],
                   .stride_width = strides[at + 1],
                   .pad_top = padding[2 * at],
                   .pad_left = padding[2 * at + 2],
                   .dilation_height = dilations[at],
                   .dilation_width = dilations[at + 1]};
  if (rows == 2) {
    g.in_depth = x[1], g.out_depth = y[1], g.window_depth = window[0];
    g.stride_depth = strides[0], g.pad_front = padding[0], g.dilation_depth = dilations[0];
  }
  return g;
}

}  // namespace samegrad
