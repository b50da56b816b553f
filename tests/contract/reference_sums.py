"""The sums and products of docs/numerics.md in NumPy, written from the specification alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

LEAF, ROW_BLOCK, COLUMN_BLOCK, CONTRACTION_BLOCK = 4, 1024, 128, 4096
LANE_BYTES = 64


# ---- arithmetic ----


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded sum and what rounding took from it."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded product of float64 and what rounding took from it (Veltkamp, Dekker)."""
    p = a * b
    parts = []
    for x in (a, b):
        t = x * 134217729.0
        high = t - (t - x)
        parts.append((high, x - high))
    (ah, al), (bh, bl) = parts
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def add_to_odd(a: Array, b: Array) -> Array:
    """Return the sum of float64 rounded to odd: a further rounding is as if it was exact."""
    s, rest = two_sum(a, b)
    even = (np.ascontiguousarray(s).view(np.int64) & 1) == 0
    other = np.nextafter(s, np.where(rest > 0, np.inf, -np.inf))
    return np.where((rest != 0) & even & np.isfinite(s), other, s)


def fma(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c, rounded once: Boldo and Melquiond, "Emulation of FMA" (2008)."""
    with np.errstate(invalid="ignore", over="ignore"):
        if a.dtype == np.float32:
            return add_to_odd(a.astype(float) * b.astype(float), c.astype(float)).astype(np.float32)
        high, low = two_product(a, b)
        top, rest = two_sum(c, low)
        high, low = two_sum(high, top)
        return np.where(np.isfinite(a * b + c), high + add_to_odd(rest, low), a * b + c)


# ---- sums ----


def split(n: int, unit: int = 1) -> int:
    """Return where a range is halved: after the larger half of its blocks."""
    blocks = -(-n // unit)
    return -(-blocks // 2) * unit


def halved(n: int, unit: int, piece: Callable[[int, int], Array], first: int = 0) -> Array:
    """Sum the pieces of at most `unit` elements, joined by halving."""
    if n <= unit:
        return piece(first, n)
    half = split(n, unit)
    return halved(half, unit, piece, first) + halved(n - half, unit, piece, first + half)


def sum_row(x: Array) -> Array:
    """Sum the last axis: lanes, joined in pairs, in blocks."""
    lanes = LANE_BYTES // x.dtype.itemsize

    def block(first: int, n: int) -> Array:
        sums = np.zeros((*x.shape[:-1], lanes), x.dtype)
        for i in range(0, n, lanes):
            some = x[..., first + i : first + min(i + lanes, n)]
            sums[..., : some.shape[-1]] += some
        width = lanes
        while width > 1:
            width //= 2
            sums = sums[..., :width] + sums[..., width:]
        return sums[..., 0]

    return halved(x.shape[-1], ROW_BLOCK, block)


def in_order(x: Array) -> Array:
    """Sum the first axis one after the other, from its first element."""
    total = x[0]
    for row in x[1:]:
        total = total + row
    return total


def sum_columns(x: Array) -> Array:
    """Sum the first axis, in blocks."""
    return halved(len(x), COLUMN_BLOCK, lambda first, n: in_order(x[first : first + n]))


def sum_axes(x: Array, axes: tuple[int, ...]) -> Array:
    """Sum over axes: from the innermost group of neighbours outwards."""
    groups: list[tuple[int, bool]] = []
    for axis, size in enumerate(x.shape):
        if groups and groups[-1][1] == (axis in axes):
            groups[-1] = groups[-1][0] * size, groups[-1][1]
        else:
            groups.append((size, axis in axes))
    y = x.reshape([size for size, _ in groups])
    innermost = y.ndim - 1
    for axis in reversed(range(y.ndim)):
        if groups[axis][1]:
            moved = np.moveaxis(y, axis, 0)
            y = sum_row(y) if axis == innermost else sum_columns(moved)
    return y.reshape([size for axis, size in enumerate(x.shape) if axis not in axes])


def tree(n: int, leaf: Callable[[int, int], Array], most: int = LEAF, first: int = 0) -> Array:
    """Reduce the examples 0 … n: leaves of at most `most`, joined by halving."""
    if n <= most:
        return leaf(first, n)
    half = split(n)
    return tree(half, leaf, most, first) + tree(n - half, leaf, most, first + half)


def sum_examples(x: Array) -> Array:
    """Sum the first axis, that of the examples; the others stay."""
    most = 1 if x[0].size == 1 else LEAF
    return tree(len(x), lambda first, n: in_order(x[first : first + n]), most)


def sum_all(x: Array) -> Array:
    """Sum examples and all their elements to one number."""
    return sum_examples(x if x[0].size == 1 else sum_row(x.reshape(len(x), -1))).reshape(())


def cumulative_sum(x: Array) -> Array:
    """Return the sums of the elements up to each one of the first axis."""
    y = np.empty_like(x)
    levels: list[Array | None] = [None] * 8  # sums of blocks, of blocks of blocks, …
    before = None
    for first in range(0, len(x), COLUMN_BLOCK):
        block = None
        for i in range(first, min(first + COLUMN_BLOCK, len(x))):
            block = x[i] if block is None else block + x[i]
            y[i] = block if before is None else before + block
        part, end = block, first // COLUMN_BLOCK + 1
        for level, held in enumerate(levels):
            levels[level] = part if held is None else held + part
            if end % COLUMN_BLOCK:
                break
            part, end = levels[level], end // COLUMN_BLOCK
            levels[level] = None
        before = None
        for held in reversed(levels):
            if held is not None:
                before = held if before is None else before + held
    return y


def average_windows(x: Array, window: Window) -> Array:
    """Average the elements of images that each window sees."""
    y = np.empty((len(x), window.out, window.out, x.shape[3]), x.dtype)
    for r in range(window.out):
        for c in range(window.out):
            taps = range(window.taps)
            rows = [at for i in taps if (at := window.input_of(r, i)) is not None]
            columns = [at for j in taps if (at := window.input_of(c, j)) is not None]
            seen = np.stack([x[:, i, j] for i in rows for j in columns])
            zero = np.zeros_like(seen[:1])

            def block(first: int, n: int, seen: Array = seen, zero: Array = zero) -> Array:
                return in_order(np.concatenate([zero, seen[first : first + n]]))

            y[:, r, c] = halved(len(seen), COLUMN_BLOCK, block) / x.dtype.type(len(seen))
    return y


def sum_at(values: Array, indices: Array, size: int) -> Array:
    """Sum values[example, k] at indices[example, k]; rows without an index are +0."""
    per_example = indices.shape[1]
    y = np.zeros((size, *values.shape[2:]), values.dtype)

    def chain(rows: Array) -> Array:
        total = np.zeros(values.shape[2:], values.dtype)
        for row in rows:
            total = total + row
        return total

    def blocks(rows: Array) -> Array:
        if len(rows) <= COLUMN_BLOCK:
            return chain(rows)
        return blocks(rows[: split(len(rows))]) + blocks(rows[split(len(rows)) :])

    for index in set(indices.ravel().tolist()):
        of_each = [values[i][indices[i] == index] for i in range(len(values))]

        def leaf(first: int, n: int, of_each: list[Array] = of_each) -> Array:
            some = of_each[first : first + n]
            if LEAF * per_example <= CONTRACTION_BLOCK:
                return chain(np.concatenate(some))
            return chain(np.stack([blocks(rows) for rows in some]))

        y[index] = tree(len(values), leaf)

    return y


# ---- products ----


def chain(a: Array, b: Array, total: Array) -> Array:
    """Add the outer products a[k] b[k] to a total, one after the other, rounding each once."""
    for left, right in zip(a, b, strict=True):
        total = fma(left[..., :, None], right[..., None, :], total)
    return total


def contraction(a: Array, b: Array) -> Array:
    """Return the sum over k of the outer products a[k] b[k]: chains, joined by halving."""
    zeros = np.zeros((*a.shape[1:], b.shape[-1]), a.dtype)
    return halved(len(a), CONTRACTION_BLOCK, lambda f, n: chain(a[f : f + n], b[f : f + n], zeros))


def product_of_examples(a: Array, b: Array) -> Array:
    """Return the sum over examples and their rows r of a[i, r]ᵀ b[i, r]."""
    zeros = np.zeros((a.shape[2], b.shape[2]), a.dtype)

    def leaf(first: int, n: int) -> Array:
        some = slice(first, first + n)
        if LEAF * a.shape[1] <= CONTRACTION_BLOCK:
            return chain(a[some].reshape(-1, a.shape[2]), b[some].reshape(-1, b.shape[2]), zeros)
        return in_order(
            np.stack([contraction(x, y) for x, y in zip(a[some], b[some], strict=True)])
        )

    return tree(len(a), leaf)


class Window:
    """The taps of a two-dimensional convolution and what they see, in the order of the chains."""

    def __init__(self, size: int, filter_size: int, stride: int, padding: str, rate: int) -> None:
        self.stride, self.rate, self.taps, self.size = stride, rate, filter_size, size
        wide = (filter_size - 1) * rate + 1
        if padding == "VALID":
            self.out, self.before = (size - wide) // stride + 1, 0
        else:
            self.out = -(-size // stride)
            self.before = max((self.out - 1) * stride + wide - size, 0) // 2

    def input_of(self, out: int, tap: int) -> int | None:
        """Return the input that a tap of a result sees, None beyond the image."""
        at = out * self.stride + tap * self.rate - self.before
        return at if 0 <= at < self.size else None


def joined_contraction(pieces: Sequence[tuple[Array, Array]]) -> Array:
    """Return one contraction over the (rows, matrix) pairs of a pixel's taps, in order."""
    a = np.concatenate([rows for rows, _ in pieces], axis=1).T
    return contraction(a, np.concatenate([matrix for _, matrix in pieces]))


def convolve(x: Array, filters: Array, window: Window) -> Array:
    """Convolve images [n, s, s, in] and filters [t, t, in, out]: taps, then channels in."""
    y = np.zeros((len(x), window.out, window.out, filters.shape[3]), x.dtype)
    for r in range(window.out):
        for c in range(window.out):
            pieces = [
                (x[:, at, column], filters[i, j])
                for i in range(window.taps)
                for j in range(window.taps)
                if (at := window.input_of(r, i)) is not None
                and (column := window.input_of(c, j)) is not None
            ]
            if pieces:
                y[:, r, c] = joined_contraction(pieces)
    return y


def convolve_back(dy: Array, filters: Array, window: Window) -> Array:
    """Return the gradient of the images: taps in ascending order, then channels out."""
    dx = np.zeros((len(dy), window.size, window.size, filters.shape[2]), dy.dtype)
    for r in range(window.size):
        for c in range(window.size):
            pieces = []
            for i in range(window.taps):
                for j in range(window.taps):
                    seen = [o for o in range(window.out) if window.input_of(o, i) == r]
                    across = [o for o in range(window.out) if window.input_of(o, j) == c]
                    if seen and across:
                        pieces.append((dy[:, seen[0], across[0]], filters[i, j].T))
            if pieces:
                dx[:, r, c] = joined_contraction(pieces)
    return dx


def filter_gradient(x: Array, dy: Array, window: Window) -> Array:
    """Return the gradient of the filters: for each tap the pixels that it sees, by the tree."""
    y = np.zeros((window.taps, window.taps, x.shape[3], dy.shape[3]), x.dtype)
    by_image = LEAF * window.out**2 > CONTRACTION_BLOCK
    for i in range(window.taps):
        for j in range(window.taps):
            places = [
                (r, c, at, column)
                for r in range(window.out)
                for c in range(window.out)
                if (at := window.input_of(r, i)) is not None
                and (column := window.input_of(c, j)) is not None
            ]
            if not places:
                continue
            rows, columns, ats, across = (list(part) for part in zip(*places, strict=True))
            a, b = x[:, ats, across], dy[:, rows, columns]

            def leaf(first: int, n: int, a: Array = a, b: Array = b) -> Array:
                some = slice(first, first + n)
                zeros = np.zeros((a.shape[2], b.shape[2]), a.dtype)
                if by_image:
                    each = [contraction(p, q) for p, q in zip(a[some], b[some], strict=True)]
                    return in_order(np.stack(each))
                return chain(
                    a[some].reshape(-1, a.shape[2]), b[some].reshape(-1, b.shape[2]), zeros
                )

            y[i, j] = tree(len(x), leaf)
    return y
