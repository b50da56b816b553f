"""`tf.dtypes`: the kinds of numbers, and conversions between them."""

from typing import TYPE_CHECKING

from samegrad._base.dtypes import (
    DType,
    as_dtype,
    bfloat16,
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
from samegrad._base.dtypes import bool_ as bool
from samegrad._base.dtypes import float64 as double
from samegrad._ops.arrays import cast
from samegrad._ops.more_arrays import saturate_cast
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of

__all__ = [
    "DType", "as_dtype", "bfloat16", "bool", "cast", "double", "float16", "float32", "float64",
    "half", "int8", "int16", "int32", "int64", "saturate_cast", "string", "uint8", "uint16",
    "uint32", "uint64",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
