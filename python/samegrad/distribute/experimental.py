"""Names that tf.distribute.experimental has."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.distribute._multi_worker import MultiWorkerMirroredStrategy
from samegrad.distribute._options import CommunicationOptions
from samegrad.distribute._tpu import ExperimentalTPUStrategy as TPUStrategy

__all__ = [
    "CommunicationOptions",
    "MultiWorkerMirroredStrategy",
    "TPUStrategy",
]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
