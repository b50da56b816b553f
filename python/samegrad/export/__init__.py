"""Exports of functions to other formats."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.export._to_onnx import to_onnx
from samegrad.export._to_tensorflow import to_tensorflow

__all__ = ["to_onnx", "to_tensorflow"]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
