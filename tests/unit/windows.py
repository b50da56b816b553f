"""Convolutions and pooling by their definitions, element by element, in NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

import samegrad as tf

Ints = Sequence[int]


def numbers(*shape: int, seed: int = 0, dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def same_padding(size: Ints, window: Ints, strides: Ints, dilations: Ints) -> list[tuple[int, int]]:
    """TensorFlow's, as its documentation has it."""
    pads = []
    for n, k, s, d in zip(size, window, strides, dilations, strict=True):
        missing = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        pads.append((missing // 2, missing - missing // 2))
    return pads


def out_sizes(
    size: Ints, window: Ints, strides: Ints, pads: Sequence[Ints], dilations: Ints
) -> list[int]:
    return [
        (n + before + behind - (k - 1) * d - 1) // s + 1
        for n, k, s, (before, behind), d in zip(size, window, strides, pads, dilations, strict=True)
    ]


def meetings(
    size: Ints, window: Ints, strides: Ints, pads: Sequence[Ints], dilations: Ints
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """(place in the result, tap, place in the input) for all that meet."""
    out = out_sizes(size, window, strides, pads, dilations)
    for o in itertools.product(*map(range, out)):
        for tap in itertools.product(*map(range, window)):
            place = tuple(
                at * s - before + k * d
                for at, s, (before, _), k, d in zip(o, strides, pads, tap, dilations, strict=True)
            )
            if all(0 <= p < n for p, n in zip(place, size, strict=True)):
                yield o, tap, place


def convolved(
    x: np.ndarray, f: np.ndarray, strides: Ints, pads: Sequence[Ints], dilations: Ints
) -> np.ndarray:
    """Channels last, any number of dimensions; groups as the filter's channels say."""
    size, window = x.shape[1:-1], f.shape[:-2]
    y = np.zeros((len(x), *out_sizes(size, window, strides, pads, dilations), f.shape[-1]))
    groups = x.shape[-1] // f.shape[-2]
    each, out = f.shape[-2], f.shape[-1] // groups
    for o, tap, place in meetings(size, window, strides, pads, dilations):
        for g in range(groups):
            part = x[(slice(None), *place, slice(g * each, (g + 1) * each))]
            results = slice(g * out, (g + 1) * out)
            y[(slice(None), *o, results)] += part @ f[tap][:, results]
    return y


def transposed(
    x: np.ndarray,
    f: np.ndarray,
    size: Ints,
    strides: Ints,
    pads: Sequence[Ints],
    dilations: Ints,
    groups: int = 1,
) -> np.ndarray:
    """Channels last, any number of dimensions."""
    each, out = x.shape[-1] // groups, f.shape[-2]
    y = np.zeros((len(x), *size, groups * out))
    for o, tap, place in meetings(size, f.shape[:-2], strides, pads, dilations):
        for g in range(groups):
            part = slice(g * each, (g + 1) * each)
            results = slice(g * out, (g + 1) * out)
            y[(slice(None), *place, results)] += x[(slice(None), *o, part)] @ f[tap][:, part].T
    return y


def pooled(
    x: np.ndarray, window: Ints, strides: Ints, pads: Sequence[Ints], dilations: Ints, kind: str
) -> np.ndarray:
    size = x.shape[1:-1]
    seen: dict[tuple[int, ...], list[np.ndarray]] = {}
    for o, _, place in meetings(size, window, strides, pads, dilations):
        seen.setdefault(o, []).append(x[(slice(None), *place)])
    out = out_sizes(size, window, strides, pads, dilations)
    y = np.full((len(x), *out, x.shape[-1]), np.nan)
    for o, parts in seen.items():
        y[(slice(None), *o)] = np.max(parts, 0) if kind == "MAX" else np.mean(parts, 0)
    return y


def explicit(pads: Sequence[Ints]) -> list[list[int]]:
    return [[0, 0], *map(list, pads), [0, 0]]


def check_derivatives(
    f: Callable[..., tf.Tensor], operands: Sequence[np.ndarray], traced: bool = False
) -> None:
    """First and second derivatives of a smooth scalar of f's result, against differences."""
    weights: list[np.ndarray] = []

    def first(*xs: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        with tf.GradientTape() as tape:
            for x in xs:
                tape.watch(x)
            y = f(*xs)
            loss = tf.reduce_sum(y * y * y)
        return loss, tape.gradient(loss, list(xs))

    def second(*xs: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        with tf.GradientTape() as tape:
            for x in xs:
                tape.watch(x)
            gradients = first(*xs)[1]
            loss = tf.add_n([tf.reduce_sum(g * w) for g, w in zip(gradients, weights, strict=True)])
        return loss, tape.gradient(loss, list(xs))

    weights.extend(numbers(*x.shape, seed=7 + i) for i, x in enumerate(operands))
    for order in (first, second):
        run = tf.function(order) if traced else order
        gradients = [g.numpy() for g in run(*map(tf.constant, operands))[1]]
        for i, x in enumerate(operands):
            direction = numbers(*x.shape, seed=99)
            ends = []
            for step in (1e-5, -1e-5):
                moved = [v + step * direction if j == i else v for j, v in enumerate(operands)]
                ends.append(float(order(*map(tf.constant, moved))[0]))
            slope = (ends[0] - ends[1]) / 2e-5
            along = float((gradients[i] * direction).sum())
            scale = np.abs(gradients[i] * direction).sum() + 1e-3
            assert abs(slope - along) <= 1e-6 * scale + 1e-7, (order.__name__, i, slope, along)
