"""Functions of neural networks: activations, convolutions, cross-entropies, loss scaling."""

from samegrad._boundary import guard
from samegrad._unknown import getattr_of
from samegrad.math import in_top_k, l2_normalize, sigmoid, softplus, tanh, top_k
from samegrad.nn._activations import (
    elu,
    gelu,
    leaky_relu,
    log_softmax,
    relu,
    relu6,
    selu,
    silu,
    softmax,
    softsign,
    swish,
)
from samegrad.nn._convolution import avg_pool, avg_pool2d, bias_add, conv2d, max_pool, max_pool2d
from samegrad.nn._cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
)
from samegrad.nn._loss_scaling import (
    compute_average_loss,
    compute_weighted_mean_loss,
    scale_regularization_loss,
)
from samegrad.nn._regularization import dropout, l2_loss

__all__ = [
    "avg_pool",
    "avg_pool2d",
    "bias_add",
    "compute_average_loss",
    "compute_weighted_mean_loss",
    "conv2d",
    "dropout",
    "elu",
    "gelu",
    "in_top_k",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "log_softmax",
    "max_pool",
    "max_pool2d",
    "relu",
    "relu6",
    "scale_regularization_loss",
    "selu",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "silu",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softplus",
    "softsign",
    "sparse_softmax_cross_entropy_with_logits",
    "swish",
    "tanh",
    "top_k",
]

__getattr__ = getattr_of(__name__)
guard(__name__)
