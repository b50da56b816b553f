"""keras.backend.numpy: what keras.ops has of NumPy, on samegrad's engine."""

from samegrad._keras.numpy.binary import (
    add, arctan2, clip, divide, divide_no_nan, floor_divide, fmax, fmin, fmod, gcd, heaviside,
    hypot, lcm, ldexp, logaddexp, logaddexp2, maximum, minimum, mod, multiply, nextafter, power,
    select, subtract, true_divide, where,
)  # fmt: skip
from samegrad._keras.numpy.creation import (
    arange, array, bartlett, blackman, empty, empty_like, eye, full, full_like, geomspace,
    hamming, hanning, identity, kaiser, linspace, logspace, meshgrid, ones, ones_like, tri,
    tril, triu, vander, zeros, zeros_like,
)  # fmt: skip
from samegrad._keras.numpy.elementwise import (
    abs, absolute, angle, arccos, arccosh, arcsin, arcsinh, arctan, arctanh, cbrt, ceil, conj,
    conjugate, copy, cos, cosh, deg2rad, exp, exp2, expm1, fabs, floor, i0, imag, isfinite,
    isinf, isnan, isneginf, isposinf, isreal, log, log10, log1p, log2, nan_to_num, negative,
    rad2deg, real, reciprocal, round, sign, signbit, sin, sinc, sinh, sqrt, square, tan, tanh,
    trunc, view,
)  # fmt: skip
from samegrad._keras.numpy.indexing import (
    diff, take, take_along_axis,
)  # fmt: skip
from samegrad._keras.numpy.joining import (
    append, array_split, concatenate, dsplit, dstack, hsplit, hstack, split, stack, vsplit,
    vstack,
)  # fmt: skip
from samegrad._keras.numpy.logic import (
    allclose, bitwise_and, bitwise_invert, bitwise_left_shift, bitwise_not, bitwise_or,
    bitwise_right_shift, bitwise_xor, equal, greater, greater_equal, isclose, isin, left_shift,
    less, less_equal, logical_and, logical_not, logical_or, logical_xor, not_equal, right_shift,
)  # fmt: skip
from samegrad._keras.numpy.products import (
    correlate, cross, dot, einsum, inner, kron, matmul, outer, slogdet, tensordot, vdot,
)  # fmt: skip
from samegrad._keras.numpy.reductions import (
    all, amax, amin, any, count_nonzero, cumprod, cumsum, max, min, nancumprod, nancumsum,
    nanmax, nanmin, nanprod, nansum, prod, ptp, sum,
)  # fmt: skip
from samegrad._keras.numpy.searching import (
    argmax, argmin, argpartition, argsort, bincount, digitize, histogram, nanargmax, nanargmin,
    nonzero, searchsorted, sort, unique,
)  # fmt: skip
from samegrad._keras.numpy.shapes import (
    broadcast_to, diag, diagflat, diagonal, expand_dims, flip, fliplr, flipud, moveaxis, ndim,
    pad, ravel, repeat, reshape, roll, rot90, size, squeeze, swapaxes, tile, trace, transpose,
    unravel_index,
)  # fmt: skip
from samegrad._keras.numpy.statistics import (
    average, corrcoef, mean, median, nanmean, nanmedian, nanpercentile, nanquantile, nanstd,
    nanvar, percentile, quantile, std, trapezoid, var,
)  # fmt: skip
from samegrad._keras.numpy.vectorizing import (
    vectorize,
)  # fmt: skip

__all__ = [
    "abs", "absolute", "add", "all", "allclose", "amax", "amin", "angle", "any", "append",
    "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh",
    "argmax", "argmin", "argpartition", "argsort", "array", "array_split", "average",
    "bartlett", "bincount", "bitwise_and", "bitwise_invert", "bitwise_left_shift",
    "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "blackman",
    "broadcast_to", "cbrt", "ceil", "clip", "concatenate", "conj", "conjugate", "copy",
    "corrcoef", "correlate", "cos", "cosh", "count_nonzero", "cross", "cumprod", "cumsum",
    "deg2rad", "diag", "diagflat", "diagonal", "diff", "digitize", "divide", "divide_no_nan",
    "dot", "dsplit", "dstack", "einsum", "empty", "empty_like", "equal", "exp", "exp2",
    "expand_dims", "expm1", "eye", "fabs", "flip", "fliplr", "flipud", "floor", "floor_divide",
    "fmax", "fmin", "fmod", "full", "full_like", "gcd", "geomspace", "greater", "greater_equal",
    "hamming", "hanning", "heaviside", "histogram", "hsplit", "hstack", "hypot", "i0",
    "identity", "imag", "inner", "isclose", "isfinite", "isin", "isinf", "isnan", "isneginf",
    "isposinf", "isreal", "kaiser", "kron", "lcm", "ldexp", "left_shift", "less", "less_equal",
    "linspace", "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2", "logical_and",
    "logical_not", "logical_or", "logical_xor", "logspace", "matmul", "max", "maximum", "mean",
    "median", "meshgrid", "min", "minimum", "mod", "moveaxis", "multiply", "nan_to_num",
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian",
    "nanmin", "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum", "nanvar", "ndim",
    "negative", "nextafter", "nonzero", "not_equal", "ones", "ones_like", "outer", "pad",
    "percentile", "power", "prod", "ptp", "quantile", "rad2deg", "ravel", "real", "reciprocal",
    "repeat", "reshape", "right_shift", "roll", "rot90", "round", "searchsorted", "select",
    "sign", "signbit", "sin", "sinc", "sinh", "size", "slogdet", "sort", "split", "sqrt",
    "square", "squeeze", "stack", "std", "subtract", "sum", "swapaxes", "take",
    "take_along_axis", "tan", "tanh", "tensordot", "tile", "trace", "transpose", "trapezoid",
    "tri", "tril", "triu", "true_divide", "trunc", "unique", "unravel_index", "vander", "var",
    "vdot", "vectorize", "view", "vsplit", "vstack", "where", "zeros", "zeros_like",
]  # fmt: skip
