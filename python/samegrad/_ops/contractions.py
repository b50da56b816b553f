"""Products that are summed over named axes: einsum and tensordot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._tensor import sizes as _sizes
from samegrad._tensor.tensor import Dim, Tensor, TensorLike, convert_to_tensor, pair

_ops = _core.ops
# One per axis.
Labels = list[Any]


class _Named:
    """A tensor whose axes have labels."""

    def __init__(self, tensor: Tensor, labels: Labels) -> None:
        self.tensor = tensor
        self.labels = labels

    def size(self, label: Any) -> Any:
        return self.tensor.shape[self.labels.index(label)]

    def sizes(self, labels: Labels) -> list[Any]:
        return [self.size(label) for label in labels]

    def summed(self, labels: Labels) -> _Named:
        """Sum over axes."""
        if not labels:
            return self
        axes = [self.labels.index(label) for label in labels]
        rest = [label for label in self.labels if label not in labels]
        return _Named(_ops.reduce_sum(self.tensor, axes=axes, keepdims=False), rest)

    def ordered(self, labels: Labels) -> _Named:
        """Return the same axes in another order."""
        if labels == self.labels:
            return self
        perm = [self.labels.index(label) for label in labels]
        return _Named(_ops.transpose(self.tensor, perm=perm), labels)

    def diagonal(self) -> _Named:
        """Take the diagonal of axes with equal labels."""
        found = self
        for label in dict.fromkeys(self.labels):
            while found.labels.count(label) > 1:
                found = found._without_twin(label)
        return found

    def _without_twin(self, label: Any) -> _Named:
        first = self.labels.index(label)
        other = self.labels.index(label, first + 1)
        sizes = self.tensor.shape
        if sizes[first] != sizes[other]:
            raise ValueError(
                f"[einsum] axes of one name must have one size: got {label!r} of sizes "
                f"{sizes[first]} and {sizes[other]}."
            )
        places = []
        for axis in (first, other):
            shape = [sizes[i] if i == axis else 1 for i in range(len(sizes))]
            places.append(_sizes.reshape(_sizes.iota(sizes[axis]), shape))
        zero = convert_to_tensor(0, self.tensor._dtype)
        kept = _ops.select(_ops.equal(*places), self.tensor, zero)
        rest = self.labels[:other] + self.labels[other + 1 :]
        return _Named(_ops.reduce_sum(kept, axes=[other], keepdims=False), rest)

    def matrices(self, leading: Labels, rows: Labels, columns: Labels) -> tuple[Tensor, bool]:
        """Reshape to [leading axes, rows, columns]; the last two are swapped where that is free."""
        swapped = (
            self.labels == leading + columns + rows and self.labels != leading + rows + columns
        )
        first, last = (columns, rows) if swapped else (rows, columns)
        ordered = self.ordered(leading + first + last)
        if len(first) == len(last) == 1:
            return ordered.tensor, swapped
        groups = [math.prod(self.sizes(group)) for group in (first, last)]
        return _sizes.reshape(ordered.tensor, self.sizes(leading) + groups), swapped


def _examples_first(x: _Named, labels: Labels) -> Labels:
    """Order batch axes before others, so that merged axes keep them together."""
    return sorted(labels, key=lambda label: not isinstance(x.size(label), Dim))


def _product(a: _Named, b: _Named, kept: Labels) -> _Named:
    """Return the product, summed over the labels that are not kept."""
    a = a.summed([label for label in a.labels if label not in kept and label not in b.labels])
    b = b.summed([label for label in b.labels if label not in kept and label not in a.labels])
    both = [label for label in a.labels if label in b.labels]
    for label in both:
        if a.size(label) != b.size(label):
            raise ValueError(
                f"[einsum] axes of one name must have one size: got {label!r} of sizes "
                f"{a.size(label)} and {b.size(label)}, in shapes {tuple(a.tensor.shape)} and "
                f"{tuple(b.tensor.shape)}."
            )
    leading = [label for label in both if label in kept]
    summed = _examples_first(a, [label for label in both if label not in kept])
    of_a = _examples_first(a, [label for label in a.labels if label not in both])
    of_b = _examples_first(b, [label for label in b.labels if label not in both])
    labels = leading + of_a + of_b
    if not summed:
        x = _ops.expand_dims(a.ordered(leading + of_a).tensor, axes=_places(labels, of_b))
        y = _ops.expand_dims(b.ordered(leading + of_b).tensor, axes=_places(labels, of_a))
        return _Named(x * y, labels)
    left, transpose_a = a.matrices(leading, of_a, summed)
    right, transpose_b = b.matrices(leading, summed, of_b)
    y = _ops.matmul(left, right, transpose_a=transpose_a, transpose_b=transpose_b)
    if len(of_a) != 1 or len(of_b) != 1:
        y = _sizes.reshape(y, a.sizes(leading + of_a) + b.sizes(of_b))
    return _Named(y, labels)


def _places(labels: Labels, some: Labels) -> list[int]:
    return [labels.index(label) for label in some]


def _terms(equation: str, count: int) -> tuple[list[str], str | None]:
    """Return the letters of each operand, and those of the result if they are given."""
    text = equation.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    letters = text.replace("->", "", 1).replace(",", "")
    wrong = [c for c in letters.replace("...", "") if not c.isalpha()]
    several = any(term.count("...") > 1 for term in (*terms, output))
    if wrong or several or "," in output or len(terms) != count:
        raise ValueError(
            "[einsum] the equation has a label for each axis, '...' for others, and a comma "
            f"between operands, as in 'ij,jk->ik': got {shown(equation)} for {count} operands."
        )
    unknown = [c for c in output.replace("...", "") if c not in inputs or output.count(c) > 1]
    if unknown:
        raise ValueError(
            "[einsum] each axis of the result is one of an operand, once: got "
            f"{shown(equation)}, with {unknown[0]!r} on the right."
        )
    return terms, output if arrow else None


def _labels_of(term: str, rank: int, equation: str) -> Labels:
    """Return a letter per axis; axes under '...' have the numbers -n to -1."""
    letters = term.replace("...", "")
    rest = rank - len(letters)
    if rest < 0 or (rest and "..." not in term):
        raise ValueError(
            f"[einsum] an operand must have an axis for each label: got {shown(term)} of "
            f"{shown(equation)} for a tensor of {rank} axes."
        )
    head, _, tail = term.partition("...")
    return [*head, *range(-rest, 0), *tail]


def einsum(equation: str, *inputs: TensorLike, **kwargs: Any) -> Tensor:
    """Compute a sum of products given by an equation with a letter for each axis.

    Axes with the same letter are multiplied, and those that the result lacks are summed over. `...`
    stands for any axes, which broadcast. A letter twice in an operand takes its diagonal. Operands
    are multiplied from left to right, by matrix products.

    Args:
        equation: A string like "ij,jk->ik". Without an arrow, the result has the letters that occur
            once, in alphabetical order.
        *inputs: A tensor for each term of the equation, of one dtype.
        **kwargs: `name` and `optimize`, both ignored.

    Returns:
        A tensor whose axes are the letters after the arrow.

    Raises:
        ValueError: The equation is malformed, or does not fit the shapes.
        TypeError: The operands have different dtypes, or an argument is unknown.

    Example:
        >>> einsum("ij,jk->ik", [[1.0, 2.0]], [[3.0], [4.0]]).numpy()
        array([[11.]], dtype=float32)
        >>> float(einsum("ii->", [[1.0, 2.0], [3.0, 4.0]]))
        5.0
    """
    unknown = sorted(kwargs.keys() - {"name", "optimize"})
    if unknown:
        raise TypeError(f"[einsum] the options are name and optimize: got {unknown[0]}.")
    if not isinstance(equation, str) or not inputs:
        raise TypeError(
            f"[einsum] an equation and its operands are needed: got {shown(equation)} and "
            f"{len(inputs)} operands; the call is einsum('ij,jk->ik', a, b)."
        )
    tensors = [convert_to_tensor(x) for x in inputs]
    terms, output = _terms(equation, len(tensors))
    operands = [
        _Named(x, _labels_of(term, x._rank, equation))
        for term, x in zip(terms, tensors, strict=True)
    ]
    operands = _broadcast(operands)
    rest = sorted({n for x in operands for n in x.labels if isinstance(n, int)})
    if output is None:
        letters = "".join(terms).replace("...", "")
        result = [*rest, *sorted(c for c in set(letters) if letters.count(c) == 1)]
    else:
        head, dots, tail = output.partition("...")
        if rest and not dots:
            raise ValueError(
                "[einsum] axes under '...' are in the result: the result has no '...' in "
                f"{shown(equation)}; add it, and use reduce_sum to sum over them."
            )
        result = [*head, *(rest if dots else []), *tail]
    found = operands[0].diagonal()
    for place, other in enumerate(operands[1:], start=2):
        kept = [*result, *(label for x in operands[place:] for label in x.labels)]
        found = _product(found, other.diagonal(), kept)
    found = found.summed([label for label in found.labels if label not in result])
    return found.ordered(result).tensor


def _broadcast(operands: list[_Named]) -> list[_Named]:
    """Drop axes of size 1 under '...' that are longer in another operand."""
    longer = {
        label
        for x in operands
        for label, size in zip(x.labels, x.tensor.shape, strict=True)
        if isinstance(label, int) and size != 1
    }
    made = []
    for x in operands:
        ones = [
            axis
            for axis, (label, size) in enumerate(zip(x.labels, x.tensor.shape, strict=True))
            if label in longer and isinstance(size, int) and size == 1
        ]
        labels = [label for axis, label in enumerate(x.labels) if axis not in ones]
        made.append(_Named(_ops.squeeze(x.tensor, axes=ones), labels) if ones else x)
    return made


def tensordot(a: TensorLike, b: TensorLike, axes: Any, name: str | None = None) -> Tensor:
    """Multiply two tensors and sum over axes of both.

    Args:
        a: A tensor of numbers.
        b: A tensor of the same dtype.
        axes: An integer n sums over the last n axes of `a` and the first n of `b`. Two lists name
            the axes of `a`, and those of `b` in the same order.
        name: Ignored.

    Returns:
        A tensor with the other axes of `a`, then those of `b`.

    Raises:
        ValueError: The axes do not fit.

    Example:
        >>> tensordot([[1.0, 2.0]], [[3.0], [4.0]], axes=1).numpy()
        array([[11.]], dtype=float32)
        >>> float(tensordot([[1.0, 2.0]], [[3.0, 4.0]], axes=[[0, 1], [0, 1]]))
        11.0
    """
    x, y = pair(a, b)
    of_x, of_y = _contracted(axes, x._rank, y._rank)
    left: Labels = [("a", i) for i in range(x._rank)]
    right: Labels = [("b", i) for i in range(y._rank)]
    for i, j in zip(of_x, of_y, strict=True):
        if x.shape[i] != y.shape[j]:
            raise ValueError(
                f"[tensordot] axes that are summed over must have one size: got axis {i} of "
                f"{tuple(x.shape)} and axis {j} of {tuple(y.shape)}."
            )
        right[j] = left[i]
    kept = [*(label for i, label in enumerate(left) if i not in of_x),
            *(label for j, label in enumerate(right) if j not in of_y)]  # fmt: skip
    return _product(_Named(x, left), _Named(y, right), kept).ordered(kept).tensor


def _contracted(axes: Any, rank_a: int, rank_b: int) -> tuple[list[int], list[int]]:
    if hasattr(axes, "__index__") and not getattr(axes, "ndim", 0):
        count = _sizes.whole(axes, "axes is a number or two lists")
        fits = 0 <= count <= min(rank_a, rank_b)
        found = list(range(rank_a - count, rank_a)), list(range(count))
    else:
        parts = axes if isinstance(axes, Sequence) else convert_to_tensor(axes).numpy().tolist()
        lists = [_sizes.sizes_of(part) for part in parts]
        fits = len(lists) == 2 and len(lists[0]) == len(lists[1])
        ranks = (rank_a, rank_b)
        fits = fits and all(
            -rank <= axis < rank for own, rank in zip(lists, ranks, strict=True) for axis in own
        )
        whole = [[axis % rank for axis in own] for own, rank in zip(lists, ranks, strict=False)
                 if fits]  # fmt: skip
        fits = fits and all(len(set(own)) == len(own) for own in whole)
        found = (whole[0], whole[1]) if fits else ([], [])
    if not fits:
        raise ValueError(
            "[tensordot] axes is how many axes to sum over, or a list of axes of a and one of b: "
            f"got {shown(axes)} for {rank_a} and {rank_b} axes."
        )
    return found
