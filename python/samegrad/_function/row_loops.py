"""Loops over the rows of tensors: map_fn, scan, foldl and foldr.

In eager code Python runs them. In a traced function they are one op whose iterations take and make
one row each. Time and memory, those of its derivatives included, grow no faster than the number of
iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from samegrad import _core
from samegrad._base.dtypes import any_dtype
from samegrad._base.tree import flatten, is_nested, map_structure
from samegrad._control.row_loop import RowLoop, set_function
from samegrad._function.function import function
from samegrad._tensor.ragged_spec import RaggedTensorSpec
from samegrad._tensor.tensor import Tensor, convert_to_tensor

_ops = _core.ops
set_function(function)


def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """Apply a function to each element along the first axis, and stack the results.

    Args:
        fn: A function of an element: a tensor, or the structure of `elems` with an element of each
            of its tensors. It returns tensors in any structure, of the same shapes for each
            element.
        elems: A tensor [n, ...], or a structure of such tensors with one n.
        dtype: The dtype of the results, in their structure, which is checked; default any.
        parallel_iterations: Ignored.
        back_prop: False stops gradients at the results.
        swap_memory: Ignored.
        infer_shape: Ignored.
        name: Ignored.
        fn_output_signature: As `dtype`; it may hold `TensorSpec`s, and `RaggedTensorSpec`s for
            results of different lengths, which become a `tf.RaggedTensor`.

    Returns:
        The structure of the results, of tensors [n, ...]. If the first axis is the batch axis, it
        remains so.

    Raises:
        TypeError: `fn` is not a function, or a result has another dtype than `dtype`.
        ValueError: n differs, or results differ in shape.

    Example:
        >>> import samegrad as tf
        >>> tf.map_fn(lambda row: row * tf.reduce_sum(row), tf.constant([[1.0, 2.0], [3.0, 4.0]]))
        <samegrad.Tensor: shape=(2, 2), dtype=float32, numpy=
        array([[ 3.,  6.],
               [21., 28.]], dtype=float32)>
    """
    signature = dtype if fn_output_signature is None else fn_output_signature
    leaves = flatten(signature) if is_nested(signature) else [signature]
    if any(isinstance(leaf, RaggedTensorSpec) for leaf in leaves):
        raise TypeError(f"[map_fn] ragged results cannot be stacked in a loop: got {signature}.")
    loop = RowLoop("map_fn", fn, elems)

    def body(state: Any, row: Any) -> Any:
        made = map_structure(convert_to_tensor, loop.fn(row))
        if signature is not None:
            _check_signature(made, signature)
        return (), made

    return _finished(loop.run(body, ())[1], back_prop)


def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """Accumulate a function along the first axis, and stack all accumulators.

    Args:
        fn: A function of the accumulator and an element of `elems` that returns the new
            accumulator, of the same structure, dtypes and shapes.
        elems: A tensor [n, ...], or a structure of such tensors with one n.
        initializer: The first accumulator; default the first element, which is then the first
            result.
        parallel_iterations: Ignored.
        back_prop: False stops gradients at the results.
        swap_memory: Ignored.
        infer_shape: Ignored.
        reverse: Go from the last element to the first; results keep the order of the elements.
        name: Ignored.

    Returns:
        The structure of the accumulator, of tensors [n, ...].

    Raises:
        TypeError: `fn` is not a function.
        ValueError: n differs, or the accumulator changes its structure, dtype or shape. Without an
            initializer: n is 0, or the number of examples.

    Example:
        >>> import samegrad as tf
        >>> tf.scan(lambda total, x: total + x, tf.constant([1.0, 2.0, 3.0])).numpy()
        array([1., 3., 6.], dtype=float32)
    """
    loop = RowLoop("scan", fn, elems, reverse)
    first = None
    if initializer is None:
        initializer = first = loop.take_first()

    def body(state: Any, row: Any) -> Any:
        new = loop.accumulated(state, row)
        return new, new

    made = loop.run(body, map_structure(convert_to_tensor, initializer))[1]
    if first is not None:
        made = map_structure(lambda x, y: _with_first(x, y, reverse), first, made)
    return _finished(made, back_prop)


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Accumulate a function along the first axis, from the first element to the last.

    Args:
        fn: A function of the accumulator and an element of `elems` that returns the new
            accumulator, of the same structure, dtypes and shapes.
        elems: A tensor [n, ...], or a structure of such tensors with one n.
        initializer: The first accumulator; default the first element itself.
        parallel_iterations: Ignored.
        back_prop: False stops gradients at the results.
        swap_memory: Ignored.
        name: Ignored.

    Returns:
        The last accumulator.

    Raises:
        TypeError: `fn` is not a function.
        ValueError: n differs, or the accumulator changes its structure, dtype or shape. Without an
            initializer: n is 0, or the number of examples.

    Example:
        >>> import samegrad as tf
        >>> float(tf.foldl(lambda a, x: 10.0 * a + x, tf.constant([1.0, 2.0, 3.0])))
        123.0
    """
    return _fold(RowLoop("foldl", fn, elems), initializer, back_prop)


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Accumulate a function along the first axis, from the last element to the first.

    Args:
        fn: A function of the accumulator and an element of `elems` that returns the new
            accumulator, of the same structure, dtypes and shapes.
        elems: A tensor [n, ...], or a structure of such tensors with one n.
        initializer: The first accumulator; default the last element itself.
        parallel_iterations: Ignored.
        back_prop: False stops gradients at the results.
        swap_memory: Ignored.
        name: Ignored.

    Returns:
        The last accumulator.

    Raises:
        TypeError: `fn` is not a function.
        ValueError: n differs, or the accumulator changes its structure, dtype or shape. Without an
            initializer: n is 0, or the number of examples.

    Example:
        >>> import samegrad as tf
        >>> float(tf.foldr(lambda a, x: 10.0 * a + x, tf.constant([1.0, 2.0, 3.0])))
        321.0
    """
    return _fold(RowLoop("foldr", fn, elems, reverse=True), initializer, back_prop)


def vectorized_map(
    fn: Callable[[Any], Any], elems: Any, fallback_to_while_loop: bool = True, warn: bool = True
) -> Any:
    """Apply a function to each element along the first axis, as `map_fn` does.

    Args:
        fn: A function of an element, as `map_fn` takes it.
        elems: A tensor [n, ...], or a structure of such tensors with one n.
        fallback_to_while_loop: Ignored.
        warn: Ignored.

    Returns:
        The structure of the results, of tensors [n, ...].

    Raises:
        TypeError: `fn` is not a function.
        ValueError: n differs, or results differ in shape.

    Example:
        >>> import samegrad as tf
        >>> tf.vectorized_map(lambda x: x * x, tf.constant([1.0, 2.0])).numpy()
        array([1., 4.], dtype=float32)
    """
    return map_fn(fn, elems)


def _fold(loop: RowLoop, initializer: Any, back_prop: bool) -> Any:
    start = loop.take_first() if initializer is None else initializer
    last, _ = loop.run(
        lambda state, row: (loop.accumulated(state, row), ()),
        map_structure(convert_to_tensor, start),
    )
    return _finished(last, back_prop)


def _with_first(first: Tensor, rest: Tensor, reverse: bool) -> Tensor:
    row = _ops.expand_dims(first, axes=[0])
    return _ops.concat(rest, row, axis=0) if reverse else _ops.concat(row, rest, axis=0)


def _finished(result: Any, back_prop: bool) -> Any:
    return result if back_prop else map_structure(lambda x: _ops.stop_gradient(x), result)


def _check_signature(made: Any, signature: Any) -> None:
    wanted = flatten(signature) if is_nested(signature) else [signature]
    found = flatten(made)
    kinds = [any_dtype(getattr(one, "dtype", one)) for one in wanted]
    # Complex results are two tensors.
    names = [kind.real_dtype.name for kind in kinds for _ in range(1 + kind.is_complex)]
    if len(names) != len(found) or any(n != x._dtype for n, x in zip(names, found, strict=True)):
        raise TypeError(
            f"[map_fn] the results of fn must be of the dtypes {names} asked for: got "
            f"{[x._dtype for x in found]}."
        )


__all__ = ["foldl", "foldr", "map_fn", "scan", "vectorized_map"]
