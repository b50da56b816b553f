"""Derivatives, under the names of tf.autodiff."""

from typing import TYPE_CHECKING

from samegrad._autodiff.forward import ForwardAccumulator
from samegrad._autodiff.tape import GradientTape
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of

__all__ = ["ForwardAccumulator", "GradientTape"]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
