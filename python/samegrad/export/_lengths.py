"""Open sizes of convolutions: programs that are the same for every length that is tried."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from samegrad._base.tree import flatten, map_structure
from samegrad._function.export import ExportedProgram
from samegrad._tensor.spec import TensorSpec
from samegrad.saved_model._functions import Saveable

# Even and odd ones, short and long ones; other axes have other numbers.
_TRIED = (18, 61, 62, 64, 129)
_LEAST = 4  # so many of them must be long enough
_APART = 5


def program_of_any_length(one: Saveable) -> ExportedProgram | None:
    """Return a program with open lengths that is equal for all lengths tried; None: they differ.

    An operation that needs a size while it is traced, such as a convolution, gets a number. If all
    numbers give the same program, it does not depend on the number.
    """
    found = []
    for length in _TRIED:
        args, kwargs = _fixed(one.args, length), _fixed(one.kwargs, length)
        try:
            found.append(one.program(args, kwargs))
        except (ValueError, TypeError, NotImplementedError):  # too short for a window
            continue
    if len(found) < _LEAST or len({json.dumps(_without_shapes(each)) for each in found}) > 1:
        return None
    first = found[0]
    _open(first.graph, [leaf for leaf in flatten((one.args, one.kwargs)) if _is_spec(leaf)])
    return first


def _is_spec(leaf: Any) -> bool:
    return isinstance(leaf, TensorSpec)


def _fixed(args: Any, length: int) -> Any:
    numbers = iter(range(length, length + 1000, _APART))

    def fix(leaf: Any) -> Any:
        if not _is_spec(leaf):
            return leaf
        sizes = [next(numbers) if axis in set(_lengths_of(leaf)) else size
                 for axis, size in enumerate(leaf.shape)]  # fmt: skip
        return TensorSpec(sizes, leaf.dtype, leaf.name)

    return map_structure(fix, args)


def _lengths_of(spec: TensorSpec) -> Iterator[int]:
    """Yield the open axes of a spec but that of the examples."""
    for axis, size in enumerate(spec.shape):
        if size is None and axis > 0:
            yield axis


def _without_shapes(traced: ExportedProgram) -> Any:
    """Return what a program does, without the types of its arguments."""
    arrays = [np.asarray(array.numpy()) for array in traced.constants]
    kinds = [one["kind"] for one in traced.graph["symbols"]]
    graph = {**traced.graph, "guards": [], "symbols": kinds}
    constants = [(array.dtype.name, array.shape, array.tobytes().hex()) for array in arrays]
    return _stripped(graph), constants


def _stripped(graph: Any) -> Any:
    if not isinstance(graph, dict):
        return graph
    found = dict(graph)
    found["sources"] = [{**one, "shape": len(one["shape"])} for one in graph["sources"]]
    found["nodes"] = [
        {**node, "regions": [_stripped(body) for body in node.get("regions", [])]}
        for node in graph["nodes"]
    ]
    return found


def _open(graph: Any, specs: list[TensorSpec]) -> None:
    """Give the lengths of the arguments symbols of their own."""
    for source in graph["sources"]:
        if "argument" not in source:
            continue
        for axis in _lengths_of(specs[source["argument"]]):
            source["shape"][axis] = f"s{len(graph['symbols'])}"
            graph["symbols"].append({"kind": "length"})
