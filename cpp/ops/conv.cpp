// Rows of convolutions of images and volumes, and of their gradients.
#include <string>

#include "ops/conv.h"
#include "ops/expr.h"

namespace samegrad {
namespace {

// ---- gradients ----

// "conv2d" or "conv3d", with what follows.
std::string name_of(int dimensions, const char* rest) {
  return (dimensions == 2 ? "conv2d" : "conv3d") + std::string(rest);
}
Expr of_family(const char* rest, Expr a, Expr b, const Attrs& attrs) {
  return call(name_of(a.type().shape.rank() - 2, rest), a, b, attrs);
}
Expr of_family(const char* rest, Expr a, Expr b, Expr c, const Attrs& attrs) {
  return call(name_of(a.type().shape.rank() - 2, rest), a, b, c, attrs);
}

Expr conv(Expr x, Expr filter, const Attrs& attrs) {
  return of_family("", x, filter, attrs);
}
Expr input_grad(Expr dy, Expr filter, Expr x, const Attrs& attrs) {
  return of_family("_input_grad", dy, filter, x, attrs);
}
Expr filter_grad(Expr x, Expr dy, Expr filter, const Attrs& attrs) {
  return of_family("_filter_grad", x, dy, filter, attrs);
}

Values conv_vjp(const VjpArgs& v) {
  const Expr x(v.b, v.in[0]), filter(v.b, v.in[1]), ct(v.b, v.ct[0]);
  return cotangents(input_grad(ct, filter, x, v.attrs), filter_grad(x, ct, filter, v.attrs));
}

Values input_grad_vjp(const VjpArgs& v) {
  const Expr dy(v.b, v.in[0]), filter(v.b, v.in[1]), ct(v.b, v.ct[0]);
  return cotangents(conv(ct, filter, v.attrs), filter_grad(ct, dy, filter, v.attrs), none());
}

Values filter_grad_vjp(const VjpArgs& v) {
  const Expr x(v.b, v.in[0]), dy(v.b, v.in[1]), ct(v.b, v.ct[0]);
  return cotangents(input_grad(dy, ct, x, v.attrs), conv(x, ct, v.attrs), none());
}

// The attributes that all convolutions have.
WindowAttrs window_of(const WindowAttrs& attrs) {
  return attrs;
}

Values conv_transpose_vjp(const VjpArgs& v) {
  const Expr x(v.b, v.in[0]), filter(v.b, v.in[1]), ct(v.b, v.ct[0]);
  const Attrs attrs = window_of(v.attrs.as<ConvTransposeAttrs>());
  return cotangents(conv(ct, filter, attrs), filter_grad(ct, x, filter, attrs));
}

Values bias_parts(const VjpArgs& v) {
  const Expr x(v.b, v.in[0]), filter(v.b, v.in[1]), bias(v.b, v.in[2]);
  const auto& attrs = v.attrs.as<ConvBiasAttrs>();
  const Expr y = conv(x, filter, window_of(attrs)) + bias;
  return cotangents(attrs.activation == Activation::kRelu ? relu(y) : y);
}

// ---- samples ----

// A convolution: shapes of x, filter and y, and whether images are examples.
struct Example {
  std::vector<std::int64_t> x, filter, y;
  WindowAttrs attrs;
  std::uint8_t examples = 1;
};

std::vector<Example> examples_of(int dimensions) {
  if (dimensions == 3) {
    return {{{2, 3, 4, 3, 2},
             {2, 2, 2, 2, 3},
             {2, 2, 2, 2, 3},
             {{1, 2, 1}, {0, 0, 0, 0, 0, 0}, {1, 1, 1}},
             0},
            {{5, 4, 3, 3, 2},
             {2, 2, 1, 1, 2},
             {5, 2, 3, 2, 2},
             {{2, 1, 2}, {0, 1, 0, 2, 0, 0}, {2, 2, 1}}}};
  }
  return {{{2, 4, 5, 2}, {3, 2, 2, 3}, {2, 2, 4, 3}, {{1, 1}, {0, 0, 0, 0}}, 0},
          {{5, 5, 4, 2}, {3, 3, 2, 3}, {5, 3, 3, 3}, {{2, 1}, {1, 1, 0, 1}}},
          {{6, 5, 5, 1}, {2, 2, 1, 5}, {6, 2, 2, 5}, {{2, 3}, {0, 0, 0, 0}}},
          {{5, 6, 5, 1}, {2, 3, 1, 2}, {5, 2, 4, 2}, {{3, 1}, {1, 0, 2, 1}, {2, 2}}},
          {{5, 4, 3, 4}, {2, 2, 2, 6}, {5, 3, 4, 6}, {{1, 1}, {0, 0, 1, 1}}},
          {{5, 4, 5, 3}, {2, 3, 1, 3}, {5, 2, 2, 3}, {{2, 2}, {0, 1, 0, 0}, {1, 1}}},
          {{5, 3, 4, 2}, {2, 2, 1, 4}, {5, 2, 1, 4}, {{1, 2}, {0, 0, 0, 0}, {1, 2}}}};
}

// The operands of a row, chosen from x, filter and y, and its attributes.
std::vector<Sample> samples_of(int dimensions, const std::vector<char>& operands) {
  std::vector<Sample> samples;
  for (const Example& e : examples_of(dimensions)) {
    Sample sample{.shapes = {}, .attrs = e.attrs};
    for (const char operand : operands) {
      sample.shapes.push_back(operand == 'x' ? e.x : operand == 'y' ? e.y : e.filter);
      if (e.examples) sample.batched.push_back(operand == 'f' ? 0 : 1);
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

// Each element of y is a chain over the channels of x and the filter's window.
double conv_flops(const View& y, const View& filter) {
  const double channels = std::max<double>(1, double(filter.shape[filter.shape.rank() - 1]));
  return 2.0 * double(y.size()) * double(filter.size()) / channels;
}

// ---- rows of the table ----

template <int kDimensions>
OpDef row_of(const char* rest, std::vector<std::string> operands, const std::vector<char>& which) {
  OpDef op;
  op.name = name_of(kDimensions, rest);
  op.min_arity = op.max_arity = int(operands.size());
  op.operands = std::move(operands);
  op.linearity = Linearity::kProduct;
  op.attrs = schema_of<WindowAttrs>();
  op.samples = samples_of(kDimensions, which);
  return op;
}

template <int kDimensions>
OpDef conv_op() {
  OpDef op = row_of<kDimensions>("", {"x", "filter"}, {'x', 'f'});
  op.doc =
      kDimensions == 2
          ? "Convolution of images (n, rows, columns, channels) with a filter (rows, columns, "
            "in, out); fewer channels in make groups. Each element is one chain over the "
            "filter's rows, columns and channels."
          : "Convolution of volumes (n, depth, rows, columns, channels) with a filter (depth, "
            "rows, columns, in, out); fewer channels in make groups. Each element is one chain "
            "over rows, columns and channels of the filter, which goes on along its depth.";
  op.infer = conv_rule<kDimensions>;
  op.kernel = conv_kernel;
  op.vjp = conv_vjp;
  op.with_bias = name_of(kDimensions, "_bias");
  op.prepacking = conv_prepacking();
  op.flops = [](const CostArgs& args) { return conv_flops(args.out[0], args.in[1]); };
  return op;
}

template <int kDimensions>
OpDef input_grad_op() {
  OpDef op = row_of<kDimensions>("_input_grad", {"dy", "filter", "x_like"}, {'y', 'f', 'x'});
  op.doc = "Gradient of a convolution with respect to the images.";
  op.traits = kBackward;
  op.infer = conv_input_grad_rule<kDimensions>;
  op.kernel = conv_input_grad_kernel;
  op.vjp = input_grad_vjp;
  op.type_only = 1u << 2;
  op.prepacking = conv_input_grad_prepacking();
  op.flops = [](const CostArgs& args) { return conv_flops(args.in[0], args.in[1]); };
  return op;
}

template <int kDimensions>
OpDef conv_transpose_op() {
  OpDef op = row_of<kDimensions>("_transpose", {"x", "filter"}, {'y', 'f'});
  op.doc =
      "What the gradient of a convolution makes of x: the images of the given size that a "
      "convolution with this filter (space, out, in) would have made x of.";
  op.attrs = schema_of<ConvTransposeAttrs>();
  op.infer = conv_transpose_rule<kDimensions>;
  op.kernel = conv_transpose_kernel;
  op.vjp = conv_transpose_vjp;
  op.prepacking = conv_transpose_prepacking();
  op.flops = [](const CostArgs& args) { return conv_flops(args.in[0], args.in[1]); };
  const std::vector<Example> examples = examples_of(kDimensions);
  for (std::size_t i = 0; i < examples.size(); ++i) {
    const Example& e = examples[i];
    const std::int64_t groups = e.x[kDimensions + 1] / e.filter[kDimensions];
    op.samples[i].attrs = ConvTransposeAttrs{e.attrs, {e.x.begin() + 1, e.x.end() - 1}, groups};
  }
  return op;
}

template <int kDimensions>
OpDef filter_grad_op() {
  OpDef op = row_of<kDimensions>("_filter_grad", {"x", "dy", "filter_like"}, {'x', 'y', 'f'});
  op.doc = "Gradient of a convolution with respect to the filter: over examples the fixed tree.";
  op.traits = kBackward;
  op.infer = conv_filter_grad_rule<kDimensions>;
  op.kernel = conv_filter_grad_kernel;
  op.tree = conv_filter_tree();
  op.vjp = filter_grad_vjp;
  op.type_only = 1u << 2;
  op.flops = [](const CostArgs& args) { return conv_flops(args.in[1], args.out[0]); };
  return op;
}

template <int kDimensions>
OpDef conv_bias_op() {
  OpDef op = conv_op<kDimensions>();
  op.name = op.with_bias;
  op.linearity = Linearity::kNone;
  op.with_bias.clear();
  op.doc =
      "activation(convolution of x and filter + bias) in one pass, with the bits of the "
      "separate steps.";
  op.min_arity = op.max_arity = 3;
  op.operands.push_back("bias");
  op.attrs = schema_of<ConvBiasAttrs>();
  op.infer = conv_bias_rule<kDimensions>;
  op.kernel = conv_bias_kernel;
  op.vjp = nullptr;
  op.decompose = bias_parts;
  Activation activation = Activation::kNone;
  for (Sample& sample : op.samples) {
    sample.shapes.push_back({sample.shapes[1].back()});
    if (!sample.batched.empty()) sample.batched.push_back(0);
    sample.attrs = ConvBiasAttrs{sample.attrs.as<WindowAttrs>(), activation};
    activation = Activation::kRelu;
  }
  return op;
}

template <int kDimensions>
void add_rows(std::vector<OpDef>& rows) {
  rows.push_back(conv_op<kDimensions>());
  rows.push_back(input_grad_op<kDimensions>());
  rows.push_back(filter_grad_op<kDimensions>());
  rows.push_back(conv_bias_op<kDimensions>());
  rows.push_back(conv_transpose_op<kDimensions>());
}

}  // namespace

std::vector<OpDef> conv_ops() {
  std::vector<OpDef> rows;
  add_rows<2>(rows);
  add_rows<3>(rows);
  for (OpDef& row : rows) row.traits |= kKnownSizes;
  return rows;
}

}  // namespace samegrad
