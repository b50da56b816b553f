"""keras.backend.core: conversion, shapes, and control flow."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from keras.src import tree
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.common.stateless_scope import StatelessScope
from keras.src.backend.common.symbolic_scope import SymbolicScope
from keras.src.backend.common.variables import is_int_dtype, standardize_dtype

import samegrad as tf
from samegrad import _core
from samegrad._base.dtypes import is_plain_number
from samegrad._tensor.conversion import Tensor, number
from samegrad._tensor.conversion import is_tensor as _is_tensor
from samegrad._tensor.dim import Dim

SUPPORTS_SPARSE_TENSORS = False
SUPPORTS_RAGGED_TENSORS = False
SUPPORTS_COMPLEX_DTYPES = False
# Callbacks are called between the steps: a thread for each costs more than they do.
IS_THREAD_SAFE = False


def convert_to_tensor(
    x: Any, dtype: Any = None, sparse: bool | None = None, ragged: bool | None = None
) -> Tensor:
    """The value as a tensor; with a dtype, cast to it.

    Args:
        x: Number, nested list, array, variable or tensor.
        dtype: A name; None: that of `x`, float32 and int32 of Python's numbers.
        sparse: True is refused: there are no sparse tensors.
        ragged: True is refused: there are no ragged tensors.

    Raises:
        ValueError: `sparse` or `ragged`.

    Example:
        >>> convert_to_tensor([1, 2], "float64").dtype
        samegrad.float64
    """
    if type(x) is Tensor and not sparse and not ragged and dtype in (None, x._dtype):
        return x
    if sparse or ragged:
        kind = "sparse" if sparse else "ragged"
        raise ValueError(
            f"[keras.ops.convert_to_tensor] there are no {kind} tensors: got {kind}=True."
        )
    wanted = None if dtype is None else standardize_dtype(dtype)
    if is_plain_number(x) and wanted in ("float32", "float64"):
        return number(x, wanted)
    if _is_tensor(x):
        tensor = x if isinstance(x, Tensor) else x._as_tensor()
        return tensor if wanted in (None, tensor._dtype) else tf.cast(tensor, wanted)
    if wanted is not None and (wanted == "bool" or is_int_dtype(wanted)):
        tensor = tf.convert_to_tensor(x)
        return tensor if tensor._dtype == wanted else tf.cast(tensor, wanted)
    if isinstance(x, np.ndarray | np.generic) and wanted is not None:
        return tf.cast(tf.convert_to_tensor(x), wanted)
    try:
        return tf.convert_to_tensor(x, wanted)
    except TypeError:
        if wanted is None or not isinstance(x, list | tuple):
            raise
        return tf.cast(
            tf.convert_to_tensor([convert_to_tensor(part, wanted) for part in x]), wanted
        )


def convert_to_numpy(x: Any) -> np.ndarray[Any, Any]:
    """The value as a NumPy array of its own."""
    return np.array(x)


def is_tensor(x: Any) -> bool:
    """Whether the value is a tensor of samegrad."""
    return isinstance(x, Tensor)


def shape(x: Any) -> tuple[Any, ...]:
    """The sizes, those that follow from the number of examples as samegrad's `Dim`."""
    if isinstance(x, KerasTensor):
        sizes: tuple[Any, ...] = x.shape
        return sizes
    return tuple(convert_to_tensor(x).shape)


def cast(x: Any, dtype: Any) -> Tensor:
    """The value in another dtype; a number of Python is a float32 before, as in TensorFlow."""
    wanted = standardize_dtype(dtype)
    tensor = convert_to_tensor(x)
    return tensor if tensor._dtype == wanted else tf.cast(tensor, wanted)


# What stands for sizes that are not known but in the first axis.
_PROBES = (7, 11)


