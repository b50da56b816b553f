"""keras.backend.nn: activations, convolutions, pooling, losses, attention."""

from __future__ import annotations

from samegrad._keras.nn.activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_shrink,
    hard_sigmoid,
    hard_silu,
    hard_tanh,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_shrink,
    softmax,
    softplus,
    softsign,
    sparse_plus,
    sparse_sigmoid,
    sparsemax,
    squareplus,
    tanh,
    tanh_shrink,
    threshold,
)
from samegrad._keras.nn.attention import dot_product_attention
from samegrad._keras.nn.convolutions import conv, conv_transpose, depthwise_conv, separable_conv
from samegrad._keras.nn.ctc import ctc_decode, ctc_loss
from samegrad._keras.nn.losses import (
    binary_crossentropy,
    categorical_crossentropy,
    multi_hot,
    one_hot,
    psnr,
    sparse_categorical_crossentropy,
)
from samegrad._keras.nn.normalization import batch_normalization, moments
from samegrad._keras.nn.patches import depth_to_space, fold, space_to_depth, unfold
from samegrad._keras.nn.pooling import (
    adaptive_average_pool,
    adaptive_max_pool,
    average_pool,
    max_pool,
)

__all__ = [
    "adaptive_average_pool", "adaptive_max_pool", "average_pool", "batch_normalization",
    "binary_crossentropy", "categorical_crossentropy", "celu", "conv", "conv_transpose",
    "ctc_decode", "ctc_loss", "depth_to_space", "depthwise_conv", "dot_product_attention", "elu",
    "fold", "gelu", "glu", "hard_shrink", "hard_sigmoid", "hard_silu", "hard_tanh", "leaky_relu",
    "log_sigmoid", "log_softmax", "max_pool", "moments", "multi_hot", "one_hot", "psnr", "relu",
    "relu6", "selu", "separable_conv", "sigmoid", "silu", "soft_shrink", "softmax", "softplus",
    "softsign", "space_to_depth", "sparse_categorical_crossentropy", "sparse_plus",
    "sparse_sigmoid", "sparsemax", "squareplus", "tanh", "tanh_shrink", "threshold", "unfold",
]  # fmt: skip
