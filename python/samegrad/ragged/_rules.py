"""Dispatch of public functions for ragged tensors.

A function that rejects its arguments, some of them ragged tensors, is looked up here: its rule
receives the function and the arguments. Functions that are not here take tensors of one length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from samegrad.math import _segments
from samegrad.ragged import _each, _gathered, _mapped, _moved, _reduced, _shaped

Rule = Callable[..., Any]
_ONE = (
    "bitwise.invert", "clip_by_value", "debugging.check_numerics", "dtypes.cast",
    "dtypes.saturate_cast", "identity", "image.adjust_brightness", "image.adjust_gamma",
    "image.convert_image_dtype", "math.abs", "math.acos", "math.acosh", "math.asin", "math.asinh",
    "math.atan", "math.atanh", "math.bessel_i0", "math.bessel_i0e", "math.bessel_i1",
    "math.bessel_i1e", "math.ceil", "math.cos", "math.cosh", "math.digamma", "math.erf",
    "math.erfc", "math.erfcinv", "math.erfinv", "math.exp", "math.expm1", "math.floor",
    "math.is_finite", "math.is_inf", "math.is_nan", "math.lgamma", "math.log", "math.log1p",
    "math.log_sigmoid", "math.logical_not", "math.ndtri", "math.negative", "math.reciprocal",
    "math.reciprocal_no_nan", "math.rint", "math.round", "math.rsqrt", "math.sigmoid",
    "math.sign", "math.sin", "math.sinh", "math.softplus", "math.softsign", "math.sqrt",
    "math.square", "math.tan", "math.tanh", "nn.elu", "nn.gelu", "nn.leaky_relu", "nn.relu",
    "nn.relu6", "nn.selu", "nn.silu", "ones_like", "stop_gradient", "strings.as_string",
    "strings.regex_full_match", "strings.substr", "strings.to_hash_bucket",
    "strings.to_hash_bucket_fast", "strings.to_hash_bucket_strong", "strings.unicode_transcode",
    "zeros_like",
)  # fmt: skip
_TWO = (
    "bitwise.bitwise_and", "bitwise.bitwise_or", "bitwise.bitwise_xor", "bitwise.left_shift",
    "bitwise.right_shift", "math.add", "math.atan2", "math.divide", "math.divide_no_nan",
    "math.equal", "math.floordiv", "math.floormod", "math.greater", "math.greater_equal",
    "math.less", "math.less_equal", "math.logical_and", "math.logical_or", "math.logical_xor",
    "math.maximum", "math.minimum", "math.multiply", "math.multiply_no_nan", "math.nextafter",
    "math.not_equal", "math.pow", "math.scalar_mul", "math.squared_difference", "math.subtract",
    "math.truediv", "math.xdivy", "math.xlog1py", "math.xlogy", "math.zeta",
    "nn.sigmoid_cross_entropy_with_logits",
)  # fmt: skip
_ASSERTIONS = (
    "equal", "greater", "greater_equal", "less", "less_equal", "near", "none_equal",
)  # fmt: skip
_PARTS = (
    "strings.bytes_split", "strings.split", "strings.unicode_decode", "strings.unicode_split",
)  # fmt: skip
# Functions whose first argument may be ragged.
_OF_FIRST: dict[str, Rule] = {
    "expand_dims": _moved.expand_dims,
    "math.bincount": _reduced.bincount,
    "math.cumsum": _reduced.cumsum,
    "math.reduce_all": _reduced.truth(_segments.unsorted_segment_min),
    "math.reduce_any": _reduced.truth(_segments.unsorted_segment_max),
    "math.reduce_logsumexp": _reduced.logsumexp,
    "math.reduce_max": _reduced.reduced(_segments.unsorted_segment_max),
    "math.reduce_mean": _reduced.mean,
    "math.reduce_min": _reduced.reduced(_segments.unsorted_segment_min),
    "math.reduce_prod": _reduced.reduced(_segments.unsorted_segment_prod),
    "math.reduce_std": _reduced.variance,
    "math.reduce_sum": _reduced.reduced(_segments.unsorted_segment_sum),
    "math.reduce_variance": _reduced.variance,
    "math.softmax": _reduced.softmax,
    "nn.dropout": _each.dropout,
    "one_hot": _each.one_hot,
    "rank": _each.rank,
    "reverse": _moved.reverse,
    "size": _each.size,
    "split": _moved.split,
    "squeeze": _moved.squeeze,
    "tile": _moved.tile,
    **dict.fromkeys(_PARTS, _moved.divided),
}
RULES: dict[str, Rule] = {
    **dict.fromkeys(_ONE, _each.each(1)),
    **dict.fromkeys(_TWO, _each.each(2)),
    **{f"debugging.assert_{name}": _each.checked for name in _ASSERTIONS},
    **{name: _each.only(rule) for name, rule in _OF_FIRST.items()},
    "broadcast_dynamic_shape": _shaped.broadcast_dynamic_shape,
    "broadcast_to": _shaped.broadcast_to,
    "concat": _moved.concat,
    "dynamic_partition": _moved.dynamic_partition,
    "fill": _shaped.filled,
    "gather": _gathered.gather,
    "gather_nd": _gathered.gather_nd,
    "map_fn": _mapped.map_fn,
    "math.add_n": _each.of_list,
    "matmul": _reduced.matmul,
    "ones": _shaped.filled,
    "nn.embedding_lookup": _each.only(_each.embedding_lookup, 1),
    "ragged.stack": _moved.stack,
    "reshape": _shaped.reshape,
    "shape": _shaped.shape,
    "stack": _moved.stack,
    "strings.join": _each.of_list,
    "where": _each.where,
    "zeros": _shaped.filled,
}
