#include "ops/conv.h"
#include "ops/window.h"

namespace samegrad {
namespace {

const char* axes_of_filter(int dimensions) {
  return dimensions == 2 ? "(rows, columns, channels in, channels out)"
                         : "(depth, rows, columns, channels in, channels out)";
}

Ints space_of(const Shape& shape, int first, int dimensions) {
  Ints sizes;
  for (int i = 0; i < dimensions; ++i) sizes.push_back(shape[first + i]);
  return sizes;
}

// `x_of` and `filter` are numbers of operands, for messages.
void check_filter(const InferArgs& args, int filter, int x_of, const Shape& x, int dimensions) {
  const ValueType& type = args.in[std::size_t(filter)];
  SG_CHECK_VALUE(type.shape.rank() == dimensions + 2 && !type.batched(), args.op.name,
                 "'filter' must have the axes ", axes_of_filter(dimensions),
                 " and no examples: got shape ", args.shape_of(filter), ".");
  const std::int64_t all = x[dimensions + 1], in = type.shape[dimensions];
  for (int axis = 0; axis < dimensions + (in == all ? 1 : 2); ++axis) {
    SG_CHECK_VALUE(!is_symbolic(type.shape[axis]), args.op.name,
                   "sizes of 'filter' must not follow from the number of examples: got axis ", axis,
                   " of shape ", args.shape_of(filter), ".");
  }
  if (in == all) return;
  SG_CHECK_VALUE(
      in > 0 && all > 0 && all % in == 0, args.op.name,
      "the filter's channels must be the image's, or those of one of several equal groups: "
      "got ",
      in, " and ", all, " (shapes ", args.shape_of(filter), " and ", args.shape_of(x_of), ").");
  const std::int64_t groups = all / in, out = type.shape[dimensions + 1];
  SG_CHECK_VALUE(out % groups == 0, args.op.name,
                 "the results of the filter must be divided evenly among the groups: got ", out,
                 " results for ", groups, " groups of ", in, " channels (shapes ",
                 args.shape_of(filter), " and ", args.shape_of(x_of), ").");
}

// The type of a convolution of images and a filter.
ValueType convolved(const InferArgs& args, const ValueType& x, int x_of, int filter,
                    int dimensions) {
  check_window_attrs(args, dimensions);
  check_filter(args, filter, x_of, x.shape, dimensions);
  const Shape& f = args.in[std::size_t(filter)].shape;
  const Ints size =
      output_sizes(args, space_of(x.shape, 1, dimensions), space_of(f, 0, dimensions));
  ValueType y = x;
  for (int i = 0; i < dimensions; ++i) y.shape[i + 1] = size[std::size_t(i)];
  y.shape[dimensions + 1] = f[dimensions + 1];
  return y;
}

void check_result(const InferArgs& args, int x, int dy, int filter, int dimensions) {
  check_dtype(args, 0, kFloats);
  check_same_dtype(args, 0, 3);
  check_images(args, x, dimensions);
  check_images(args, dy, dimensions);
  const ValueType& images = args.in[std::size_t(x)];
  const ValueType y = convolved(args, images, x, filter, dimensions);
  SG_CHECK_VALUE(same_shape(args, y, args.in[std::size_t(dy)]), args.op.name,
                 "'dy' must have the shape of the convolution's result: got ", args.shape_of(dy),
                 " where images are of ", to_string(images.shape), ".");
}

}  // namespace

template <int kDimensions>
Inferred conv_rule(const InferArgs& args) {
  check_dtype(args, 0, kFloats);
  check_same_dtype(args, 0, int(args.in.size()));
  check_images(args, 0, kDimensions);
  return one_result(args, convolved(args, args.in[0], 0, 1, kDimensions));
}

template <int kDimensions>
Inferred conv_bias_rule(const InferArgs& args) {
  const Inferred inferred = conv_rule<kDimensions>(args);
  const Shape& filter = args.in[1].shape;
  SG_CHECK_VALUE(!args.in[2].batched() && args.in[2].shape == Shape({filter[kDimensions + 1]}),
                 args.op.name, "'bias' must have one element per channel of the filter: got ",
                 args.shape_of(2), " for a filter of ", args.shape_of(1), ".");
  return inferred;
}

template <int kDimensions>
Inferred conv_transpose_rule(const InferArgs& args) {
  check_dtype(args, 0, kFloats);
  check_same_dtype(args, 0, 2);
  check_images(args, 0, kDimensions);
  const Ints& size = args.attrs.as<ConvTransposeAttrs>().size;
  check_ints(args, "size", size, kDimensions, 0);
  const Shape& filter = args.in[1].shape;
  SG_CHECK_VALUE(filter.rank() == kDimensions + 2, args.op.name, "'filter' must have the axes ",
                 axes_of_filter(kDimensions), ": got shape ", args.shape_of(1), ".");
  ValueType y = args.in[0];
  for (int i = 0; i < kDimensions; ++i) y.shape[i + 1] = size[std::size_t(i)];
  const std::int64_t groups = args.attrs.as<ConvTransposeAttrs>().groups;
  SG_CHECK_VALUE(groups == 1 || (groups > 1 && groups <= filter[kDimensions + 1]), args.op.name,
                 "'groups' must be 1 … channels of 'x': got ", groups, " (shapes ",
                 args.shape_of(0), " and ", args.shape_of(1), ").");
  y.shape[kDimensions + 1] = groups * filter[kDimensions];
  const ValueType x = convolved(args, y, 0, 1, kDimensions);
  SG_CHECK_VALUE(same_shape(args, x, args.in[0]), args.op.name,
                 "the convolution of a result of size ", to_string(size),
                 " must have the shape of 'x': got ", to_string(x.shape), " for ", args.shape_of(0),
                 "; choose another size of the result.");
  return one_result(args, y);
}

template <int kDimensions>
Inferred conv_input_grad_rule(const InferArgs& args) {
  check_result(args, 2, 0, 1, kDimensions);
  const bool aligned = args.in[0].batch == args.in[2].batch;
  return aligned ? one_result(args, args.in[2]) : Inferred{{args.in[2]}, Locality::kFullBatch};
}

template <int kDimensions>
Inferred conv_filter_grad_rule(const InferArgs& args) {
  check_result(args, 0, 1, 2, kDimensions);
  const bool tree = args.in[0].batched() && args.in[0].batch == args.in[1].batch;
  return {{args.in[2]}, tree ? Locality::kBatchReduction : Locality::kFullBatch};
}

template Inferred conv_rule<2>(const InferArgs&);
template Inferred conv_rule<3>(const InferArgs&);
template Inferred conv_bias_rule<2>(const InferArgs&);
template Inferred conv_bias_rule<3>(const InferArgs&);
template Inferred conv_transpose_rule<2>(const InferArgs&);
template Inferred conv_transpose_rule<3>(const InferArgs&);
template Inferred conv_input_grad_rule<2>(const InferArgs&);
template Inferred conv_input_grad_rule<3>(const InferArgs&);
template Inferred conv_filter_grad_rule<2>(const InferArgs&);
template Inferred conv_filter_grad_rule<3>(const InferArgs&);

}  // namespace samegrad
