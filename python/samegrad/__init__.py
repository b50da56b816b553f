"""samegrad: one model, any number of replicas, the bits of one device."""

from __future__ import annotations

from samegrad import _core
from samegrad._core import InvalidArgumentError, NonFiniteError
from samegrad._dtypes import DType, as_dtype, float32, float64, int32, int64, uint8
from samegrad._dtypes import bool_ as bool
from samegrad._sysconfig import sysconfig
from samegrad._tape import GradientTape, UnconnectedGradients
from samegrad._tensor import Tensor, TensorShape, constant, convert_to_tensor, is_tensor
from samegrad._variable import Variable, VariableAggregation, VariableSynchronization

__version__ = _core.__version__

__all__ = [
    "DType", "GradientTape", "InvalidArgumentError", "NonFiniteError", "Tensor", "TensorShape",
    "UnconnectedGradients", "Variable", "VariableAggregation", "VariableSynchronization",
    "as_dtype", "bool", "constant", "convert_to_tensor", "float32", "float64", "int32", "int64",
    "is_tensor", "sysconfig", "uint8",
]  # fmt: skip
