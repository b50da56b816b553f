"""Images as tensors: resizing."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.image._resize import ResizeMethod, resize

__all__ = ["ResizeMethod", "resize"]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
