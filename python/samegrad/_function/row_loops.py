"""Loops over the rows of tensors: map_fn, scan, foldl and foldr.

In eager code Python runs them. In a traced function they are one operation whose rounds take and
make one row each, so that time and memory grow with the number of rounds and no faster, those of
its derivatives too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from samegrad import _core
from samegrad._base.dtypes import any_dtype
from samegrad._base.shown import shown
from samegrad._base.tree import flatten, is_nested, map_structure
from samegrad._context import state as _context
from samegrad._context.user_code import converted
from samegrad._control.carried_values import same_structure
from samegrad._function.function import function
from samegrad._tensor.axes import counts_examples
from samegrad._tensor.sizes import is_length, may_be_as_large
from samegrad._tensor.tensor import Tensor, convert_to_tensor

_ops = _core.ops


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
    """The results of a function of each row, stacked.

    Args:
        fn: Takes a row: a tensor, or the structure of `elems` with a row of each of its tensors.
            Returns tensors in any structure, of the same shapes for each row.
        elems: A tensor, or a structure of tensors that have as many rows.
        dtype: The dtype of the results, in their structure, checked; default whatever they are.
        parallel_iterations: Ignored.
        back_prop: False stops gradients at the results.
        swap_memory: Ignored.
        infer_shape: Ignored.
        name: Ignored.
        fn_output_signature: As `dtype`; also of `TensorSpec`s.

    Returns:
        The structure of the results, with an axis of all rows before the others. Rows that are
        examples stay examples.

    Raises:
        TypeError: `fn` is no function, or a result has another dtype than asked for.
        ValueError: There are no rows, or they are not as many, or results differ in shape.

    Example:
        >>> import samegrad as tf
        >>> tf.map_fn(lambda row: row * tf.reduce_sum(row), tf.constant([[1.0, 2.0], [3.0, 4.0]]))
        <samegrad.Tensor: shape=(2, 2), dtype=float32, numpy=
        array([[ 3.,  6.],
               [21., 28.]], dtype=float32)>
    """
    loop = _Loop("map_fn", fn, elems)
    signature = dtype if fn_output_signature is None else fn_output_signature

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
    """All values of an accumulator that a function carries from row to row, stacked.

    Args:
        fn: Takes the accumulator and a row of `elems`; returns the new accumulator, of the same
            structure, dtypes and shapes.
        elems: A tensor, or a structure of tensors that have as many rows.
        initializer: The accumulator before the first row; default the first row, which is then the
            first result and no argument of `fn` as a row.
        parallel_iterations: Ignored.
        back_prop: False stops gradients at the results.
        swap_memory: Ignored.
        infer_shape: Ignored.
        reverse: From the last row to the first; results stand where their rows do.
        name: Ignored.

    Returns:
        The structure of the accumulator, with an axis of all rows before the others.

    Raises:
        TypeError: `fn` is no function.
        ValueError: There are no rows, they are not as many, or the accumulator changes its form.

    Example:
        >>> import samegrad as tf
        >>> tf.scan(lambda total, x: total + x, tf.constant([1.0, 2.0, 3.0])).numpy()
        array([1., 3., 6.], dtype=float32)
    """
    loop = _Loop("scan", fn, elems, reverse)
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
    """The last value of an accumulator that a function carries from the first row to the last.

    Args:
        fn: Takes the accumulator and a row of `elems`; returns the new accumulator, of the same
            structure, dtypes and shapes.
        elems: A tensor, or a structure of tensors that have as many rows.
        initializer: The accumulator before the first row; default the first row itself.
        parallel_iterations: Ignored.
        back_prop: False stops gradients at the results.
        swap_memory: Ignored.
        name: Ignored.

    Returns:
        The accumulator.

    Raises:
        TypeError: `fn` is no function.
        ValueError: There are no rows, they are not as many, or the accumulator changes its form.

    Example:
        >>> import samegrad as tf
        >>> float(tf.foldl(lambda a, x: 10.0 * a + x, tf.constant([1.0, 2.0, 3.0])))
        123.0
    """
    return _fold(_Loop("foldl", fn, elems), initializer, back_prop)


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The last value of an accumulator that a function carries from the last row to the first.

    Args:
        fn: As of `foldl`.
        elems: A tensor, or a structure of tensors that have as many rows.
        initializer: The accumulator before the last row; default the last row itself.
        parallel_iterations: Ignored.
        back_prop: False stops gradients at the results.
        swap_memory: Ignored.
        name: Ignored.

    Returns:
        The accumulator.

    Raises:
        TypeError: `fn` is no function.
        ValueError: There are no rows, they are not as many, or the accumulator changes its form.

    Example:
        >>> import samegrad as tf
        >>> float(tf.foldr(lambda a, x: 10.0 * a + x, tf.constant([1.0, 2.0, 3.0])))
        321.0
    """
    return _fold(_Loop("foldr", fn, elems, reverse=True), initializer, back_prop)


