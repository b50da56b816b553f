"""keras.backend.core: loops, branches, scatter and slices."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from keras.src import tree

import samegrad as tf
from samegrad import _core
from samegrad._base.tracebacks import user_frames_only
from samegrad._keras.conversion import convert_to_tensor
from samegrad._tensor.tensor import Tensor


@user_frames_only
def vectorized_map(function: Callable[..., Any], elements: Any) -> Any:
    """The function of each row, stacked."""
    return tf.vectorized_map(function, tree.map_structure(convert_to_tensor, elements))


@user_frames_only
def map(f: Callable[..., Any], xs: Any) -> Any:
    """The function of each row, stacked, row by row."""
    rows = tree.map_structure(convert_to_tensor, xs)
    return scan(lambda _, x: ((), f(x)), (), rows)[1]


@user_frames_only
def scan(
    f: Callable[..., Any],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> Any:
    """What `f(carry, row)` carries from row to row, and what it returns for each, stacked.

    Args:
        f: Takes the carry and a row of `xs`; returns the next carry and a result.
        init: The first carry, tensors in any structure.
        xs: Tensors in any structure, all with as many rows.
        length: How many rounds, where there are no `xs`.
        reverse: Whether the last row comes first.
        unroll: Whether rounds are part of the trace one by one; numbers change nothing.

    Raises:
        TypeError: `f` is no function.
        ValueError: Neither `xs` nor `length`, or an `unroll` below 1.
    """
    _check_scan(f, xs, length, unroll)
    init = tree.map_structure(convert_to_tensor, init)
    rows = None if xs is None else tree.map_structure(convert_to_tensor, xs)
    count = int(length) if length is not None else tree.flatten(rows)[0].shape[0]
    order = range(int(count) - 1, -1, -1) if reverse else range(int(count))
    carry, results = init, []
    for i in order:
        row = None if rows is None else tree.map_structure(lambda x, i=i: x[i], rows)
        carry, result = f(carry, row)
        results.append(carry if result is None else result)
    if reverse:
        results.reverse()
    stacked = tree.map_structure(lambda *parts: tf.stack(list(parts)), *results)
    return carry, stacked


def _check_scan(f: Any, xs: Any, length: Any, unroll: Any) -> None:
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    if not isinstance(unroll, bool) and (not isinstance(unroll, int) or unroll < 1):
        raise ValueError(
            f"`unroll` must be an positive integer or boolean. Received: unroll={unroll}"
        )
    if xs is None and length is None:
        raise ValueError("Got no `xs` to scan over and `length` not provided.")


@user_frames_only
def associative_scan(
    f: Callable[..., Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """All prefixes of `elems` along an axis, joined by the associative function `f`."""
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    flat = [convert_to_tensor(x) for x in tree.flatten(elems)]
    sizes = {int(x.shape[axis]) for x in flat}
    if len(sizes) != 1:
        raise ValueError(
            "Array inputs to associative_scan must have the same first dimension. "
            f"(saw: {[tuple(x.shape) for x in flat]})"
        )
    (count,) = sizes

    def part(i: int) -> Any:
        rows = [tf.expand_dims(tf.gather(x, i, axis=axis), axis) for x in flat]
        return tree.pack_sequence_as(elems, rows)

    order = range(count - 1, -1, -1) if reverse else range(count)
    prefixes: list[Any] = []
    for i in order:
        prefixes.append(f(prefixes[-1], part(i)) if prefixes else part(i))
    if reverse:
        prefixes.reverse()
    return tree.map_structure(lambda *parts: tf.concat(list(parts), axis), *prefixes)


def scatter(indices: Any, values: Any, shape: Any) -> Tensor:
    """Zeros with the values added where the indices say."""
    return tf.scatter_nd(convert_to_tensor(indices), convert_to_tensor(values), tuple(shape))


_UPDATES = {
    None: "tensor_scatter_nd_update", "add": "tensor_scatter_nd_add",
    "max": "tensor_scatter_nd_max", "min": "tensor_scatter_nd_min",
}  # fmt: skip


def scatter_update(inputs: Any, indices: Any, updates: Any, reduction: str | None = None) -> Tensor:
    """The inputs with updates where the indices say.

    Raises:
        ValueError: A reduction that is none of None, "add", "max", "min" and "mul".
    """
    x, places = convert_to_tensor(inputs), convert_to_tensor(indices)
    values = convert_to_tensor(updates, x._dtype)
    if reduction == "mul":
        return _scatter_product(x, places, values)
    if reduction not in _UPDATES:
        raise ValueError(f"Unsupported reduction: {reduction}")
    updated: Tensor = getattr(tf, _UPDATES[reduction])(x, places, values)
    return updated


def _scatter_product(x: Tensor, places: Tensor, values: Tensor) -> Tensor:
    """Every update in turn, as several may meet in one place."""
    depth = int(places.shape[-1])
    rows = tf.reshape(places, (-1, depth))
    flat = tf.reshape(values, (-1, *x.shape[depth:]))
    for i in range(int(rows.shape[0])):
        place = rows[i : i + 1]
        x = tf.tensor_scatter_nd_update(x, place, tf.gather_nd(x, place) * flat[i : i + 1])
    return x


def slice(inputs: Any, start_indices: Sequence[Any], shape: Sequence[Any]) -> Tensor:
    """A block of the inputs: where it begins, and its sizes."""
    if len(start_indices) != len(shape):
        raise ValueError(
            "Length of `start_indices` must match length of `shape`. "
            f"Received: start_indices={start_indices}, shape={shape}"
        )
    return tf.slice(convert_to_tensor(inputs), start_indices, shape)


def slice_update(inputs: Any, start_indices: Sequence[Any], updates: Any) -> Tensor:
    """The inputs with a block replaced that begins at the indices."""
    x, block = convert_to_tensor(inputs), convert_to_tensor(updates)
    ranges = [
        tf.range(int(size)) + tf.cast(convert_to_tensor(start), "int32")
        for start, size in zip(start_indices, block.shape, strict=True)
    ]
    if not ranges:
        return tf.cast(block, x._dtype)
    places = tf.stack(tf.meshgrid(*ranges, indexing="ij"), axis=-1)
    return tf.tensor_scatter_nd_update(x, places, tf.cast(block, x._dtype))


@user_frames_only
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """The result of the branch with the number `index`, cut to those that there are."""
    number = tf.clip_by_value(convert_to_tensor(index, "int32"), 0, len(branches) - 1)
    if not number._symbolic:
        return branches[int(number)](*operands)
    return tf.switch_case(number, [lambda b=b: b(*operands) for b in branches])


@user_frames_only
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    maximum_iterations: int | None = None,
) -> Any:
    """Repeats the body while the condition holds."""
    single = not isinstance(loop_vars, list | tuple)
    first = (loop_vars,) if single else tuple(loop_vars)
    first = tree.map_structure(convert_to_tensor, first)

    def step(*values: Any) -> Any:
        found = body(*values)
        found = tuple(found) if isinstance(found, list | tuple) else (found,)
        return tree.map_structure(convert_to_tensor, found)

    last = tf.while_loop(cond, step, first, maximum_iterations=maximum_iterations)
    return last[0] if single else tuple(last)


@user_frames_only
def fori_loop(lower: Any, upper: Any, body_fun: Callable[..., Any], init_val: Any) -> Any:
    """`value = body_fun(i, value)` for i from `lower` to below `upper`."""
    if not _core.tracing() and isinstance(lower, int) and isinstance(upper, int):
        for i in range(lower, upper):
            init_val = body_fun(i, init_val)
        return tree.map_structure(convert_to_tensor, init_val)
    first = tree.map_structure(convert_to_tensor, init_val)
    return tf.while_loop(
        lambda i, _: i < upper,
        lambda i, value: (i + 1, body_fun(i, value)),
        (convert_to_tensor(lower), first),
    )[1]


def unstack(x: Any, num: int | None = None, axis: int = 0) -> list[Tensor]:
    """The parts along an axis, which goes."""
    return builtins.list(tf.unstack(convert_to_tensor(x), num=num, axis=axis))


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function with a gradient function of its own, as samegrad.custom_gradient."""
    wrapped: Callable[..., Any] = tf.custom_gradient(fun)
    return wrapped


def remat(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose inner values are computed again for its gradient."""
    again: Callable[..., Any] = tf.recompute_grad(f)
    return again
