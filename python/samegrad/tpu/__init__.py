"""Names of tf.tpu, for programs that fall back to another strategy without a TPU."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.tpu import experimental

__all__ = ["experimental"]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
