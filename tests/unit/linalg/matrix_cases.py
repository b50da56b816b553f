"""Programs of matrices, which run with TensorFlow and with samegrad.

Vectors are squared or multiplied by their own transposes, so that their signs, which nothing
determines, do not count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def _random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def _positive(*shape: int, seed: int = 0) -> np.ndarray:
    x = _random(*shape, seed=seed)
    return x @ np.swapaxes(x, -1, -2) + np.eye(shape[-1])


def _symmetric(*shape: int, seed: int = 0) -> np.ndarray:
    x = _random(*shape, seed=seed)
    return (x + np.swapaxes(x, -1, -2)) / 2


def _regular(*shape: int, seed: int = 0) -> np.ndarray:
    return _random(*shape, seed=seed) + 2 * np.eye(shape[-1])


def _qr_of(full: bool) -> Callable[..., Any]:
    def run(tf: Any, a: Any) -> Any:
        q, r = tf.linalg.qr(a, full_matrices=full)
        return tf.concat([tf.reshape(tf.square(q), [-1]), tf.reshape(tf.square(r), [-1])], 0)

    return run


def _svd_of(tf: Any, a: Any) -> Any:
    s, u, v = tf.linalg.svd(a)
    both = tf.matmul(u, v, transpose_b=True)
    parts = [s, tf.square(u), tf.square(v), both]
    return tf.concat([tf.reshape(x, [-1]) for x in parts], 0)


def _eigh_of(tf: Any, a: Any) -> Any:
    e, v = tf.linalg.eigh(a)
    return tf.concat([tf.reshape(e, [-1]), tf.reshape(tf.square(v), [-1])], 0)


def _lu_of(tf: Any, a: Any) -> Any:
    packed, p = tf.linalg.lu(a)
    return packed * tf.cast(tf.expand_dims(p, -1) + 1, packed.dtype)


def _slogdet_of(tf: Any, a: Any) -> Any:
    sign, logarithm = tf.linalg.slogdet(a)
    return sign * 2.0 + logarithm


def _of(name: str, **options: Any) -> Callable[..., Any]:
    return lambda tf, *operands: getattr(tf.linalg, name)(*operands, **options)


# The program, its operands, and whether it has derivatives in TensorFlow.
CASES: dict[str, tuple[Callable[..., Any], list[np.ndarray], bool]] = {
    "cholesky": (_of("cholesky"), [_positive(2, 4, 4)], True),
    "cholesky of a lower triangle": (_of("cholesky"), [np.tril(_positive(3, 3))], True),
    "cholesky_solve": (
        _of("cholesky_solve"), [np.linalg.cholesky(_positive(3, 3)), _random(3, 2)], True),
    "triangular_solve": (_of("triangular_solve"), [_regular(2, 3, 3), _random(2, 3, 2)], True),
    "triangular_solve upper adjoint": (
        _of("triangular_solve", lower=False, adjoint=True), [_regular(3, 3), _random(3, 1)], True),
    "triangular_solve broadcast": (
        _of("triangular_solve"), [_regular(3, 3), _random(2, 3, 2)], True),
    "solve": (_of("solve"), [_regular(2, 4, 4), _random(2, 4, 3, seed=1)], True),
    "solve adjoint": (_of("solve", adjoint=True), [_regular(3, 3), _random(3, 2)], True),
    "inv": (_of("inv"), [_regular(2, 3, 3)], True),
    "inv adjoint": (_of("inv", adjoint=True), [_regular(3, 3)], True),
    "det": (_of("det"), [_regular(2, 3, 3)], True),
    "det of one number": (_of("det"), [_regular(1, 1)], True),
    "slogdet": (_slogdet_of, [_regular(3, 2, 2)], True),
    "logdet": (_of("logdet"), [_positive(2, 3, 3)], True),
    "lu": (_lu_of, [_random(2, 4, 4)], False),
    "lu_solve": (
        lambda tf, a, b: tf.linalg.lu_solve(*tf.linalg.lu(a), b),
        [_random(3, 3), _random(3, 2)], False),
    "lu_reconstruct": (
        lambda tf, a: tf.linalg.lu_reconstruct(*tf.linalg.lu(a)), [_random(2, 3, 3)], False),
    "lu_matrix_inverse": (
        lambda tf, a: tf.linalg.lu_matrix_inverse(*tf.linalg.lu(a)), [_regular(3, 3)], False),
    "lstsq": (_of("lstsq"), [_random(2, 5, 3), _random(2, 5, 2, seed=1)], True),
    "lstsq wide, regularized": (
        _of("lstsq", l2_regularizer=0.3), [_random(2, 4), _random(2, 1, seed=1)], True),
    "lstsq not fast": (_of("lstsq", fast=False), [_random(5, 3), _random(5, 2, seed=1)], False),
    "qr": (_qr_of(False), [_random(2, 4, 3)], True),
    "qr of squares": (_qr_of(True), [_random(3, 3)], True),
    "qr wide": (_qr_of(False), [_random(2, 4)], True),
    "qr full": (_qr_of(True), [_random(4, 2)], False),
    "svd": (_svd_of, [_random(2, 3, 3)], True),
    "svd tall": (_svd_of, [_random(4, 2)], True),
    "svd wide": (_svd_of, [_random(2, 4)], True),
    "svd values": (_of("svd", compute_uv=False), [_random(2, 3, 4)], True),
    "eigh": (_eigh_of, [_symmetric(2, 3, 3)], True),
    "eigvalsh": (_of("eigvalsh"), [_symmetric(4, 4)], True),
    "matrix_rank": (_of("matrix_rank"), [np.ones((2, 3, 3)) + _random(3)[:, None] * 0], False),
    "pinv": (_of("pinv"), [_random(2, 4, 3)], True),
    "pinv of less than full rank": (_of("pinv"), [np.ones((3, 2))], False),
    "expm": (_of("expm"), [_random(2, 3, 3)], True),
    "expm of large numbers": (_of("expm"), [_random(3, 3) * 9], False),
    "matvec": (_of("matvec"), [_random(2, 3, 4), _random(2, 4)], True),
    "matvec transposed": (_of("matvec", transpose_a=True), [_random(3, 4), _random(2, 3)], True),
    "cross": (_of("cross"), [_random(2, 3), _random(2, 3, seed=1)], True),
    "set_diag": (_of("set_diag"), [_random(2, 3, 4), _random(2, 3)], True),
    "set_diag below": (_of("set_diag", k=-1), [_random(3, 4), _random(2)], True),
    "adjoint": (_of("adjoint"), [_random(2, 3, 4)], True),
    "tensor_diag": (_of("tensor_diag"), [_random(2, 3)], True),
    "tensor_diag_part": (_of("tensor_diag_part"), [_random(2, 3, 2, 3)], True),
    "normalize": (
        lambda tf, x: tf.linalg.normalize(x, axis=1)[0], [_random(2, 3)], True),
    "norm 3": (_of("norm", ord=3, axis=1), [_random(2, 3)], True),
    "norm 0.5": (_of("norm", ord=0.5), [np.abs(_random(2, 3)) + 0.1], True),
    "norm fro": (_of("norm", ord="fro", axis=[0, 1]), [_random(2, 3)], True),
    "matrix norm 1": (_of("norm", ord=1, axis=(-2, -1)), [_random(2, 3, 4)], True),
    "matrix norm inf": (_of("norm", ord=np.inf, axis=(0, 2)), [_random(2, 3, 4)], True),
    "matrix norm 2": (_of("norm", ord=2, axis=(0, 1), keepdims=True), [_random(3, 4, 2)], True),
    "matrix norm 2 from the end": (_of("norm", ord=2, axis=(-2, -1)), [_random(2, 3, 4)], True),
}  # fmt: skip


def results(tf: Any, name: str, traced: bool = False) -> dict[str, Any]:
    """Values, first and second derivatives (of weighted sums) of a case, as lists."""
    program, arrays, differentiable = CASES[name]

    def weights(x: Any, seed: int) -> Any:
        shape = tuple(int(size) for size in x.shape)
        return tf.constant(np.random.default_rng(seed).uniform(0.5, 1.5, size=shape))

    def run(*operands: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(operands)
            with tf.GradientTape() as inner:
                inner.watch(operands)
                value = program(tf, *operands)
                total = tf.reduce_sum(value * weights(value, 1)) if differentiable else None
            if total is None:
                return value, [], []
            first = inner.gradient(total, operands)
            known = [g for g in first if g is not None]
            again = tf.add_n([tf.reduce_sum(g * weights(g, 2)) for g in known])
        second = outer.gradient(again, operands)
        zeros = [tf.zeros_like(x) if g is None else g for g, x in zip(second, operands)]  # noqa: B905
        return value, first, zeros

    operands = [tf.constant(x) for x in arrays]
    value, first, second = (tf.function(run) if traced else run)(*operands)
    return {
        "value": value.numpy().tolist(),
        "first": [g.numpy().tolist() for g in first],
        "second": [g.numpy().tolist() for g in second],
    }
