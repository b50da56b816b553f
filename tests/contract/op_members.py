"""Each operation of the op table on examples along each axis, as a small program of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import samegrad as tf
from samegrad import _core

EXAMPLES = 24  # no sample has an axis of this size
COLUMNS = 512  # numbers of one example that operands are made of
FLOATS = {"float32", "float64", "float16", "bfloat16"}
# Shapes and axes of operands that make all pairs of their examples.
PAIRS = (
    ((EXAMPLES, 1, 3), 0, (1, EXAMPLES, 3), 1),
    ((1, EXAMPLES, 3), 1, (EXAMPLES, 1, 3), 0),
    ((EXAMPLES, 1), 0, (EXAMPLES,), 0),
    ((EXAMPLES,), 0, (EXAMPLES, 1), 0),
)


@dataclass(frozen=True)
class Operand:
    """A shape, the axis that counts examples (None: a constant), and how elements are drawn.

    A gathered operand has the examples of all replicas on that axis.
    """

    shape: tuple[int, ...]
    axis: int | None
    dtype: str
    low: float
    high: float
    integer_high: float
    gathered: bool = False

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
        shapes = ", ".join(
            f"{'gathered ' * o.gathered}{o.dtype}{list(o.shape)}@{o.axis}" for o in self.operands
        )
        return f"{self.op}({shapes}; {dict(self.attrs)})"

    def has_gathered(self) -> bool:
        """Return whether an operand has the examples of all replicas."""
        return any(operand.gathered for operand in self.operands)

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
            value = value * tf.cast(w, operand.dtype) if operand.dtype in FLOATS else value
            inputs.append(all_gather(value, operand.axis) if operand.gathered else value)
        linear, whole = tf.constant(0.0), None
        for result in self.results(inputs):
            value = tf.clip_by_value(tf.cast(result, tf.float32), -1e3, 1e3)
            if value._example_axis is not None:
                value = weighted(value, rows[:, -1])
            else:
                whole = tf.reduce_sum(value) + (0.0 if whole is None else whole)
            linear = linear + tf.reduce_sum(value)
        losses = [linear] if whole is None else [linear, tf.square(whole)]
        return [*map(share, losses)] if self.has_gathered() else losses

    def is_valid(self) -> bool:
        """Return whether the operation's rule takes these shapes."""
        inputs = []
        for operand in self.operands:
            shape = list(operand.shape)
            if operand.gathered:  # more examples than a replica has
                shape[operand.axis] *= 2
            ones = np.ones(shape, "float32" if operand.dtype in FLOATS else operand.dtype)
            batch = () if operand.axis is None else (None, operand.axis, 1)
            inputs.append(tf.cast(_core.Tensor(ones, *batch), operand.dtype))
        try:
            self.results(inputs)
        except (TypeError, ValueError, RuntimeError):
            return False
        return True


def all_gather(value: tf.Tensor, axis: int) -> tf.Tensor:
    """Join the examples of all replicas along an axis."""
    return tf.distribute.get_replica_context().all_gather(value, axis)


def share(loss: tf.Tensor) -> tf.Tensor:
    """Return a replica's share of a loss: of one that all replicas have alike, a part."""
    return loss if loss._varying else tf.nn.scale_regularization_loss(loss)


def weighted(value: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Multiply by a weight for each example, of this replica or of all of them."""
    try:
        return value * weights_like(weights, value)
    except ValueError:  # another number of examples
        return value * weights_like(all_gather(weights, 0), value)


def weights_like(weights: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
    """One number for each example, along the axis on which the value has its examples."""
    axis = value._example_axis[0]
    sizes = [1] * len(value.shape)
    sizes[axis] = -1
    return tf.reshape(weights, sizes)


def members() -> Iterator[Member]:
    """Each sample of the op table with examples on each axis of each operand.

    Products, and all pairs of examples, are there with one operand of all replicas on either side.
    """
    for row in _core.op_table():
        if row["collective"] or row["regions"] or row["backward"] or not row["samples"]:
            continue
        drawn = dict.fromkeys(m for sample in row["samples"] for m in of_sample(row, sample))
        valid = [member for member in drawn if member.is_valid()]
        yield from valid
        if row["name"] == "matmul":
            gathered = [each for member in valid for each in with_one_gathered(member)]
            yield from (member for member in gathered if member.is_valid())
    for name, pair in itertools.product(("mul", "sub"), PAIRS):
        operands = [Operand(*each, "float32", -1.0, 1.0, 4.0) for each in (pair[:2], pair[2:])]
        yield from with_one_gathered(Member(name, tuple(operands), ()))


def with_one_gathered(member: Member) -> Iterator[Member]:
    """The member with each operand that has examples gathered in turn, where another has its own.

    Integers, whose sums are exact, show nothing.
    """
    operands = member.operands
    for i, operand in enumerate(operands):
        others = [other for k, other in enumerate(operands) if k != i]
        own = any(other.axis is not None for other in others)
        if own and operand.axis is not None and operand.dtype == "float32":
            gathered = replace(operand, gathered=True)
            yield replace(member, operands=(*operands[:i], gathered, *operands[i + 1 :]))


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
