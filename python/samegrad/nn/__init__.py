"""Functions of neural networks: activations, attention, convolutions, cross-entropies."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.math import (
    in_top_k,
    l2_normalize,
    log_softmax,
    sigmoid,
    softmax,
    softplus,
    softsign,
    tanh,
    top_k,
    zero_fraction,
)
from samegrad.math._order import approx_max_k, approx_min_k
from samegrad.nn import experimental
from samegrad.nn._activations import (
    crelu,
    elu,
    gelu,
    leaky_relu,
    relu,
    relu6,
    selu,
    silu,
    swish,
)
from samegrad.nn._adaptive_pooling import adaptive_average_pool, adaptive_max_pool
from samegrad.nn._attention import dot_product_attention
from samegrad.nn._convolution import (
    atrous_conv2d,
    bias_add,
    conv1d,
    conv2d,
    conv3d,
    convolution,
    depthwise_conv2d,
    separable_conv2d,
)
from samegrad.nn._cross_entropy import (
    log_poisson_loss,
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
    weighted_cross_entropy_with_logits,
)
from samegrad.nn._ctc import (
    collapse_repeated,
    ctc_beam_search_decoder,
    ctc_greedy_decoder,
    ctc_loss,
)
from samegrad.nn._depth import depth_to_space, space_to_depth
from samegrad.nn._fractional_pooling import fractional_avg_pool, fractional_max_pool
from samegrad.nn._isotonic import isotonic_regression
from samegrad.nn._loss_normalization import (
    compute_average_loss,
    compute_weighted_mean_loss,
    scale_regularization_loss,
)
from samegrad.nn._morphology import dilation2d, erosion2d, max_pool_with_argmax
from samegrad.nn._normalization import (
    batch_normalization,
    embedding_lookup,
    local_response_normalization,
    moments,
    weighted_moments,
)
from samegrad.nn._normalization import local_response_normalization as lrn
from samegrad.nn._padded import mean_over_tokens, padded_accuracy, padded_cross_entropy_loss
from samegrad.nn._pooling import (
    avg_pool,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    pool,
)
from samegrad.nn._regularization import dropout, l2_loss
from samegrad.nn._sampled_losses import nce_loss, sampled_softmax_loss
from samegrad.nn._space_to_batch import space_to_batch
from samegrad.nn._sparse_embeddings import embedding_lookup_sparse, safe_embedding_lookup_sparse
from samegrad.nn._statistics import (
    batch_norm_with_global_normalization,
    normalize_moments,
    sufficient_statistics,
)
from samegrad.nn._transposed_convolution import (
    conv1d_transpose,
    conv2d_transpose,
    conv3d_transpose,
    conv_transpose,
    depthwise_conv2d_backprop_input,
)

__all__ = [
    "adaptive_average_pool",
    "adaptive_max_pool",
    "approx_max_k",
    "approx_min_k",
    "atrous_conv2d",
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm_with_global_normalization",
    "batch_normalization",
    "bias_add",
    "collapse_repeated",
    "compute_average_loss",
    "compute_weighted_mean_loss",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "conv_transpose",
    "convolution",
    "crelu",
    "ctc_beam_search_decoder",
    "ctc_greedy_decoder",
    "ctc_loss",
    "depth_to_space",
    "depthwise_conv2d",
    "depthwise_conv2d_backprop_input",
    "dilation2d",
    "dot_product_attention",
    "dropout",
    "elu",
    "embedding_lookup",
    "embedding_lookup_sparse",
    "erosion2d",
    "experimental",
    "fractional_avg_pool",
    "fractional_max_pool",
    "gelu",
    "in_top_k",
    "isotonic_regression",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "local_response_normalization",
    "log_poisson_loss",
    "log_softmax",
    "lrn",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_pool_with_argmax",
    "mean_over_tokens",
    "moments",
    "nce_loss",
    "normalize_moments",
    "padded_accuracy",
    "padded_cross_entropy_loss",
    "pool",
    "relu",
    "relu6",
    "safe_embedding_lookup_sparse",
    "sampled_softmax_loss",
    "scale_regularization_loss",
    "selu",
    "separable_conv2d",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "silu",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softplus",
    "softsign",
    "space_to_batch",
    "space_to_depth",
    "sparse_softmax_cross_entropy_with_logits",
    "sufficient_statistics",
    "swish",
    "tanh",
    "top_k",
    "weighted_cross_entropy_with_logits",
    "weighted_moments",
    "zero_fraction",
]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
