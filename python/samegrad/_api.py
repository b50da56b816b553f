"""The public names of samegrad; `samegrad` itself loads them, and the engine, when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samegrad import _core, config, debugging, distribute, errors, math, nest, random
from samegrad._autodiff.custom_gradient import custom_gradient, recompute_grad
from samegrad._autodiff.tape import GradientTape, UnconnectedGradients
from samegrad._autodiff.variable import Variable, VariableAggregation, VariableSynchronization
from samegrad._autodiff.variable_parts import IndexedSlices
from samegrad._autodiff.variable_parts import install as _install_parts
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
from samegrad._context.scopes import (
    control_dependencies,
    device,
    executing_eagerly,
    inside_function,
    name_scope,
)
from samegrad._context.state import init_scope
from samegrad._control.control_flow import case, cond, switch_case, while_loop
from samegrad._control.tensor_array import TensorArray
from samegrad._function.function import function
from samegrad._function.row_loops import foldl, foldr, map_fn, scan, vectorized_map
from samegrad._ops.arrays import (
    broadcast_to,
    cast,
    concat,
    expand_dims,
    identity,
    matmul,
    one_hot,
    pad,
    rank,
    repeat,
    reshape,
    reverse,
    shape,
    size,
    split,
    squeeze,
    stack,
    stop_gradient,
    tile,
    transpose,
    unstack,
    where,
)  # fmt: skip
from samegrad._ops.arrays import slice_ as slice
from samegrad._ops.contractions import einsum, tensordot
from samegrad._ops.creation import eye, fill, linspace, meshgrid, ones, ones_like, zeros, zeros_like
from samegrad._ops.creation import range_ as range
from samegrad._ops.gather import boolean_mask, gather, gather_nd
from samegrad._ops.norms import clip_by_global_norm, clip_by_norm, clip_by_value, norm
from samegrad._ops.printing import print_ as print
from samegrad._ops.python_calls import numpy_function, py_function
from samegrad._ops.scatter import (
    scatter_nd,
    tensor_scatter_nd_add,
    tensor_scatter_nd_max,
    tensor_scatter_nd_min,
    tensor_scatter_nd_sub,
    tensor_scatter_nd_update,
)
from samegrad._ops.sequences import (
    reverse_sequence,
    roll,
    sequence_mask,
    unique,
    unique_with_counts,
)
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad._tensor.given import constant, convert_to_tensor, is_tensor
from samegrad._tensor.sparse import SparseTensor
from samegrad._tensor.spec import TensorSpec
from samegrad._tensor.tensor import Tensor, TensorShape
from samegrad.config._build import sysconfig
from samegrad.math import (
    abs,
    acos,
    acosh,
    add,
    add_n,
    argmax,
    argmin,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    cumsum,
    divide,
    equal,
    exp,
    floor,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    pow,
    reduce_all,
    reduce_any,
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
    round,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    truediv,
)  # fmt: skip
from samegrad.math._more import histogram_fixed_width, histogram_fixed_width_bins
from samegrad.math._order import argsort, searchsorted, sort
from samegrad.train.module import Module

__version__ = _core.__version__

_install_parts(Variable)

# As an index: a new axis of size 1.
newaxis = None

__all__ = [  # packages are loaded by samegrad itself
    "DType", "GradientTape", "IndexedSlices", "Module", "SparseTensor", "Tensor", "TensorArray",
    "TensorShape", "TensorSpec", "UnconnectedGradients", "Variable", "VariableAggregation",
    "VariableSynchronization", "abs", "acos", "acosh", "add", "add_n", "argmax", "argmin",
    "argsort", "as_dtype", "asin", "asinh", "atan", "atan2", "atanh", "audio", "autodiff",
    "autograph", "bfloat16", "bitwise", "bool", "boolean_mask", "broadcast_to", "case", "cast",
    "clip_by_global_norm", "clip_by_norm", "clip_by_value", "concat", "cond", "config",
    "constant", "control_dependencies", "convert_to_tensor", "cos", "cosh", "cumsum",
    "custom_gradient", "data", "debugging", "device", "distribute", "divide", "einsum", "equal",
    "errors", "executing_eagerly", "exp", "expand_dims", "experimental", "eye", "fill", "float16",
    "float32", "float64", "floor", "foldl", "foldr", "function", "gather", "gather_nd", "greater",
    "greater_equal", "half", "histogram_fixed_width", "histogram_fixed_width_bins", "identity",
    "image", "init_scope", "inside_function", "int16", "int32", "int64", "int8", "is_tensor",
    "keras", "less", "less_equal", "linalg", "linspace", "logical_and", "logical_not",
    "logical_or", "map_fn", "math", "matmul", "maximum", "meshgrid", "minimum", "multiply",
    "name_scope", "negative", "nest", "newaxis", "nn", "norm", "not_equal", "numpy_function",
    "one_hot", "ones", "ones_like", "pad", "pow", "print", "py_function", "random",
    "range", "rank", "recompute_grad", "reduce_all", "reduce_any", "reduce_logsumexp",
    "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum", "repeat", "reshape",
    "reverse", "reverse_sequence", "roll", "round", "scan", "scatter_nd", "searchsorted",
    "sequence_mask", "shape", "sigmoid", "sign", "sin", "sinh", "size", "slice", "sort", "sparse",
    "split", "sqrt", "square", "squeeze", "stack", "stop_gradient", "string", "subtract",
    "switch_case", "sysconfig", "tan", "tanh", "tensor_scatter_nd_add", "tensor_scatter_nd_max",
    "tensor_scatter_nd_min", "tensor_scatter_nd_sub", "tensor_scatter_nd_update", "tensordot",
    "testing", "tile", "train", "transpose", "truediv", "uint16", "uint32", "uint64", "uint8",
    "unique", "unique_with_counts", "unstack", "vectorized_map", "where", "while_loop", "zeros",
    "zeros_like",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = getattr_of("samegrad")
guard("samegrad._api")
