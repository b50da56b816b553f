"""Critic and generator for images of 28 by 28 grey values from -1 to 1."""

from __future__ import annotations

from typing import Any

import samegrad as tf

NOISE = 64  # inputs of the generator
SIZE = 28


def create_critic(width: int) -> Any:
    """Images `[n, 28, 28, 1]` to scores `[n, 1]`.

    Nothing in it joins examples: the penalty is on the gradient of each example's own score, so
    batch normalization would make it another penalty (Gulrajani et al., 2017, section 4).

    Args:
        width: Channels of its first convolution.

    Example:
        >>> create_critic(4)(tf.zeros((3, 28, 28, 1))).shape
        (3, 1)
    """
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input((SIZE, SIZE, 1)),
            layers.Conv2D(width, 5, 2, "same"),
            layers.LeakyReLU(0.2),
            layers.Conv2D(2 * width, 5, 2, "same"),
            layers.LeakyReLU(0.2),
            layers.Conv2D(4 * width, 3, 2, "same"),
            layers.LeakyReLU(0.2),
            layers.Flatten(),
            layers.Dense(4 * width),
            layers.LeakyReLU(0.2),
            layers.Dense(1),
        ],
        name="critic",
    )


def create_generator(width: int) -> Any:
    """Noise `[n, NOISE]` to images `[n, 28, 28, 1]` from -1 to 1.

    Args:
        width: Channels before its last convolution.

    Example:
        >>> create_generator(4)(tf.zeros((3, NOISE))).shape
        (3, 28, 28, 1)
    """
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input((NOISE,)),
            layers.Dense(8 * width, use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.Dense(7 * 7 * 2 * width, use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.Reshape((7, 7, 2 * width)),
            layers.Conv2DTranspose(width, 5, 2, "same", use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.Conv2DTranspose(1, 5, 2, "same", activation="tanh"),
        ],
        name="generator",
    )
