"""`tf.data`: datasets whose batches are gathered while a step runs."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.data import _fingerprint, _keeping, experimental
from samegrad.data._dataset import Dataset
from samegrad.data._files import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from samegrad.data._iterator import DatasetIterator as Iterator
from samegrad.data._options import Options, ThreadingOptions
from samegrad.data._structure import DatasetSpec
from samegrad.data.experimental import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY

__all__ = [
    "AUTOTUNE", "Dataset", "DatasetSpec", "FixedLengthRecordDataset", "INFINITE_CARDINALITY",
    "Iterator", "Options", "TFRecordDataset", "TextLineDataset",
    "ThreadingOptions", "UNKNOWN_CARDINALITY", "experimental",
]  # fmt: skip

_keeping.set_description(_fingerprint.description_of)
if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
