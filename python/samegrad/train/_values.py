"""Arrays of any object with state, by canonical paths that no process-wide counter changes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._base.tree import structures
from samegrad._ops.indexed_slices import IndexedSlices
from samegrad._tensor.composite import Composite
from samegrad._tensor.per_replica import PerReplica
from samegrad.train._node import Node
from samegrad.train._reader import checkpoint_at
from samegrad.train._storage import Json
from samegrad.train._stored_tree import read_tree
from samegrad.train._trackable import Trackable, build_tree, collect, is_trackable
from samegrad.train.checkpoint import provided_now

Array = npt.NDArray[Any]
_COMPONENTS = ("values", "indices", "row_splits", "dense_shape")  # of sparse and ragged tensors
_NUMBERS = (np.ndarray, np.generic, bool, int, float, complex)


class Values(NamedTuple):
    """Arrays of an object and the process that computed them.

    Args:
        arrays: Arrays by path, sorted by path, without the names that all paths begin with.
        prefix: These names.
        provided: Versions and settings as a checkpoint's manifest records them.
        stored: True if the arrays were read from a checkpoint folder.
    """

    arrays: dict[str, Array]
    prefix: tuple[str, ...]
    provided: Mapping[str, Json]
    stored: bool


def values_of(subject: Any, op_name: str) -> Values:
    """Return the arrays of an object by canonical path.

    A path lists the names from the root to the array, as in checkpoints. An object that several
    paths reach has the one with the fewest names, and of these the first in alphabetical order.
    Leading names that all paths have in common are left out: they belong to the container.

    Args:
        subject: Model, optimizer, variable, tensor, array, a structure of these, or the path of a
            checkpoint folder.
        op_name: Name of the public function, for messages.

    Raises:
        TypeError: A part is not numeric.
        ValueError: There is no array, or a structure contains itself.
        CorruptCheckpointError: A file of the checkpoint is missing, truncated or altered.
    """
    stored = isinstance(subject, str | os.PathLike)
    if stored:
        tree, found = read_tree(checkpoint_at(subject, op_name))
        provided = found or {}
    else:
        with _core.HeldState():  # the state of one step, even if another thread trains
            tree = _tree_of(subject, op_name)
        provided = provided_now()
    arrays, prefix = _canonical(tree)
    if not arrays:
        raise ValueError(
            f"[{op_name}] the object must have at least one array: got {shown(subject)}; build a "
            "model, or call an optimizer, before its values are read."
        )
    return Values(arrays, prefix, provided, stored)


def canonical_nan(array: Array) -> Array:
    """Return the array with one bit pattern for all NaN of its dtype: quiet, positive, payload 0.

    Example:
        >>> canonical_nan(np.array([1.0, -np.nan], np.float32)).view(np.uint32).tolist()[1]
        2143289344
    """
    if array.dtype.kind == "c":
        parts = np.ascontiguousarray(array).reshape(-1).view(array.real.dtype)
        return canonical_nan(parts).view(array.dtype).reshape(array.shape)
    if array.dtype.kind in "biu":
        return array
    unknown = np.isnan(array)
    return np.where(unknown, array.dtype.type("nan"), array) if unknown.any() else array


def _tree_of(subject: Any, op_name: str) -> Node:
    leaves, aliases = collect(_root_of(subject, op_name))
    try:
        return build_tree(leaves, aliases)
    except ValueError as error:
        raise ValueError(
            f"[{op_name}] the names of all values must not be too many: got {error}; stack many "
            "numbers into one array."
        ) from error


def _canonical(tree: Node) -> tuple[dict[str, Array], tuple[str, ...]]:
    """Return the arrays of a tree by path, and the prefix that the paths have lost.

    The walk is breadth-first, so that each object has its shortest path.
    """
    found: dict[tuple[str, ...], Array] = {}
    seen = {id(tree)}
    level: list[tuple[tuple[str, ...], Node]] = [((), tree)]
    while level:
        below = []
        for names, node in level:
            if node.has_value and isinstance(node.value, np.ndarray):
                found[names] = node.value
            for name in sorted(node.children):
                child = node.children[name]
                if id(child) not in seen:
                    seen.add(id(child))
                    below.append(((*names, name), child))
        level = below
    columns = zip(*found, strict=False)
    common = itertools.takewhile(lambda column: len(set(column)) == 1, columns)
    prefix = tuple(column[0] for column in common)
    named = {"/".join(names[len(prefix) :]): array for names, array in found.items()}
    return dict(sorted(named.items())), prefix


class _Part:
    """A structure, or a value without state of its own, as a trackable object."""

    def __init__(self, parts: Mapping[str, Any]) -> None:
        self._parts = parts

    def _checkpoint_state(self) -> Mapping[str, Any]:
        return self._parts

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        raise AssertionError("values are only read")


def _root_of(subject: Any, op_name: str) -> Trackable:
    part = _part_of(subject, op_name, ())
    return part if is_trackable(part) else _Part({"": part})


def _part_of(value: Any, op_name: str, owners: tuple[int, ...]) -> Any:
    """Return an array or a trackable object."""
    if is_trackable(value):
        return value
    parts = _parts_of(value)
    if parts is None:
        return _array_of(value, op_name)
    if id(value) in owners:
        raise ValueError(
            f"[{op_name}] a structure must not contain itself: got a {type(value).__name__} that "
            "does; pass its parts."
        )
    found: dict[str, Any] = {}
    for key, part in parts:
        if str(key) in found:
            raise ValueError(
                f"[{op_name}] the keys of a dict must differ as strings: got {key!r} twice; rename "
                "one."
            )
        if part is not None:
            found[str(key)] = _part_of(part, op_name, (*owners, id(value)))
    return _Part(found)


def _parts_of(value: Any) -> list[tuple[Any, Any]] | None:
    """Return the named parts of a structure or of a composite tensor; None for a leaf."""
    if isinstance(value, Composite | IndexedSlices):
        named = [(name, getattr(value, name, None)) for name in _COMPONENTS]
        return [(name, part) for name, part in named if part is not None]
    if isinstance(value, Mapping):
        return list(value.items())
    if structures.is_nested(value):
        return list(enumerate(structures.parts(value)))
    return None


def _array_of(value: Any, op_name: str) -> Array:
    readable = isinstance(value, _NUMBERS) or hasattr(type(value), "__array__")
    if readable and not isinstance(value, PerReplica):
        array = np.asarray(value.numpy() if isinstance(value, _core.Tensor) else value)
        if _is_number(array.dtype):
            return array
    hint = "reduce it over the replicas" if isinstance(value, PerReplica) else "leave it out"
    raise TypeError(
        f"[{op_name}] values must be models, optimizers, variables, tensors, arrays or numbers, or "
        f"structures of them: got {shown(value)}; {hint}."
    )


def _is_number(dtype: np.dtype[Any]) -> bool:
    """Tell if the bytes of a dtype have the same meaning on every machine."""
    sizes = {"b": 1, "i": 8, "u": 8, "f": 8, "c": 16}
    return dtype.itemsize <= sizes.get(dtype.kind, 0) or dtype.name == "bfloat16"
