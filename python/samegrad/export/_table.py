"""Table of operations: a function that emits nodes for each, or the reason why none does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from samegrad.export._builder import Builder
from samegrad.export._sizes import Sizes
from samegrad.export._values import Missing, Ref, RefusedError, Value


class Call(NamedTuple):
    """One node of the traced graph.

    Attributes:
        builder: Where nodes go.
        sizes: The symbols of the graph.
        inputs: The operands.
        attributes: Those of the node.
        regions: Its bodies, each a function of operands that emits its nodes and returns results.
        results: The number of results.
    """

    builder: Builder
    sizes: Sizes
    inputs: list[Any]
    attributes: dict[str, Any]
    regions: list[Callable[..., list[Any]]]
    results: int

    def ref(self, index: int) -> Ref:
        """Return an operand in the layout of the traced graph."""
        return self.builder.plain(self.inputs[index])

    def value(self, index: int) -> Value:
        """Return an operand that has sizes.

        Raises:
            RefusedError: The format lacks it.
        """
        found = self.inputs[index]
        if isinstance(found, Missing):
            raise RefusedError(found.reason)
        return found  # type: ignore[no-any-return]


Row = Callable[[Call], Any]
ROWS: dict[str, Row] = {}  # with operators of ONNX, for all formats
TENSORFLOW_ROWS: dict[str, Row] = {}  # with operations of TensorFlow, in place of the above


class Target(NamedTuple):
    """Format of exports.

    Attributes:
        format: Its name.
        function: The name of the public function that exports to it.
        rows: The functions by operation.
        opset: The version of ONNX's operator set.
    """

    format: str
    function: str
    rows: Mapping[str, Row]
    opset: int = 18


def row(*names: str, rows: dict[str, Row] = ROWS) -> Callable[[Row], Row]:
    """Enter a function in a table under the names of operations."""

    def enter(function: Row) -> Row:
        for name in names:
            rows[name] = function
        return function

    return enter


def elementwise(
    *names: str, rows: dict[str, Row] = ROWS
) -> Callable[[Callable[..., Ref]], Callable[..., Ref]]:
    """Enter an elementwise operation: a function of a builder and tensors in one layout."""

    def enter(function: Callable[..., Ref]) -> Callable[..., Ref]:
        def emit(call: Call) -> Value:
            return call.builder.elementwise(function, call.inputs)

        row(*names, rows=rows)(emit)
        return function

    return enter


def _each(reason: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), reason)


_DRAWS = " ".join(
    f"{prefix}random_{kind}{suffix}"
    for prefix in ("", "stateless_")
    for kind in ("uniform", "normal", "truncated_normal", "integers")
    for suffix in ("", "_like")
)
REFUSED: dict[str, str] = {
    **_each("{format} has no draws that repeat ours", f"random_key {_DRAWS}"),
    **_each(
        "{format} has no matrix decompositions that repeat ours",
        "cholesky triangular_solve matrix_solve matrix_inverse slogdet lu matrix_exponential qr "
        "svd singular_values eigh eigvalsh",
    ),
    **_each(
        "{format} has no such special function",
        "igamma_grad_a next_after lgamma digamma polygamma zeta erfc erfinv ndtri bessel_i0e "
        "bessel_i1e igamma igammac betainc",
    ),
    **_each(
        "gradients are not exported",
        "slice_grad concat_grad sparse_softmax_cross_entropy_grad conv2d_input_grad "
        "conv2d_filter_grad conv3d_input_grad conv3d_filter_grad max_pool2d_grad max_pool2d_take "
        "avg_pool2d_grad take_along_axis_grad dot_product_attention_grad add_histories "
        "gradient_by_call",
    ),
    **_each(
        "one device has no other replicas",
        "all_gather reduce_scatter",
    ),
    **_each(
        "the engine's passes make it, and graphs are exported before them",
        "fused_elementwise fused_rows of_trace trace_of_count run_on_replicas",
    ),
    **_each("an exported model has no output to a terminal", "print"),
    **_each("{format} does not tell the last of several equal indices", "segment_last"),
}
