"""Weights of a model in PyTorch's names and layouts, and back."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from samegrad import keras
from samegrad._base.dtypes import kind_of
from samegrad._base.shown import shown
from samegrad._context.scopes import inside_function
from samegrad.convert._files import as_array, load
from samegrad.convert._layouts import Given, Layout, axes, layouts_of
from samegrad.convert._names import NameMap, matches_any, pattern_of
from samegrad.convert._paths import Owned, owners
from samegrad.train._trackable import Undo
from samegrad.train.module import Module

Array = npt.NDArray[Any]

# Counts the updates of a BatchNorm, which PyTorch reads only without a momentum.
_COUNTER = "num_batches_tracked"


@dataclass(frozen=True)
class _Entry:
    """A variable with its value, its layout, and the arrays that the layout makes of it."""

    variable: Any
    value: Array
    layout: Layout
    paths: tuple[str, ...]
    arrays: tuple[Array, ...]


@dataclass(frozen=True)
class _Piece:
    """An array of one entry that is an array of PyTorch, or a piece of one."""

    path: str
    array: Array


def to_torch(
    model: Any,
    names: Mapping[str, str] | None = None,
    layouts: Mapping[type, Given] | None = None,
) -> dict[str, Array]:
    """Return the weights of a model in the names and layouts of PyTorch.

    A path is made of the attributes and list indices that lead to a layer, as in PyTorch, and of
    the names of layers in functional and Sequential models. The last name is PyTorch's for this
    type of layer: `encoder.0.query.weight`. Kernels are transposed where PyTorch's are.

    Args:
        model: A built Keras model or layer, or a `tf.Module`.
        names: Name by pattern, both with placeholders: `{"encoder.{i}": "layer.{i}"}`. A pattern
            matches a path or its beginning up to a dot. The first that matches counts, and paths
            that match no pattern stay. `{i-1}` in a name shifts a number. Names that end in `[0]`,
            `[1]`, … are concatenated along the first axis.
        layouts: For classes of your own, name and order of axes by variable:
            `{Mixer: {"table": ("weight", (1, 0))}}`.

    Returns:
        NumPy arrays by name, in the dtypes of the variables.

    Raises:
        ValueError: The model is not built, a layer has no layout, or two arrays have one name.
        NotImplementedError: A layer computes what PyTorch's does not.

    Example:
        >>> import samegrad as tf
        >>> layers = tf.keras.layers
        >>> model = tf.keras.Sequential([tf.keras.Input((4,)), layers.Dense(3, name="head")])
        >>> weights = tf.convert.to_torch(model, names={"head": "classifier"})
        >>> {name: array.shape for name, array in weights.items()}
        {'classifier.weight': (3, 4), 'classifier.bias': (3,)}
    """
    _check_place("to_torch")
    pieces = _pieces(_entries("to_torch", model, layouts), NameMap("to_torch", names), "to_torch")
    return {
        name: np.array(held[0].array if len(held) == 1 else _joined(held), order="C")
        for name, held in pieces.items()
    }


def from_torch(
    model: Any,
    weights: Mapping[str, Any] | str | os.PathLike[str],
    names: Mapping[str, str] | None = None,
    ignore: Iterable[str] = (),
    layouts: Mapping[type, Given] | None = None,
) -> None:
    """Assign weights of PyTorch or Hugging Face to a model: all of them, or none.

    Floating-point arrays are cast to the dtype of their variable. Variables of a strategy get the
    value on all replicas.

    Args:
        model: A built Keras model or layer, or a `tf.Module`.
        weights: Arrays or tensors by name, as `state_dict()` returns them, or a path for `load`.
        names: Name in `weights` by pattern of the model's paths, as for `to_torch`.
        ignore: Patterns of names in `weights` that are neither read nor expected: `["cls"]`.
        layouts: Layouts of classes of your own, as for `to_torch`.

    Raises:
        ValueError: Names are missing or left over, or shapes or dtypes differ. The message lists
            all of them, and nothing has been assigned. Also as for `to_torch` and `load`.
        NotImplementedError: A layer computes what PyTorch's does not.

    Example:
        >>> import numpy as np
        >>> import samegrad as tf
        >>> layers = tf.keras.layers
        >>> model = tf.keras.Sequential([tf.keras.Input((2,)), layers.Dense(1, name="head")])
        >>> weights = {"fc.weight": np.array([[1.0, 2.0]]), "fc.bias": np.array([3.0])}
        >>> tf.convert.from_torch(model, weights, names={"head": "fc"})
        >>> model(np.ones((1, 2))).numpy()
        array([[6.]], dtype=float32)
    """
    op_name = "from_torch"
    _check_place(op_name)
    if isinstance(weights, str | os.PathLike):
        weights = load(weights)
    if not isinstance(weights, Mapping):
        raise TypeError(
            f"[{op_name}] weights must be arrays by name, or the path of a file: got "
            f"{shown(weights)}; give module.state_dict()."
        )
    entries = _entries(op_name, model, layouts)
    name_map = NameMap(op_name, names)
    pieces = _pieces(entries, name_map, op_name)
    ignored = [
        pattern_of(one, op_name) for one in ([ignore] if isinstance(ignore, str) else ignore)
    ]
    found = _Matched(
        {name: held for name, held in pieces.items() if not matches_any(name, ignored)},
        {name: as_array(v) for name, v in weights.items() if not matches_any(name, ignored)},
    )
    found.check(op_name, name_map.unused())
    with Undo() as undo:
        for entry in entries:
            if entry.variable is not None and all(path in found.arrays for path in entry.paths):
                arrays = tuple(found.arrays[path] for path in entry.paths)
                value = entry.layout.back(arrays, entry.value.shape)
                undo.add(partial(entry.variable.assign, entry.value))
                entry.variable.assign(np.array(value, entry.value.dtype, order="C"))


def _check_place(op_name: str) -> None:
    if inside_function():
        raise RuntimeError(
            f"[{op_name}] weights must be converted outside of functions and Strategy.run: got a "
            "call inside; convert them before the step."
        )


def _entries(op_name: str, model: Any, layouts: Mapping[type, Given] | None) -> list[_Entry]:
    if not isinstance(model, keras.layers.Layer | Module):
        raise TypeError(
            f"[{op_name}] model must be a Keras model or layer, or a tf.Module: got "
            f"{shown(model)}; pass the object that owns the layers."
        )
    if not getattr(model, "built", True):
        raise ValueError(
            f"[{op_name}] the model must be built: got {model.name!r} without variables; call it "
            "on a batch first."
        )
    held: dict[int, tuple[Owned, str, Any, Layout | None]] = {}
    for owned in owners(model):
        known = layouts_of(owned.owner, layouts or {})
        for name, variable in owned.variables.items():
            layout = known.get(name)
            # A layer may also hold a variable of its sublayer, whose layout is known.
            if id(variable) not in held or (layout and held[id(variable)][3] is None):
                held[id(variable)] = (owned, name, variable, layout)
        if isinstance(owned.owner, keras.layers.BatchNormalization):
            held[id(owned.owner)] = (owned, _COUNTER, None, axes(_COUNTER))
    return [
        _entry(owned, variable, layout or _plain_layout(op_name, owned, name, variable))
        for owned, name, variable, layout in held.values()
    ]


def _plain_layout(op_name: str, owned: Owned, name: str, variable: Any) -> Layout:
    """Return the layout of a variable of a class that is not known: one axis has one order."""
    if len(variable.shape) < 2:
        return axes(name)
    kind = type(owned.owner).__name__
    shape = tuple(variable.shape)
    raise ValueError(
        f"[{op_name}] a layer must have a known layout: got {kind} at {owned.path!r} with the "
        f"variable {name!r} of shape {shape}; pass layouts={{{kind}: {{{name!r}: "
        f"({name!r}, {tuple(range(len(shape)))})}}}}, with the axes in PyTorch's order."
    )


def _entry(owned: Owned, variable: Any, layout: Layout) -> _Entry:
    value = np.zeros((), np.int64) if variable is None else variable.numpy()
    prefix = f"{owned.path}." if owned.path else ""
    paths = tuple(f"{prefix}{name}{owned.suffix}" for name in layout.names)
    return _Entry(variable, value, layout, paths, layout.out(value))


def _pieces(entries: list[_Entry], name_map: NameMap, op_name: str) -> dict[str, list[_Piece]]:
    """Return the arrays by PyTorch's name, several where they are pieces of one.

    Raises:
        ValueError: Two arrays have the same name, or a piece is missing.
    """
    found: dict[str, dict[int | None, _Piece]] = {}
    for entry in entries:
        for path, array in zip(entry.paths, entry.arrays, strict=True):
            name, number = name_map(path)
            held = found.setdefault(name, {})
            if number in held or (held and None in (number, *held)):
                raise ValueError(
                    f"[{op_name}] names must give each array a name of its own: got {name!r} for "
                    f"{path!r} and {next(iter(held.values())).path!r}; number the pieces of one "
                    "array, as in 'qkv[0]'."
                )
            held[number] = _Piece(path, array)
    for name, held in found.items():
        if None not in held and sorted(held, key=int) != [*range(len(held))]:  # type: ignore[arg-type]
            raise ValueError(
                f"[{op_name}] the pieces of an array must be numbered from 0: got "
                f"{sorted(held, key=int)} for {name!r}; name all pieces."  # type: ignore[arg-type]
            )
    return {
        name: [held[key] for key in sorted(held, key=lambda n: n or 0)]
        for name, held in found.items()
    }


def _joined(held: list[_Piece]) -> Array:
    return np.concatenate([piece.array for piece in held])


class _Matched:
    """Arrays of PyTorch by the path of the model that takes them.

    Attributes:
        arrays: Arrays by path.
    """

    def __init__(self, pieces: Mapping[str, list[_Piece]], weights: Mapping[str, Array]) -> None:
        self.arrays: dict[str, Array] = {}
        self._wrong: list[str] = []
        self._missing = [
            f"{name} {_shape_of(held)}{_for(name, held)}"
            for name, held in pieces.items()
            if name not in weights and not _is_counter(held)
        ]
        self._unexpected = [
            f"{name} {array.shape}" for name, array in weights.items() if name not in pieces
        ]
        for name, held in pieces.items():
            if name in weights:
                self._match(name, held, weights[name])

    def _match(self, name: str, held: list[_Piece], array: Array) -> None:
        if array.shape != (needed := _shape_of(held)):
            self._wrong.append(f"{name} {array.shape} instead of {needed}{_for(name, held)}")
        elif not _fits(array, held[0].array.dtype):
            dtypes = f"{array.dtype} instead of {held[0].array.dtype}"
            self._wrong.append(f"{name} {dtypes}{_for(name, held)}")
        elif len(held) == 1:
            self.arrays[held[0].path] = array
        else:
            ends = np.cumsum([len(piece.array) for piece in held])[:-1]
            for piece, part in zip(held, np.split(array, ends), strict=True):
                self.arrays[piece.path] = part

    def check(self, op_name: str, unused: list[str]) -> None:
        """Raise a ValueError that lists all names that do not match.

        Args:
            op_name: Name of the public function.
            unused: Patterns of names that have matched no path of the model.
        """
        lists = {
            "missing": self._missing,
            "unexpected": self._unexpected,
            "another shape or dtype": self._wrong,
        }
        if not any(lists.values()):
            return
        counts = ", ".join(f"{len(lines)} {kind}" for kind, lines in lists.items() if lines)
        lists["pattern without a path"] = [repr(key) for key in unused]
        details = "".join(f"\n  {kind}: {line}" for kind, lines in lists.items() for line in lines)
        raise ValueError(
            f"[{op_name}] the weights must be those of the model: got {counts}; give names= to "
            f"rename, and ignore= for names to leave out. Nothing has been assigned.{details}"
        )


def _is_counter(held: list[_Piece]) -> bool:
    return held[0].path.rpartition(".")[2] == _COUNTER


def _shape_of(held: list[_Piece]) -> tuple[int, ...]:
    first = held[0].array
    if len(held) == 1:
        return first.shape
    return (sum(len(piece.array) for piece in held), *first.shape[1:])


def _for(name: str, held: list[_Piece]) -> str:
    paths = ", ".join(piece.path for piece in held)
    return "" if paths == name else f", for {paths}"


def _fits(array: Array, dtype: np.dtype[Any]) -> bool:
    """Tell whether the array can be cast: floating point to floating point, integers if exact."""
    kinds = {kind_of(array.dtype), kind_of(dtype)}
    if kinds == {"f"} or array.dtype == dtype:
        return True
    return kinds <= {"i", "u"} and bool((array.astype(dtype) == array).all())


__all__ = ["from_torch", "to_torch"]
