"""Mathematics on tensors, under the names of tf.math.

Elementwise functions broadcast as NumPy does and keep the example axis; a Python number takes the
dtype of the tensor it meets. All are differentiable to any order unless they return bools or
integers.
"""

from typing import TYPE_CHECKING

from samegrad._ops.more_arrays import invert_permutation, scalar_mul
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.math._binary import (
    atan2,
    floordiv,
    floormod,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    mod,
    xlogy,
)
from samegrad.math._complex import (
    abs,
    add,
    add_n,
    angle,
    conj,
    cos,
    cumsum,
    divide,
    divide_no_nan,
    equal,
    exp,
    imag,
    log,
    multiply,
    negative,
    not_equal,
    pow,
    real,
    reciprocal,
    reduce_mean,
    reduce_std,
    reduce_sum,
    reduce_variance,
    segment_mean,
    segment_sum,
    sign,
    sin,
    sqrt,
    square,
    squared_difference,
    subtract,
    tanh,
    truediv,
    unsorted_segment_sum,
)
from samegrad.math._counting import bincount, confusion_matrix
from samegrad.math._log_scans import cumulative_logsumexp
from samegrad.math._more import (
    accumulate_n,
    is_non_decreasing,
    is_strictly_increasing,
    polyval,
    rint,
    zero_fraction,
)
from samegrad.math._normalize import l2_normalize
from samegrad.math._order import approx_max_k, approx_min_k, in_top_k, top_k
from samegrad.math._reductions import (
    argmax,
    argmin,
    count_nonzero,
    reduce_all,
    reduce_any,
    reduce_euclidean_norm,
    reduce_logsumexp,
    reduce_max,
    reduce_min,
    reduce_prod,
)
from samegrad.math._scans import cumprod
from samegrad.math._segments import (
    segment_max,
    segment_min,
    segment_prod,
    unsorted_segment_max,
    unsorted_segment_mean,
    unsorted_segment_min,
    unsorted_segment_prod,
    unsorted_segment_sqrt_n,
)
from samegrad.math._softmax import log_softmax, softmax, softsign
from samegrad.math._special import (
    bessel_i0,
    bessel_i0e,
    bessel_i1,
    bessel_i1e,
    betainc,
    digamma,
    erfc,
    erfcinv,
    erfinv,
    igamma,
    igammac,
    lbeta,
    lgamma,
    multiply_no_nan,
    ndtri,
    nextafter,
    polygamma,
    reciprocal_no_nan,
    xdivy,
    xlog1py,
    zeta,
)
from samegrad.math._unary import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    ceil,
    cosh,
    erf,
    expm1,
    floor,
    is_finite,
    is_inf,
    is_nan,
    log1p,
    log_sigmoid,
    logical_not,
    round,
    rsqrt,
    sigmoid,
    sinh,
    softplus,
    tan,
)

__all__ = [
    "abs", "accumulate_n", "acos", "acosh", "add", "add_n", "angle", "approx_max_k", "approx_min_k",
    "argmax", "argmin", "asin", "asinh", "atan", "atan2", "atanh", "bessel_i0", "bessel_i0e",
    "bessel_i1", "bessel_i1e", "betainc", "bincount", "ceil", "confusion_matrix", "conj", "cos",
    "cosh", "count_nonzero", "cumprod", "cumsum", "cumulative_logsumexp", "digamma", "divide",
    "divide_no_nan", "equal", "erf", "erfc", "erfcinv", "erfinv", "exp", "expm1", "floor",
    "floordiv", "floormod", "greater", "greater_equal", "igamma", "igammac", "imag", "in_top_k",
    "invert_permutation", "is_finite", "is_inf", "is_nan", "is_non_decreasing",
    "is_strictly_increasing", "l2_normalize", "lbeta", "less", "less_equal", "lgamma", "log",
    "log1p", "log_sigmoid", "log_softmax", "logical_and", "logical_not", "logical_or",
    "logical_xor", "maximum", "minimum", "mod", "multiply", "multiply_no_nan", "ndtri", "negative",
    "nextafter", "not_equal", "polygamma", "polyval", "pow", "real", "reciprocal",
    "reciprocal_no_nan", "reduce_all", "reduce_any", "reduce_euclidean_norm", "reduce_logsumexp",
    "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_std", "reduce_sum",
    "reduce_variance", "rint", "round", "rsqrt", "scalar_mul", "segment_max", "segment_mean",
    "segment_min", "segment_prod", "segment_sum", "sigmoid", "sign", "sin", "sinh", "softmax",
    "softplus", "softsign", "sqrt", "square", "squared_difference", "subtract", "tan", "tanh",
    "top_k", "truediv", "unsorted_segment_max", "unsorted_segment_mean", "unsorted_segment_min",
    "unsorted_segment_prod", "unsorted_segment_sqrt_n", "unsorted_segment_sum", "xdivy", "xlog1py",
    "xlogy", "zero_fraction", "zeta",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
