#include "ops/window.h"

namespace samegrad {
namespace {

std::int64_t positions(const InferArgs& args, const char* direction, std::int64_t size,
                       std::int64_t window, std::int64_t stride, std::int64_t padding) {
  check_value(size + padding >= window, args.op.name, "the window must fit into the padded ",
              direction, ": got a window of ", window, " for ", size, " + ", padding,
              " padding in shape ", args.shape_of(0), "; use more padding or a smaller window.");
  return (size + padding - window) / stride + 1;
}

}  // namespace

void check_ints(const InferArgs& args, const char* name, const Ints& values, std::size_t count,
                std::int64_t least) {
  const bool ok = values.size() == count &&
                  std::ranges::all_of(values, [least](std::int64_t v) { return v >= least; });
  check_value(ok, args.op.name, name, " must be ", count, " ints of at least ", least, ": got ",
              to_string(values), ".");
}

void check_window_attrs(const InferArgs& args) {
  const auto& attrs = args.attrs.as<WindowAttrs>();
  check_ints(args, "strides", attrs.strides, 2, 1);
  check_ints(args, "padding", attrs.padding, 4, 0);
}

void check_images(const InferArgs& args, int operand) {
  const ValueType& type = args.in[std::size_t(operand)];
  const std::string& name = args.op.operands[std::size_t(operand)];
  check_value(type.shape.rank() == 4, args.op.name, "'", name,
              "' must have the axes (images, rows, columns, channels): got shape ",
              args.shape_of(operand), "; add axes with reshape.");
  check_value(type.batch.axis <= 0, args.op.name, "the examples of '", name,
              "' must lie on axis 0: got axis ", type.batch.axis, "; transpose it first.");
  for (int axis = 1; axis < 4; ++axis) {
    check_value(!is_symbolic(type.shape[axis]), args.op.name, "rows, columns and channels of '",
                name, "' must not follow from the number of examples: got axis ", axis,
                " of shape ", args.shape_of(operand), "; cut or pad it to a fixed size.");
  }
}

OutputSize output_size(const InferArgs& args, const Shape& x, std::int64_t window_height,
                       std::int64_t window_width) {
  const auto& [strides, padding] = args.attrs.as<WindowAttrs>();
  return {positions(args, "rows", x[1], window_height, strides[0], padding[0] + padding[1]),
          positions(args, "columns", x[2], window_width, strides[1], padding[2] + padding[3])};
}

WindowGeometry geometry_of(const WindowAttrs& attrs, const Shape& x, const Shape& y,
                           std::int64_t window_height, std::int64_t window_width) {
  const auto& [strides, padding] = attrs;
  return {x[1],          x[2],         x[3],       y[1],       y[2],       y[3],
          window_height, window_width, strides[0], strides[1], padding[0], padding[2]};
}

}  // namespace samegrad
