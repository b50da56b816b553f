"""Module `tensorflow` of Keras's functions of `tf.keras.backend`: samegrad, and older names."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

from keras.src import backend

import samegrad as tf
from samegrad._tensor.tensor import Tensor, convert_to_tensor


class _Refused:
    """A kind of tensor that samegrad has not: nothing is one, and none is made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            f"[keras.backend] {type(self).__name__} is needed: samegrad's tensors are dense; give "
            "a dense array."
        )


class SparseTensor(_Refused):
    """Tensors with few values."""


class SparseTensorSpec(_Refused):
    """Spec of sparse tensors."""


class RaggedTensor(_Refused):
    """Tensors with rows of several lengths."""


def new_variable(value: Any, dtype: Any, name: str | None, constraint: Any = None) -> tf.Variable:
    """A variable of samegrad.

    Raises:
        NotImplementedError: It is given a constraint.
    """
    if constraint is not None:
        raise NotImplementedError(
            "[keras.backend.variable] constraints belong to weights: use layer.add_weight."
        )
    return tf.Variable(convert_to_tensor(value, dtype), name=name)


def executing_eagerly() -> bool:
    """Return True: only eager code asks."""
    return True


def name_scope(name: str) -> Any:
    """Inside, what is made has names that begin so."""
    return backend.name_scope(name)


def cond(condition: Any, then: Any, otherwise: Any) -> Any:
    """Return the result of one of two functions."""
    return tf.cond(condition, then, otherwise)


def assign(variable: Any, value: Any) -> Any:
    """Assigns; the variable."""
    variable.assign(value)
    return variable


def assign_add(variable: Any, value: Any) -> Any:
    """Adds; the variable."""
    variable.assign_add(value)
    return variable


def assign_sub(variable: Any, value: Any) -> Any:
    """Subtracts; the variable."""
    variable.assign_sub(value)
    return variable


def _folded(fn: Any, elems: Any, initializer: Any, *, backwards: bool) -> Any:
    parts = tf.unstack(convert_to_tensor(elems))
    parts = parts[::-1] if backwards else parts
    start = [parts.pop(0)] if initializer is None else [convert_to_tensor(initializer)]
    return functools.reduce(fn, parts, start[0])


def foldl(fn: Any, elems: Any, initializer: Any = None, name: str | None = None) -> Any:
    """fn(...fn(fn(initializer, first), second)..., last)."""
    return _folded(fn, elems, initializer, backwards=False)


def foldr(fn: Any, elems: Any, initializer: Any = None, name: str | None = None) -> Any:
    """Fold like `foldl`, from the last element to the first."""
    return _folded(fn, elems, initializer, backwards=True)


def in_top_k(predictions: Any, targets: Any, k: int) -> Any:
    """Tell if each example's target is among the k largest predictions."""
    return backend.math.in_top_k(targets, predictions, k)


def _initializer(draw: Any) -> Any:
    def make(low: float, high: float, dtype: Any, seed: int) -> Any:
        return lambda shape: draw(shape, low, high, dtype=dtype, seed=seed)

    return make


def is_tensor(x: Any) -> bool:
    """Tell if it is a tensor or a variable."""
    return isinstance(x, Tensor | tf.Variable | backend.Variable)


compat = SimpleNamespace(
    v1=SimpleNamespace(
        assign=assign,
        assign_add=assign_add,
        assign_sub=assign_sub,
        cond=cond,
        foldl=foldl,
        foldr=foldr,
        gather=tf.gather,
        pad=tf.pad,
        math=SimpleNamespace(in_top_k=in_top_k),
        random_normal_initializer=_initializer(tf.random.normal),
        random_uniform_initializer=_initializer(tf.random.uniform),
    )
)


def __getattr__(name: str) -> Any:
    return getattr(tf, name)
