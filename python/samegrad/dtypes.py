"""`tf.dtypes`: the kinds of numbers, and conversions between them."""

from typing import TYPE_CHECKING

from samegrad._base.dtypes import (
    DType,
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from samegrad._base.dtypes import any_dtype as as_dtype
from samegrad._base.dtypes import bool_ as bool
from samegrad._base.dtypes import float64 as double
from samegrad._ops.complex_arrays import cast
from samegrad._ops.complex_arrays import complex_ as complex
from samegrad._ops.more_arrays import saturate_cast
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of

__all__ = [
    "DType", "as_dtype", "bfloat16", "bool", "cast", "complex", "complex128", "complex64",
    "double", "float16", "float32", "float64", "half", "int16", "int32", "int64", "int8",
    "saturate_cast", "string", "uint16", "uint32", "uint64", "uint8",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
