"""Checkpoints: saving and restoring the state of a training; and records of features."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.io._example import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)
from samegrad.train import _process_state as _process_state
from samegrad.train._checkpoint_options import CheckpointOptions
from samegrad.train._checkpoint_state import get_checkpoint_state
from samegrad.train._moving_average import ExponentialMovingAverage
from samegrad.train._reader import (
    CheckpointReader,
    list_variables,
    load_checkpoint,
    load_variable,
)
from samegrad.train._state_file import checkpoints_iterator, latest_checkpoint
from samegrad.train._storage import CorruptCheckpointError
from samegrad.train.checkpoint import Checkpoint
from samegrad.train.checkpoint_manager import CheckpointManager

__all__ = [
    "BytesList", "Checkpoint", "CheckpointManager", "CheckpointOptions", "CheckpointReader",
    "CorruptCheckpointError", "Example", "ExponentialMovingAverage", "Feature", "FeatureList",
    "FeatureLists", "Features", "FloatList", "Int64List", "SequenceExample",
    "checkpoints_iterator", "get_checkpoint_state", "latest_checkpoint", "list_variables",
    "load_checkpoint", "load_variable",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
