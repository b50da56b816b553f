// Convolutions: shape rules and kernels of the ops in conv.cpp, which are the same for two
// dimensions of space (images) and three (volumes), read from the rank of the operands.
//
// Three functions, of images x, results y and a filter (space…, channels in of a group, channels
// out), are closed under differentiation, as each is linear in both of its operands:
//   conv              x, filter to y
//   conv_input_grad   y, filter to x, which is also the transposed convolution
//   conv_filter_grad  x, y to filter
// The vjp of each is made of the other two, with the attributes that it has itself, so that
// strides, dilations and groups are known to the kernels alone (kernels/geometry.h). How many
// groups there are follows from the channels of images and filter, as in TensorFlow; a transposed
// convolution, which has no images, is told.
#pragma once

#include "ir/op_def.h"
#include "ops/attributes.h"
#include "tensor/kernel_args.h"
#include "tensor/tree_kernel.h"

namespace samegrad {

struct ConvTransposeAttrs : WindowAttrs {
  using Base = WindowAttrs;
  Ints size = {};
  std::int64_t groups = 1;

  static constexpr auto fields() {
    return std::tuple_cat(
        std::tuple(required("size", &ConvTransposeAttrs::size, "Rows and columns of the result."),
                   defaulted("groups", &ConvTransposeAttrs::groups,
                             "Groups of channels; the result has so many times the filter's.")),
        WindowAttrs::fields());
  }
};

// ---- shapes: one rule per number of dimensions, two or three ----

template <int kDimensions>
Inferred conv_rule(const InferArgs& args);
// The operands are those of the convolution, and a bias.
template <int kDimensions>
Inferred conv_bias_rule(const InferArgs& args);
template <int kDimensions>
Inferred conv_transpose_rule(const InferArgs& args);
template <int kDimensions>
Inferred conv_input_grad_rule(const InferArgs& args);
template <int kDimensions>
Inferred conv_filter_grad_rule(const InferArgs& args);

// ---- kernels ----

void conv_kernel(const KernelArgs& args);
void conv_bias_kernel(const KernelArgs& args);
Prepacking conv_prepacking();

// Operand 0 is y, operand 1 the filter; the result's shape is that of x.
void conv_input_grad_kernel(const KernelArgs& args);
Prepacking conv_input_grad_prepacking();

// The kernel of a transposed convolution: an input gradient for which no images tell the number of
// groups.
void conv_transpose_kernel(const KernelArgs& args);
Prepacking conv_transpose_prepacking();

// Over examples the fixed tree, over images that are not examples the same sum.
TreeKernel conv_filter_tree();
void conv_filter_grad_kernel(const KernelArgs& args);

}  // namespace samegrad
