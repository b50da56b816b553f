"""Layers, models, losses, metrics and optimizers, under the names of tf.keras."""

from samegrad._boundary import guard
from samegrad._unknown import getattr_of
from samegrad.keras import (
    activations,
    backend,
    datasets,
    initializers,
    layers,
    losses,
    metrics,
    mixed_precision,
    models,
    optimizers,
    regularizers,
    utils,
)
from samegrad.keras.layers import Input
from samegrad.keras.models import Model, Sequential

__all__ = [
    "Input",
    "Model",
    "Sequential",
    "activations",
    "backend",
    "datasets",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "mixed_precision",
    "models",
    "optimizers",
    "regularizers",
    "utils",
]

__getattr__ = getattr_of(__name__)
guard(__name__)
