"""Functions of Python where everything runs at once: in `Dataset.map` above all."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from samegrad._base.dtypes import DType, element_type, string
from samegrad._base.shown import shown
from samegrad._context.python_runs import leave_trace
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad._tensor.text import Text, is_text, text_of


def py_function(
    func: Callable[..., Any] | None = None,
    inp: Sequence[Any] | None = None,
    Tout: Any = None,  # noqa: N803
    name: str | None = None,
) -> Any:
    """Call func(*inp) with eager tensors; without func, return a decorator.

    In `Dataset.map` and outside of functions it is the call itself, and gradients flow through it.
    A `tf.function` that contains such a call runs in Python, op by op.

    Args:
        func: A function of tensors or strings that returns a tensor, array, number or string, or a
            list of them.
        inp: The list of its arguments.
        Tout: The dtype of the result, or a list of dtypes; an empty list for no result.
        name: Ignored.

    Returns:
        A tensor or string tensor; a list of them if `Tout` is a list.

    Raises:
        RuntimeError: Inside `Strategy.run` of a traced step, which runs without Python.
        TypeError: The result has another dtype, or another number of values than `Tout`.

    Example:
        >>> import samegrad as tf
        >>> dataset = tf.data.Dataset.range(3).map(
        ...     lambda n: tf.py_function(lambda x: x.numpy() ** 2, [n], tf.int64))
        >>> [int(n) for n in dataset]
        [0, 1, 4]
        >>> @tf.py_function(Tout=tf.float32)
        ... def half(x):
        ...     return x.numpy() / 2
        >>> float(half(3.0))
        1.5
    """
    if func is None and inp is None:
        return _decorator(py_function, Tout, "py_function")
    given = _given(func, inp, "py_function")
    return _results(func(*given), Tout, "py_function")  # type: ignore[misc]


def numpy_function(
    func: Callable[..., Any] | None = None, inp: Sequence[Any] | None = None,
    Tout: Any = None, stateful: bool = True, name: str | None = None,  # noqa: N803
) -> Any:  # fmt: skip
    """Call func(*inp) with NumPy arrays; without func, return a decorator.

    It is `py_function` with arrays, and without a gradient.

    Args:
        func: A function of arrays (strings are arrays of bytes) that returns arrays, numbers or
            strings.
        inp: The list of its arguments.
        Tout: The dtype of the result, or a list of dtypes; an empty list for no result.
        stateful: Ignored.
        name: Ignored.

    Returns:
        A tensor or string tensor; a list of them if `Tout` is a list.

    Raises:
        RuntimeError: Inside `Strategy.run` of a traced step, which runs without Python.
        TypeError: The result has another dtype, or another number of values than `Tout`.

    Example:
        >>> import numpy as np
        >>> import samegrad as tf
        >>> float(tf.numpy_function(np.sinh, [np.float32(0)], tf.float32))
        0.0
    """
    if func is None and inp is None:
        return _decorator(numpy_function, Tout, "numpy_function")
    given = _given(func, inp, "numpy_function")
    arrays = [x.encoded.copy() if isinstance(x, Text) else np.array(x) for x in given]
    return _results(func(*arrays), Tout, "numpy_function")  # type: ignore[misc]


def _decorator(call: Callable[..., Any], kinds: Any, who: str) -> Callable[..., Any]:
    if kinds is None:
        raise TypeError(
            f"[{who}] Tout must be the dtypes of what the function returns: got None; pass "
            "Tout=tf.float32."
        )

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        return functools.wraps(function)(lambda *args: call(function, args, kinds))

    return decorated


def _given(func: Any, inp: Any, who: str) -> list[Any]:
    leave_trace(
        f"[{who}] a step of replicas runs without Python: got {shown(func)}; call it in "
        "Dataset.map, or on what strategy.run returns."
    )
    if not callable(func) or not isinstance(inp, list | tuple):
        raise TypeError(
            f"[{who}] a function and a list of what it gets are needed: got {shown(func)} and "
            f"{shown(inp)}; pass [x]."
        )
    return [_tensor(value) for value in inp]


def _tensor(value: Any) -> Any:
    if isinstance(value, Text | RaggedTensor):
        return value
    return Text(value) if is_text(value) else convert_to_tensor(value)


def _results(found: Any, wanted: Any, who: str) -> Any:
    if not isinstance(wanted, list | tuple):
        parts = found if isinstance(found, list | tuple) and len(found) == 1 else [found]
        return _result(parts[0], element_type(wanted), who)
    kinds = [element_type(kind) for kind in wanted]
    parts = list(found) if isinstance(found, list | tuple) else [] if found is None else [found]
    if len(parts) != len(kinds):
        raise TypeError(
            f"[{who}] the function must return a value for each of Tout: got {len(parts)} for "
            f"{len(kinds)}; Tout=[] is for none."
        )
    return [_result(part, kind, who) for part, kind in zip(parts, kinds, strict=True)]


def _result(value: Any, kind: DType, who: str) -> Any:
    if kind is string:
        return text_of(value, who, "Tout says that the function returns strings")
    if value is None or is_text(value):
        raise TypeError(
            f"[{who}] Tout says that the function returns {kind.name}: got {shown(value)}."
        )
    # Numbers of Python have no dtype of their own.
    typed = isinstance(value, Tensor | np.ndarray | np.generic) or hasattr(value, "dtype")
    made = convert_to_tensor(value) if typed else convert_to_tensor(value, kind)
    if made._dtype != kind.name:
        raise TypeError(
            f"[{who}] the result must have the dtype that Tout says: got {made._dtype} for "
            f"{kind.name}; use tf.cast in the function, or change Tout."
        )
    return made
