"""keras.backend.core: what is symbolic, branches, and the functions of its other two modules."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from keras.src import tree
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.common.stateless_scope import StatelessScope
from keras.src.backend.common.symbolic_scope import SymbolicScope

import samegrad as tf
from samegrad import _core
from samegrad._context.python_runs import NeedsPython
from samegrad._keras.control import (
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
from samegrad._keras.conversion import cast, convert_to_numpy, convert_to_tensor, is_tensor, shape
from samegrad._keras.scopes import keeping_scopes
from samegrad._keras.text_steps import Probe, TracedText
from samegrad._tensor.complex_tensor import ComplexTensor
from samegrad._tensor.conversion import Tensor
from samegrad._tensor.dim import Dim
from samegrad._tensor.text import Text

SUPPORTS_SPARSE_TENSORS = False
SUPPORTS_RAGGED_TENSORS = False
SUPPORTS_COMPLEX_DTYPES = False
# Callbacks are called between the steps: a thread for each costs more than they do.
IS_THREAD_SAFE = False


# What stands for sizes that are not known but in the first axis.
_PROBES = (7, 11)


@keeping_scopes
def compute_output_spec(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the results of `fn` as KerasTensors, without computing anything.

    A first axis of size None is the engine's own unknown number of examples. Other axes of size
    None stand for two sizes in turn: what differs in the results is None.

    Args:
        fn: Takes tensors in the place of KerasTensors.
        *args: Structures with KerasTensors.
        **kwargs: Named ones.
    """
    args, kwargs = tree.map_structure(_as_spec, (args, kwargs))
    leaves = tree.flatten((args, kwargs))
    inner = any(
        isinstance(x, Text)
        or (isinstance(x, KerasTensor) and (None in x.shape[1:] or x.dtype == "string"))
        for x in leaves
    )
    try:
        first = _spec(fn, args, kwargs, _PROBES[0])
        if not inner:
            return tree.map_structure(_keras_tensor, first)
        second = _spec(fn, args, kwargs, _PROBES[1])
    except NeedsPython:
        first, second = (_spec_of_values(fn, args, kwargs, probe) for probe in _PROBES)
    return tree.map_structure(_joined, first, second)


def _as_spec(x: Any) -> Any:
    """Tensors of a function that is traced now are known by their shapes alone."""
    if isinstance(x, TracedText) and isinstance(x.source, Text):
        return x.source
    if isinstance(x, TracedText):
        return KerasTensor(_as_spec(x.rows).shape, "string")
    if not isinstance(x, Tensor | ComplexTensor) or not tf.math.real(x)._symbolic:
        return x
    return KerasTensor([None if isinstance(size, Dim) else size for size in x.shape], x._dtype)


class _Spec:
    """Sizes and dtype of a result."""

    def __init__(self, x: Tensor | ComplexTensor | Text) -> None:
        self.shape = [None if isinstance(size, Dim) else size for size in x.shape]
        self.dtype = x._dtype


def _spec(fn: Callable[..., Any], args: Any, kwargs: Any, probe: int) -> Any:
    """Sizes of the results of a trace."""
    trace = _core.Trace(1, [])

    def made(zeros: np.ndarray[Any, Any], counted: bool) -> Tensor:
        return trace.argument([Tensor(zeros, example_axis=0 if counted else None)])

    changes: dict[str, Any] = {
        "requirements": {},
        "batches": [],
        "strategy": None,
        "replica_context": None,
        "tracing_function": True,
        "one_replica": None,
    }
    with _core.tracing_into(trace, changes):
        return _result_spec(fn, args, kwargs, Probe(trace, probe), probe, made)


def _spec_of_values(fn: Callable[..., Any], args: Any, kwargs: Any, probe: int) -> Any:
    """Sizes of the results for zeros or ones, where they follow from values."""

    def made(zeros: np.ndarray[Any, Any], counted: bool) -> Tensor:
        return Tensor(zeros + zeros.dtype.type(probe == _PROBES[1]))

    with _core.data_function(0, probe):  # eager, and without draws of the program's generator
        return _result_spec(fn, args, kwargs, Probe(None, probe), probe, made)


def _result_spec(
    fn: Callable[..., Any],
    args: Any,
    kwargs: Any,
    strings: Probe,
    probe: int,
    made: Callable[[np.ndarray[Any, Any], bool], Tensor],
) -> Any:
    def enter(x: Any) -> Any:
        if isinstance(x, Text) or (isinstance(x, KerasTensor) and x.dtype == "string"):
            return strings.enter_strings(x)
        if not isinstance(x, KerasTensor):
            return x
        sizes = [probe if size is None else size for size in x.shape]
        counted = bool(x.shape) and x.shape[0] is None
        kind = tf.as_dtype(x.dtype)
        zeros = np.zeros(sizes, kind.real_dtype.as_numpy_dtype)
        parts = [made(zeros, counted) for _ in range(2 if kind.is_complex else 1)]
        return ComplexTensor(*parts) if kind.is_complex else parts[0]

    with StatelessScope(), SymbolicScope():
        entered_args, entered_kwargs = tree.map_structure(enter, (args, kwargs))
        try:
            result = strings.run(fn, entered_args, entered_kwargs)
        except Exception as error:
            _note_probe(error, probe)
            raise
        return tree.map_structure(
            lambda x: _Spec(x) if isinstance(x, Tensor | ComplexTensor | Text) else x, result
        )


def _note_probe(error: Exception, probe: int) -> None:
    """Tell which number in the error's message stands for sizes of None."""
    note = (
        f"[keras] shapes are found before the first step, where {probe} stands for the number of "
        "examples and other sizes that are None."
    )
    if re.search(rf"\b{probe}\b", str(error)) and note not in getattr(error, "__notes__", ()):
        error.add_note(note)


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


def device_scope(device_name: Any) -> Any:
    """Return a context that places nothing; see `samegrad.device`."""
    return tf.device(device_name)


__all__ = [
    "IS_THREAD_SAFE", "SUPPORTS_COMPLEX_DTYPES", "SUPPORTS_RAGGED_TENSORS",
    "SUPPORTS_SPARSE_TENSORS", "associative_scan", "cast", "compute_output_spec", "cond",
    "convert_to_numpy", "convert_to_tensor", "custom_gradient", "device_scope", "fori_loop",
    "is_tensor", "map", "random_seed_dtype", "remat", "scan", "scatter", "scatter_update", "shape",
    "slice", "slice_update", "stop_gradient", "switch", "unstack", "vectorized_map", "while_loop",
]  # fmt: skip
