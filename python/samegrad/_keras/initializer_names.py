"""Keras's initializers under the names that TensorFlow itself has for them."""

from samegrad._keras import register

initializers = register.load().initializers
constant_initializer = initializers.Constant
ones_initializer = initializers.Ones
random_normal_initializer = initializers.RandomNormal
random_uniform_initializer = initializers.RandomUniform
zeros_initializer = initializers.Zeros

__all__ = [
    "constant_initializer", "ones_initializer", "random_normal_initializer",
    "random_uniform_initializer", "zeros_initializer",
]  # fmt: skip
