"""Bessel functions, under the names of tf.math.special."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.math._special import bessel_i0, bessel_i0e, bessel_i1, bessel_i1e

__all__ = ["bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e"]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
