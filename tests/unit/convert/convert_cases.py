"""Inputs and sizes of the models whose weights the tests convert."""

from __future__ import annotations

import numpy as np

# Shapes of the inputs of layers, with the channels last.
SHAPES = {
    "dense": (2, 3, 4),
    "dense without bias": (2, 4),
    "einsum": (2, 3, 4),
    "conv1d": (2, 9, 4),
    "conv2d": (2, 7, 6, 4),
    "conv2d in groups": (2, 7, 6, 4),
    "conv2d with dilation": (2, 7, 6, 4),
    "conv3d": (2, 4, 4, 3, 4),
    "transposed conv1d": (2, 5, 4),
    "transposed conv2d": (2, 4, 5, 4),
    "transposed conv3d": (2, 3, 3, 2, 4),
    "depthwise conv1d": (2, 7, 4),
    "depthwise conv2d": (2, 5, 6, 4),
    "separable conv1d": (2, 7, 4),
    "separable conv2d": (2, 5, 6, 4),
    "batch normalization": (2, 3, 3, 4),
    "layer normalization": (2, 3, 4),
    "layer normalization of two axes": (2, 3, 4),
    "group normalization": (2, 3, 3, 4),
    "rms normalization": (2, 3, 4),
    "prelu": (2, 3, 3, 4),
    "embedding": (2, 5),
    "lstm": (2, 6, 4),
    "lstm without bias": (2, 6, 4),
    "gru": (2, 6, 4),
    "rnn": (2, 6, 4),
    "lstm of two layers": (2, 6, 4),
    "lstm in both directions": (2, 6, 4),
    "gru in both directions": (2, 6, 4),
    "attention": (2, 6, 4),
}
RESNET = {"width": 2, "classes": 5}
BERT = {
    "vocabulary": 60,
    "length": 24,
    "hidden": 32,
    "layers": 2,
    "heads": 4,
    "intermediate": 48,
}


def given_input(name):
    rng = np.random.default_rng(7)
    if name == "embedding":
        return rng.integers(0, 7, SHAPES[name])
    return rng.normal(size=SHAPES[name]).astype(np.float32)


def images():
    return np.random.default_rng(8).normal(size=(2, 64, 64, 3)).astype(np.float32)


def sentences():
    """Return tokens, their types, and the mask of the tokens without padding."""
    rng = np.random.default_rng(9)
    tokens = rng.integers(1, BERT["vocabulary"], (3, 11))
    types = np.repeat([[0, 1]], [6, 5], axis=1).repeat(3, axis=0)
    mask = np.arange(11) < np.array([[11], [7], [4]])
    return tokens, types, mask
