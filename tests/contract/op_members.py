"""Each operation of the op table on examples along each axis, as a small program of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import samegrad as tf
from samegrad import _core

EXAMPLES = 24  # no sample has an axis of this size
COLUMNS = 512  # numbers of one example that operands are made of
FLOATS = {"float32", "float64", "float16", "bfloat16"}


@dataclass(frozen=True)
class Operand:
    """A shape, the axis that counts examples (None: a constant), and how elements are drawn."""

    shape: tuple[int, ...]
    axis: int | None
    dtype: str
    low: float
    high: float
    integer_high: float

    @property
    def size(self) -> int:
        """Numbers of one example, or of a constant."""
        return int(np.prod(without(self.shape, self.axis), dtype=int))

    def scaled(self, drawn: tf.Tensor) -> tf.Tensor:
        """Numbers of [0, 1) in the operand's range and dtype."""
        if self.dtype in FLOATS:
            return tf.cast(self.low + (self.high - self.low) * drawn, self.dtype)
        if self.dtype == "bool":
            return drawn < 0.5
        return tf.cast(tf.floor(drawn * max(self.integer_high, 1.0)), self.dtype)

    def build(self, rows: tf.Tensor, constants: np.ndarray, first: int) -> tf.Tensor:
        """The operand from columns of the batch, or from constants."""
        last = first + self.size
        if self.axis is None:
            return self.scaled(tf.constant(constants[first:last].reshape(self.shape)))
        columns = rows[:, first:last]
        values = self.scaled(tf.reshape(columns, [-1, *without(self.shape, self.axis)]))
        order = list(range(1, len(self.shape)))
        order.insert(self.axis, 0)
        return tf.transpose(values, order)


@dataclass(frozen=True)
class Member:
    """An operation on operands, some of which have examples."""

    op: str
    operands: tuple[Operand, ...]
    attrs: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        shapes = ", ".join(f"{o.dtype}{list(o.shape)}@{o.axis}" for o in self.operands)
        return f"{self.op}({shapes}; {dict(self.attrs)})"

    def results(self, inputs: list[tf.Tensor]) -> list[tf.Tensor]:
        """Return the results of the operation for its operands."""
        made = getattr(_core.ops, self.op)(*inputs, **dict(self.attrs))
        return list(made) if isinstance(made, list | tuple) else [made]

    def losses(self, rows: tf.Tensor, constants: np.ndarray, w: tf.Tensor) -> list[tf.Tensor]:
        """A sum with a weight for each example of a result, and the square of what has none.

        Args:
            rows: The batch; its columns become operands, the last one the weights.
            constants: Operands without examples.
            w: Number that all floating-point operands are multiplied by.
        """
        inputs, first = [], 0
        for operand in self.operands:
            value = operand.build(rows, constants, first)
            first += operand.size
            inputs.append(value * tf.cast(w, operand.dtype) if operand.dtype in FLOATS else value)
        linear, whole = tf.constant(0.0), None
        for result in self.results(inputs):
            value = tf.clip_by_value(tf.cast(result, tf.float32), -1e3, 1e3)
            if value._example_axis is not None:
                value = value * weights_like(rows[:, -1], value)
            else:
                whole = tf.reduce_sum(value) + (0.0 if whole is None else whole)
            linear = linear + tf.reduce_sum(value)
        return [linear] if whole is None else [linear, tf.square(whole)]

    def is_valid(self) -> bool:
        """Return whether the operation's rule takes these shapes."""
        inputs = []
        for operand in self.operands:
            ones = np.ones(operand.shape, "float32" if operand.dtype in FLOATS else operand.dtype)
            batch = () if operand.axis is None else (None, operand.axis, 1)
            inputs.append(tf.cast(_core.Tensor(ones, *batch), operand.dtype))
        try:
            self.results(inputs)
        except (TypeError, ValueError, RuntimeError):
            return False
        return True


def weights_like(weights: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
    """One number for each example, along the axis on which the value has its examples."""
    axis = value._example_axis[0]
    sizes = [1] * len(value.shape)
    sizes[axis] = -1
    return tf.reshape(weights, sizes)


def members() -> Iterator[Member]:
    """Each sample of the op table with examples on each axis of each operand."""
    for row in _core.op_table():
        if row["collective"] or row["regions"] or row["backward"] or not row["samples"]:
            continue
        drawn = dict.fromkeys(m for sample in row["samples"] for m in of_sample(row, sample))
        yield from (member for member in drawn if member.is_valid())


def of_sample(row: dict[str, Any], sample: dict[str, Any]) -> Iterator[Member]:
    shapes = sample["shapes"]
    if len(shapes) > 4:
        return
    for axes in itertools.product(*([None, *range(len(shape))] for shape in shapes)):
        sizes = [n for shape, axis in zip(shapes, axes, strict=True) for n in without(shape, axis)]
        if any(axis is not None for axis in axes) and 0 not in sizes:
            for dtype in ("float32", "int32"):
                yield from of_axes(row, sample, axes, dtype)


def without(shape: Sequence[int], axis: int | None) -> list[int]:
    return [n for i, n in enumerate(shape) if i != axis]


def of_axes(
    row: dict[str, Any], sample: dict[str, Any], axes: tuple[int | None, ...], dtype: str
) -> Iterator[Member]:
    dtypes = sample["dtypes"] or [dtype] * len(axes)
    if sample["dtypes"] and dtype != "float32":
        return
    operands = []
    for shape, axis, own in zip(sample["shapes"], axes, dtypes, strict=True):
        sizes = tuple(EXAMPLES if i == axis else n for i, n in enumerate(shape))
        high = sample["integer_high"] or 4.0
        operands.append(Operand(sizes, axis, own, sample["low"], sample["high"], high))
    yield Member(row["name"], tuple(operands), tuple(sample["attrs"].items()))