def vectorized_map(
    fn: Callable[[Any], Any], elems: Any, fallback_to_while_loop: bool = True, warn: bool = True
) -> Any:
    """The same as `map_fn`: rows are computed one after the other.

    Args:
        fn: As of `map_fn`.
        elems: A tensor, or a structure of tensors that have as many rows.
        fallback_to_while_loop: Ignored.
        warn: Ignored.

    Raises:
        TypeError: `fn` is no function.
        ValueError: There are no rows, or they are not as many, or results differ in shape.

    Example:
        >>> import samegrad as tf
        >>> tf.vectorized_map(lambda x: x * x, tf.constant([1.0, 2.0])).numpy()
        array([1., 4.], dtype=float32)
    """
    return map_fn(fn, elems)


class _Loop:
    """A function, and the tensors whose rows it is called with."""

    def __init__(self, who: str, fn: Callable[..., Any], elems: Any, reverse: bool = False) -> None:
        if not callable(fn):
            raise TypeError(f"[{who}] fn must be a function: got {shown(fn)}.")
        self.who, self.fn, self.reverse = who, converted(fn), reverse
        self.elems = map_structure(convert_to_tensor, elems)
        self.arrays: list[Tensor] = flatten(self.elems)
        if not self.arrays or any(x._rank == 0 for x in self.arrays):
            raise ValueError(
                f"[{who}] elems must be tensors with rows: got {shown(elems)}; use expand_dims."
            )
        # Rows are no examples while the loop takes them one by one.
        self.examples = all(counts_examples(x, 0) for x in self.arrays)
        self.arrays = [_ops.as_rows(x) if counts_examples(x, 0) else x for x in self.arrays]
        sizes = {x._shape[0] for x in self.arrays}
        if len(sizes) != 1:
            raise ValueError(
                f"[{who}] elems must have as many rows: got {[x._shape[0] for x in self.arrays]}."
            )

    @property
    def count(self) -> int | None:
        """The number of rows, where it is one number."""
        size = self.arrays[0]._shape[0]
        return None if size is None else int(size)

    def take_first(self) -> Any:
        """The row that the loop would begin with, which is left out."""
        if not (self.count or is_length(self.arrays[0].shape[0])):
            raise ValueError(
                f"[{self.who}] without an initializer there must be a row to begin with, and their "
                f"number must not be that of examples: got shape {self.arrays[0]._shape}; pass "
                "initializer."
            )
        place, rest = (-1, slice(0, -1)) if self.reverse else (0, slice(1, None))
        firsts = iter([x[place] for x in self.arrays])
        self.arrays, self.examples = [x[rest] for x in self.arrays], False
        return map_structure(lambda _: next(firsts), self.elems)

    def accumulated(self, state: Any, row: Any) -> Any:
        """The new accumulator, of the form of the old one."""
        new = self.fn(state, row)
        if not same_structure(new, state):
            raise ValueError(
                f"[{self.who}] fn must return the accumulator in its structure: got {shown(new)} "
                f"for {shown(state)}."
            )
        return map_structure(lambda old, x: self._same_form(old, x), state, new)

    def _same_form(self, old: Tensor, new: Any) -> Tensor:
        number = isinstance(new, int | float) and not isinstance(new, bool)
        tensor = convert_to_tensor(new, old._dtype if number else None)
        if tensor._dtype != old._dtype or not may_be_as_large(tensor, old):
            raise ValueError(
                f"[{self.who}] the accumulator must keep its dtype and shape: it was {old._dtype} "
                f"{tuple(old._shape)} and became {tensor._dtype} {tuple(tensor._shape)}."
            )
        return tensor

    def run(self, body: Callable[[Any, Any], Any], state: Any) -> tuple[Any, Any]:
        """The last state and the stacked results of body(state, row) -> (state, result)."""
        leaves = [*self.arrays, *flatten(state)]
        if any(x._symbolic for x in leaves) or _core.tracing():
            return self._traced(body, state)
        if self.count == 0:  # what the shapes would be, only a trace tells
            step = function(lambda arrays, state: self._with(arrays)._traced(body, state))
            done: tuple[Any, Any] = step(self.arrays, state)
            return done
        return self._eager(body, state)

    def _with(self, arrays: list[Tensor]) -> _Loop:
        self.arrays = arrays
        return self

    def _rows(self, rows: Any) -> Any:
        rows = iter(rows)
        return map_structure(lambda _: next(rows), self.elems)

    def _eager(self, body: Callable[[Any, Any], Any], state: Any) -> tuple[Any, Any]:
        count = self.count
        assert count is not None
        made: list[list[Tensor]] = []
        result: Any = None
        for i in reversed(range(count)) if self.reverse else range(count):
            state, result = body(state, self._rows(x[i] for x in self.arrays))
            made.append(flatten(result))
            self._check_forms(made[0], made[-1])
        if self.reverse:
            made.reverse()
        stacked = iter(
            [self._examples(_stacked(list(column))) for column in zip(*made, strict=True)]
        )
        return state, map_structure(lambda _: next(stacked), result)

    def _check_forms(self, first: list[Tensor], later: list[Tensor]) -> None:
        forms = [[(x._dtype, tuple(x._shape)) for x in leaves] for leaves in (first, later)]
        if forms[0] != forms[1]:
            raise ValueError(
                f"[{self.who}] fn must return the same dtypes and shapes for each row: got "
                f"{forms[0]} and {forms[1]}."
            )

    def _traced(self, body: Callable[[Any, Any], Any], state: Any) -> tuple[Any, Any]:
        form: list[Any] = []
        carried = flatten(state)

        def step(*tensors: Tensor) -> list[Tensor]:
            given = iter(tensors[len(self.arrays) :])
            before = map_structure(lambda _: next(given), state)
            after, result = _context.recorded(body, before, self._rows(tensors[: len(self.arrays)]))
            form[:] = [result]
            return [*flatten(after), *map(convert_to_tensor, flatten(result))]

        done = _core.traced_scan(step, self.arrays, carried, self.reverse)
        last, stacked = iter(done[: len(carried)]), iter(done[len(carried) :])
        return (
            map_structure(lambda _: next(last), state),
            map_structure(lambda _: self._examples(next(stacked)), form[0]),
        )

    def _examples(self, stacked: Tensor) -> Tensor:
        return _ops.as_examples(stacked, axis=0) if self.examples else stacked


def _fold(loop: _Loop, initializer: Any, back_prop: bool) -> Any:
    start = loop.take_first() if initializer is None else initializer
    last, _ = loop.run(
        lambda state, row: (loop.accumulated(state, row), ()),
        map_structure(convert_to_tensor, start),
    )
    return _finished(last, back_prop)


def _stacked(tensors: list[Tensor]) -> Tensor:
    return _ops.concat(*[_ops.expand_dims(x, axes=[0]) for x in tensors], axis=0)


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
