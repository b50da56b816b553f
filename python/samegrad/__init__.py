"""samegrad: one model, any number of replicas, the bits of one device."""

from __future__ import annotations

import importlib
import types
from typing import Any

from samegrad import _core, config, distribute, errors, random
from samegrad._context import init_scope
from samegrad._dtypes import DType, as_dtype, float32, float64, int32, int64, uint8
from samegrad._dtypes import bool_ as bool
from samegrad._function import function
from samegrad._maths import FUNCTIONS as _FUNCTIONS
from samegrad._sysconfig import sysconfig
from samegrad._tape import GradientTape, UnconnectedGradients
from samegrad._tensor import Tensor, TensorShape, constant, convert_to_tensor, is_tensor
from samegrad._tensor_spec import TensorSpec
from samegrad._variable import Variable, VariableAggregation, VariableSynchronization

__version__ = _core.__version__
globals().update(_FUNCTIONS)
_LAZY = ("data", "keras", "nn", "train")

__all__ = [
    "DType", "GradientTape", "Tensor", "TensorShape", "TensorSpec", "UnconnectedGradients",
    "Variable", "VariableAggregation", "VariableSynchronization", "as_dtype", "bool", "config",
    "constant", "convert_to_tensor", "distribute", "errors", "float32", "float64", "function",
    "init_scope", "int32", "int64", "is_tensor", "random", "sysconfig", "uint8",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        module: types.ModuleType = importlib.import_module(f"samegrad.{name}")
        return module
    raise AttributeError(f"module 'samegrad' has no attribute {name!r}.")