def compute_output_spec(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What `fn` returns, KerasTensors in the place of tensors; nothing is computed.

    A first axis of size None is the engine's own unknown number of examples. Other axes of size
    None stand for two sizes in turn: what differs in the results is None.

    Args:
        fn: Takes tensors in the place of KerasTensors.
        *args: Structures with KerasTensors.
        **kwargs: Named ones.
    """
    args, kwargs = tree.map_structure(_as_spec, (args, kwargs))
    leaves = tree.flatten((args, kwargs))
    inner = any(isinstance(x, KerasTensor) and None in x.shape[1:] for x in leaves)
    first = _spec(fn, args, kwargs, _PROBES[0])
    if not inner:
        return tree.map_structure(_keras_tensor, first)
    second = _spec(fn, args, kwargs, _PROBES[1])
    return tree.map_structure(_joined, first, second)


def _as_spec(x: Any) -> Any:
    """Tensors of a function that is traced now are known by their shapes alone."""
    if not isinstance(x, Tensor) or not x._symbolic:
        return x
    return KerasTensor([None if isinstance(size, Dim) else size for size in x.shape], x._dtype)


class _Spec:
    """Sizes and dtype of a result."""

    def __init__(self, x: Tensor) -> None:
        self.shape = [None if isinstance(size, Dim) else size for size in x.shape]
        self.dtype = x._dtype


def _spec(fn: Callable[..., Any], args: Any, kwargs: Any, probe: int) -> Any:
    trace = _core.Trace(1, [])

    def enter(x: Any) -> Any:
        if not isinstance(x, KerasTensor):
            return x
        sizes = [probe if size is None else size for size in x.shape]
        counted = bool(x.shape) and x.shape[0] is None
        zeros = np.zeros(sizes, tf.as_dtype(x.dtype).as_numpy_dtype)
        return trace.argument([Tensor(zeros, example_axis=0 if counted else None)])

    changes: dict[str, Any] = {
        "requirements": {},
        "batches": [],
        "strategy": None,
        "replica_context": None,
    }
    with StatelessScope(), SymbolicScope(), _core.tracing_into(trace, changes):
        entered_args, entered_kwargs = tree.map_structure(enter, (args, kwargs))
        result = fn(*entered_args, **entered_kwargs)
        return tree.map_structure(lambda x: _Spec(x) if isinstance(x, Tensor) else x, result)


def _keras_tensor(x: Any) -> Any:
    return KerasTensor(x.shape, x.dtype) if isinstance(x, _Spec) else x


def _joined(a: Any, b: Any) -> Any:
    if not isinstance(a, _Spec):
        return a
    sizes = [x if x == y else None for x, y in zip(a.shape, b.shape, strict=True)]
    return KerasTensor(sizes, a.dtype)


def cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """The result of one of two functions."""
    if isinstance(pred, bool):
        return true_fn() if pred else false_fn()
    pred = convert_to_tensor(pred, "bool")
    if not pred._symbolic:
        return true_fn() if bool(pred) else false_fn()
    return tf.cond(pred, true_fn, false_fn)


def stop_gradient(variable: Any) -> Tensor:
    """The value, through which no gradient flows."""
    return tf.stop_gradient(convert_to_tensor(variable))


def random_seed_dtype() -> str:
    """The dtype of a SeedGenerator's state."""
    return "uint32"


@contextlib.contextmanager
def device_scope(device_name: Any) -> Iterator[None]:
    """A context that places nothing."""
    yield


from samegrad._keras.control import (  # noqa: E402
    associative_scan,
    custom_gradient,
    fori_loop,
    map,
    remat,
    scan,
    scatter,
    scatter_update,
    slice,
    slice_update,
    switch,
    unstack,
    vectorized_map,
    while_loop,
)

__all__ = [
    "IS_THREAD_SAFE", "SUPPORTS_COMPLEX_DTYPES", "SUPPORTS_RAGGED_TENSORS",
    "SUPPORTS_SPARSE_TENSORS", "associative_scan", "cast", "compute_output_spec", "cond",
    "convert_to_numpy", "convert_to_tensor", "custom_gradient", "device_scope", "fori_loop",
    "is_tensor", "map", "random_seed_dtype", "remat", "scan", "scatter", "scatter_update", "shape",
    "slice", "slice_update", "stop_gradient", "switch", "unstack", "vectorized_map", "while_loop",
]  # fmt: skip
