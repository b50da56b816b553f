"""Names that tf.distribute.experimental has."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.distribute._multi_worker import (
    ExperimentalMultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy,
)
from samegrad.distribute._one_device import CentralStorageStrategy
from samegrad.distribute._options import (
    CollectiveHints,
    CommunicationImplementation,
    CommunicationOptions,
)
from samegrad.distribute._options import CommunicationImplementation as CollectiveCommunication
from samegrad.distribute._strategy import ValueContext
from samegrad.distribute._tpu import ExperimentalTPUStrategy as TPUStrategy

__all__ = [
    "CentralStorageStrategy",
    "CollectiveCommunication",
    "CollectiveHints",
    "CommunicationImplementation",
    "CommunicationOptions",
    "MultiWorkerMirroredStrategy",
    "TPUStrategy",
    "ValueContext",
]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
