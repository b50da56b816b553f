"""Names that tf.distribute.experimental has."""

from samegrad._unknown import getattr_of
from samegrad.distribute._elsewhere import (
    CentralStorageStrategy,
    MultiWorkerMirroredStrategy,
    ParameterServerStrategy,
    TPUStrategy,
)
from samegrad.distribute._options import CommunicationOptions

__all__ = [
    "CentralStorageStrategy",
    "CommunicationOptions",
    "MultiWorkerMirroredStrategy",
    "ParameterServerStrategy",
    "TPUStrategy",
]

__getattr__ = getattr_of(__name__)
