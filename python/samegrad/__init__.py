"""samegrad: one model, any number of replicas, bitwise identical to single-device training."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from samegrad._base import keras_finder as _keras_finder
from samegrad._base import launchers as _launchers

if TYPE_CHECKING:
    from samegrad import audio as audio
    from samegrad import autodiff as autodiff
    from samegrad import autograph as autograph
    from samegrad import bitwise as bitwise
    from samegrad import compat as compat
    from samegrad import config as config
    from samegrad import convert as convert
    from samegrad import data as data
    from samegrad import debugging as debugging
    from samegrad import distribute as distribute
    from samegrad import dtypes as dtypes
    from samegrad import errors as errors
    from samegrad import experimental as experimental
    from samegrad import export as export
    from samegrad import image as image
    from samegrad import io as io
    from samegrad import keras as keras
    from samegrad import linalg as linalg
    from samegrad import lookup as lookup
    from samegrad import math as math
    from samegrad import nest as nest
    from samegrad import nn as nn
    from samegrad import queue as queue
    from samegrad import ragged as ragged
    from samegrad import random as random
    from samegrad import saved_model as saved_model
    from samegrad import sets as sets
    from samegrad import signal as signal
    from samegrad import sparse as sparse
    from samegrad import strings as strings
    from samegrad import summary as summary
    from samegrad import test as test
    from samegrad import testing as testing
    from samegrad import tpu as tpu
    from samegrad import train as train
    from samegrad import version as version
    from samegrad._api import *  # noqa: F403

_PACKAGES = frozenset({
    "audio", "autodiff", "autograph", "bitwise", "cli", "compat", "config", "convert", "data",
    "debugging", "distribute", "dtypes", "errors", "experimental", "export", "image", "io", "keras",
    "linalg", "lookup", "math", "nest", "nn", "queue", "ragged", "random", "saved_model", "sets",
    "signal", "sparse", "strings", "summary", "test", "testing", "tpu", "train", "version",
})  # fmt: skip


if not TYPE_CHECKING:  # a type checker knows the names

    def __getattr__(name: str) -> Any:
        """Loads what is asked for: `samegrad.testing` must not bring the engine along."""
        try:
            if name in _PACKAGES:
                return importlib.import_module(f"samegrad.{name}")
            if name.startswith("_") and name not in ("__all__", "__version__"):
                raise AttributeError(f"module 'samegrad' has no attribute {name!r}")
            value = getattr(importlib.import_module("samegrad._api"), name)
            globals()[name] = value
            return value
        except Exception as error:
            importlib.import_module("samegrad._base.tracebacks").keep_user_frames(error)
            raise


_keras_finder.install()

if _launchers.launched().size > 1:
    # A rank that fails before its first strategy would leave the others waiting for it in MPI.
    _previous_hook = sys.excepthook

    def _end_all(kind: Any, error: BaseException, trace: Any) -> None:
        job = importlib.import_module("samegrad.distribute._job")
        job.show_failure(_previous_hook, kind, error, trace)

    sys.excepthook = _end_all


def __dir__() -> list[str]:
    names = importlib.import_module("samegrad._api").__all__
    return sorted({*names, *_PACKAGES, "__version__"} - {"cli", "compat"})
