"""Exports of functions to other formats."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.export._to_onnx import to_onnx

__all__ = ["to_onnx"]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
