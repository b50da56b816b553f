"""Data sets that the tutorials use, as NumPy arrays.

Importing this package loads nothing; `load_data()` of a module reads the files, and downloads
them only when no copy is found on this computer.

Example:
    >>> from samegrad.keras import datasets
    >>> (x_train, y_train), (x_test, y_test) = datasets.fashion_mnist.load_data()
    >>> x_train.shape, y_test.shape
    ((60000, 28, 28), (10000,))
"""

from samegrad._keras.datasets import fashion_mnist, mnist

__all__ = ["fashion_mnist", "mnist"]
