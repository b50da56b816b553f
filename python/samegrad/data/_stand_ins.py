"""Elements of zeros, from which the specs of datasets without elements are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from samegrad._base.dtypes import string
from samegrad._tensor.spec import TensorSpec
from samegrad._tensor.tensor import Tensor
from samegrad._tensor.text import of_bytes
from samegrad.data._nodes import Node, Run
from samegrad.data._structure import Structure, common_spec, fill, leaves_of, map_leaves, spec_of


def spec_of_results(
    node: Node, child: Node, function: Callable[[Structure], Structure]
) -> tuple[Structure, Structure]:
    """The specs of what the function of a stage returns, and the first result if there is one.

    Without elements the function gets zeros and empty text in their shapes, twice where a size is
    not known: of 1 and of 2. What then differs is not known, either.

    Args:
        node: The stage.
        child: Where its elements come from.
        function: Returns an element of the stage for one of the child's.

    Raises:
        ValueError: There are no elements, and of zeros the function fails.
    """
    try:
        first = node.cursor(Run.of(node, 0, 0)).next()
    except StopIteration:
        return _spec_by_stand_ins(child.spec, function), None
    return map_leaves(spec_of, first), first


def first_or_stand_in(node: Node) -> Structure:
    """The first element of a stage, or zeros in its shapes."""
    try:
        return node.cursor(Run.of(node, 0, 0)).next()
    except StopIteration:
        return map_leaves(lambda spec: _zeros(spec, 1), node.spec)


def _zeros(spec: Any, unknown: int) -> Any:
    """A tensor or text of a spec, with this size where one is not known."""
    if not isinstance(spec, TensorSpec):
        raise TypeError(f"{spec} has no stand-in")
    sizes = [unknown if size is None else int(size) for size in spec.shape]
    if spec.dtype is string:
        return of_bytes(np.full(sizes, b"", object))
    return Tensor(np.zeros(sizes, spec.dtype.as_numpy_dtype), copy=False)


def _spec_by_stand_ins(spec: Structure, function: Callable[[Structure], Structure]) -> Structure:
    known = all(None not in leaf.shape for leaf in leaves_of(spec))
    try:
        one, two = (
            map_leaves(spec_of, function(map_leaves(lambda leaf, n=size: _zeros(leaf, n), spec)))
            for size in ((1, 1) if known else (1, 2))
        )
        pairs = zip(leaves_of(one), leaves_of(two), strict=True)
        return fill(one, [common_spec(a, b) for a, b in pairs])
    except Exception as error:
        raise ValueError(
            "[Dataset.element_spec] what a function returns is known from its first element, or "
            f"from one of zeros: got a dataset without elements, and for {spec} the function "
            f"raises {type(error).__name__}: {error!s:.200}."
        ) from error


__all__ = ["first_or_stand_in", "spec_of_results"]
