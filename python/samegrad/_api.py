"""The public names of samegrad; `samegrad` itself loads them, and the engine, when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samegrad import _core, config, debugging, distribute, errors, math, nest, random
from samegrad._autodiff.aggregation import VariableAggregation, VariableSynchronization
from samegrad._autodiff.clock import timestamp
from samegrad._autodiff.custom_gradient import custom_gradient, grad_pass_through, recompute_grad
from samegrad._autodiff.graph_gradients import gradients, hessians
from samegrad._autodiff.open_variable import install as _install_open_variables
from samegrad._autodiff.tape import GradientTape, UnconnectedGradients
from samegrad._autodiff.variable import Variable
from samegrad._autodiff.variable_parts import install as _install_parts
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
from samegrad._base.logger import get_logger
from samegrad._context.devices import DeviceSpec
from samegrad._context.scopes import (
    control_dependencies,
    device,
    executing_eagerly,
    get_current_name_scope,
    inside_function,
    name_scope,
)
from samegrad._context.state import init_scope
from samegrad._control.assertions import (
    Assert,
    assert_equal,
    assert_greater,
    assert_less,
)
from samegrad._control.control_flow import case, cond, switch_case, while_loop
from samegrad._control.shape_assertions import assert_rank
from samegrad._control.tensor_array import TensorArray
from samegrad._function.function import function
from samegrad._function.row_loops import foldl, foldr, map_fn, scan, vectorized_map
from samegrad._ops.bits import bitcast
from samegrad._ops.complex_arrays import (
    boolean_mask,
    broadcast_to,
    cast,
    concat,
    constant,
    convert_to_tensor,
    einsum,
    ensure_shape,
    expand_dims,
    eye,
    fill,
    gather,
    gather_nd,
    identity,
    is_tensor,
    matmul,
    ones,
    ones_like,
    pad,
    rank,
    repeat,
    reshape,
    reverse,
    roll,
    shape,
    size,
    split,
    squeeze,
    stack,
    stop_gradient,
    strided_slice,
    tensordot,
    tile,
    transpose,
    unstack,
    where,
    zeros,
    zeros_like,
)
from samegrad._ops.complex_arrays import complex_ as complex
from samegrad._ops.complex_arrays import slice_ as slice
from samegrad._ops.creation import linspace, meshgrid
from samegrad._ops.creation import range_ as range
from samegrad._ops.indexed_slices import IndexedSlices
from samegrad._ops.more_arrays import (
    broadcast_dynamic_shape,
    dynamic_stitch,
    get_static_value,
    group,
    guarantee_const,
    identity_n,
    is_symbolic_tensor,
    no_op,
    parallel_stack,
    saturate_cast,
    scalar_mul,
    shape_n,
    unravel_index,
)
from samegrad._ops.more_arrays import tuple_ as tuple
from samegrad._ops.norms import clip_by_global_norm, clip_by_norm, clip_by_value, norm
from samegrad._ops.printing import print_ as print
from samegrad._ops.python_calls import numpy_function, py_function
from samegrad._ops.scatter import (
    scatter_nd,
    tensor_scatter_nd_add,
    tensor_scatter_nd_max,
    tensor_scatter_nd_min,
    tensor_scatter_nd_sub,
)
from samegrad._ops.sequences import reverse_sequence, sequence_mask, unique_with_counts
from samegrad._ops.text_arrays import (
    dynamic_partition,
    one_hot,
    tensor_scatter_nd_update,
    unique,
)
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.ragged_spec import RaggedTensorSpec
from samegrad._tensor.shape import broadcast_static_shape
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
from samegrad.math import divide as realdiv
from samegrad.math._binary import truncatediv, truncatemod
from samegrad.math._more import histogram_fixed_width, histogram_fixed_width_bins
from samegrad.math._order import argsort, searchsorted, sort
from samegrad.nn._space_to_batch import (
    batch_to_space,
    required_space_to_batch_paddings,
    space_to_batch,
)
from samegrad.nn._space_to_batch import space_to_batch as space_to_batch_nd
from samegrad.tensorflow import install_as_tensorflow
from samegrad.train._fingerprint import FingerprintInfo, fingerprint, fingerprint_info
from samegrad.train._record import record_run
from samegrad.train.module import Module

if TYPE_CHECKING:
    from samegrad.testing._run_diff import RunDiff, diff_runs

__version__ = _core.__version__

_install_parts(Variable)
_install_open_variables()

# As an index: a new axis of size 1.
newaxis = None

_LATER = {
    **dict.fromkeys(("initializers", "losses", "metrics", "optimizers"), "samegrad.keras"),
    **dict.fromkeys(
        ("constant_initializer", "ones_initializer", "random_normal_initializer",
         "random_uniform_initializer", "zeros_initializer"),
        "samegrad._keras.initializer_names",
    ),
    **dict.fromkeys(("RunDiff", "diff_runs"), "samegrad.testing._run_diff"),
    "as_string": "samegrad.strings",
    "edit_distance": "samegrad.strings._distance",
}  # fmt: skip

__all__ = [  # packages are loaded by samegrad itself
    "Assert", "DType", "DeviceSpec", "FingerprintInfo", "GradientTape", "IndexedSlices", "Module",
    "RaggedTensor", "RaggedTensorSpec", "RunDiff", "SparseTensor", "Tensor", "TensorArray",
    "TensorShape", "TensorSpec", "UnconnectedGradients", "Variable", "VariableAggregation",
    "VariableSynchronization", "abs", "acos", "acosh", "add", "add_n", "argmax", "argmin",
    "argsort", "as_dtype", "as_string", "asin", "asinh", "assert_equal", "assert_greater",
    "assert_less", "assert_rank", "atan", "atan2", "atanh", "audio", "autodiff", "autograph",
    "batch_to_space", "bfloat16", "bitcast", "bitwise", "bool", "boolean_mask",
    "broadcast_dynamic_shape", "broadcast_static_shape", "broadcast_to", "case", "cast",
    "clip_by_global_norm", "clip_by_norm", "clip_by_value", "complex", "complex128", "complex64",
    "concat", "cond", "config", "constant", "constant_initializer", "control_dependencies",
    "convert", "convert_to_tensor", "cos", "cosh", "cumsum", "custom_gradient", "data", "debugging",
    "device", "diff_runs", "distribute", "divide", "double", "dtypes", "dynamic_partition",
    "dynamic_stitch", "edit_distance", "einsum", "ensure_shape", "equal", "errors",
    "executing_eagerly", "exp", "expand_dims", "experimental", "eye", "fill", "fingerprint",
    "fingerprint_info", "float16", "float32", "float64", "floor", "foldl", "foldr", "function",
    "gather", "gather_nd", "get_current_name_scope", "get_logger", "get_static_value",
    "grad_pass_through", "gradients", "greater", "greater_equal", "group", "guarantee_const",
    "half", "hessians", "histogram_fixed_width", "histogram_fixed_width_bins", "identity",
    "identity_n", "image", "init_scope", "initializers", "inside_function", "install_as_tensorflow",
    "int16", "int32", "int64", "int8", "io", "is_symbolic_tensor", "is_tensor", "keras", "less",
    "less_equal", "linalg", "linspace", "logical_and", "logical_not", "logical_or", "lookup",
    "losses", "map_fn", "math", "matmul", "maximum", "meshgrid", "metrics", "minimum", "multiply",
    "name_scope", "negative", "nest", "newaxis", "nn", "no_op", "norm", "not_equal",
    "numpy_function", "one_hot", "ones", "ones_initializer", "ones_like", "optimizers", "pad",
    "parallel_stack", "pow", "print", "py_function", "queue", "ragged", "random",
    "random_normal_initializer", "random_uniform_initializer", "range", "rank", "realdiv",
    "recompute_grad", "record_run", "reduce_all", "reduce_any", "reduce_logsumexp", "reduce_max",
    "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum", "repeat",
    "required_space_to_batch_paddings", "reshape", "reverse", "reverse_sequence", "roll", "round",
    "saturate_cast", "scalar_mul", "scan", "scatter_nd", "searchsorted", "sequence_mask", "sets",
    "shape", "shape_n", "sigmoid", "sign", "signal", "sin", "sinh", "size", "slice", "sort",
    "space_to_batch", "space_to_batch_nd", "sparse", "split", "sqrt", "square", "squeeze", "stack",
    "stop_gradient", "strided_slice", "string", "strings", "subtract", "summary", "switch_case",
    "sysconfig", "tan", "tanh", "tensor_scatter_nd_add", "tensor_scatter_nd_max",
    "tensor_scatter_nd_min", "tensor_scatter_nd_sub", "tensor_scatter_nd_update", "tensordot",
    "test", "testing", "tile", "timestamp", "tpu", "train", "transpose", "truediv", "truncatediv",
    "truncatemod", "tuple", "uint16", "uint32", "uint64", "uint8", "unique", "unique_with_counts",
    "unravel_index", "unstack", "vectorized_map", "version", "where", "while_loop", "zeros",
    "zeros_initializer", "zeros_like",
]  # fmt: skip

if not TYPE_CHECKING:
    # What imports Keras, or text, is loaded when it is asked for.
    __getattr__ = getattr_of("samegrad", _LATER)
guard("samegrad._api")
