"""Matrices: TensorFlow's numbers and derivatives, bits, matrices that have no result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import matrix_cases
import numpy as np
import pytest
from derivatives import check_derivatives

import samegrad as tf

RECORDED = json.loads(Path(__file__).with_name("tensorflow_linalg.json").read_text("utf-8"))
RNG = np.random.default_rng(3)
TRACED = pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])


def test_every_case_was_recorded():
    assert RECORDED["cases"].keys() == matrix_cases.CASES.keys()


@TRACED
@pytest.mark.parametrize("name", matrix_cases.CASES)
def test_values_and_derivatives_are_those_of_tensorflow(name, traced):
    found, expected = matrix_cases.results(tf, name, traced), RECORDED["cases"][name]
    np.testing.assert_allclose(found["value"], expected["value"], rtol=1e-9, atol=1e-11)
    for order in ("first", "second"):
        for got, wanted in zip(found[order], expected[order], strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-7, atol=1e-8)


def positive(*shape):
    x = RNG.normal(size=shape)
    return x @ np.swapaxes(x, -1, -2) + np.eye(shape[-1])


def symmetric(a):
    return (a + tf.linalg.adjoint(a)) / 2


DERIVED = {
    "lu": (lambda a: tf.linalg.lu(a).lu, RNG.normal(size=(2, 3, 3))),
    "expm": (tf.linalg.expm, RNG.normal(size=(3, 3))),
    "determinant": (tf.linalg.det, RNG.normal(size=(4, 4))),
    "qr wide": (lambda a: tf.linalg.qr(a).r, RNG.normal(size=(2, 4))),
    # They read the lower triangle alone.
    "cholesky": (lambda a: tf.linalg.cholesky(symmetric(a)), positive(3, 3)),
    "eigh": (lambda a: tf.square(tf.linalg.eigh(symmetric(a)).v), positive(3, 3)),
    "eigvalsh": (lambda a: tf.linalg.eigvalsh(symmetric(a)), positive(2, 3, 3)),
}


@TRACED
@pytest.mark.parametrize("name", DERIVED)
def test_derivatives_are_those_of_differences(name, traced):
    fn, x = DERIVED[name]
    check_derivatives(fn, x, traced=traced, tolerance=2e-5)


RESULTS = {
    "cholesky": tf.linalg.cholesky,
    "inv": tf.linalg.inv,
    "det": tf.linalg.det,
    "lu": tf.linalg.lu,
    "qr": tf.linalg.qr,
    "svd": tf.linalg.svd,
    "eigh": tf.linalg.eigh,
    "expm": tf.linalg.expm,
    "solve": lambda a: tf.linalg.solve(a, a[..., :2]),
    "triangular_solve": lambda a: tf.linalg.triangular_solve(a, a[..., :2]),
}


def bits(value):
    return [part.numpy() for part in (value if isinstance(value, tuple) else (value,))]


@pytest.mark.parametrize("size", [1, 5, 70])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", RESULTS)
def test_a_matrix_has_the_same_bits_alone_and_anywhere_in_a_batch(name, dtype, size):
    fn = RESULTS[name]
    batch = positive(7, size, size).astype(dtype)
    whole, turned = bits(fn(batch)), bits(fn(batch[::-1].copy()))
    for i in (0, 3, 6):
        for alone, among, other in zip(bits(fn(batch[i])), whole, turned, strict=True):
            assert np.array_equal(alone, among[i]) and np.array_equal(alone, other[6 - i])


PROGRAM = """
import numpy as np, samegrad as tf
x = np.random.default_rng(0).normal(size=(40, 33, 33)).astype(np.float32)
a = tf.constant(x @ np.swapaxes(x, -1, -2) + np.eye(33, dtype=np.float32))
parts = [tf.linalg.cholesky(a), *tf.linalg.svd(a), *tf.linalg.eigh(a), tf.linalg.inv(a)]
print(tf.fingerprint(parts))
"""


def test_bits_do_not_depend_on_threads_and_caches():
    found = set()
    for machine in ("threads=1", "threads=4,l1=8k,l2=64k,l3=1m"):
        environment = {**os.environ, "SAMEGRAD_MACHINE": machine}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found.add(done.stdout)
    assert len(found) == 1


def test_one_replica_and_four_have_the_same_bits():
    def loss(a, w):
        factor = tf.linalg.cholesky(tf.matmul(a, a, transpose_b=True) + w)
        return tf.linalg.slogdet(factor).log_abs_determinant

    a = RNG.normal(size=(16, 3, 3)).astype(np.float32)
    found = []
    for replicas in (1, 4):
        strategy = tf.distribute.MirroredStrategy(replicas=replicas)
        with strategy.scope():
            w = tf.Variable(np.eye(3, dtype=np.float32) * 2)

        def step(x, w=w):
            with tf.GradientTape() as tape:
                value = tf.nn.compute_average_loss(loss(x, w))
            context = tf.distribute.get_replica_context()
            return context.all_reduce("sum", tape.gradient(value, w))

        data = tf.data.Dataset.from_tensor_slices(a).batch(16)
        for batch in strategy.experimental_distribute_dataset(data):
            found.append(strategy.run(step, args=(batch,)))
    one, four = (strategy.experimental_local_results(x)[0].numpy() for x in found)
    assert np.array_equal(one, four)


@TRACED
@pytest.mark.parametrize(
    ("name", "bad", "said"),
    [
        ("cholesky", -np.eye(2), "must be positive definite"),
        ("inv", np.zeros((2, 2)), "must have an inverse"),
        ("lu", np.zeros((2, 2)), "must have an inverse"),
        ("solve", np.ones((2, 2)), "must have an inverse"),
        ("triangular_solve", np.zeros((2, 2)), "got 0 at place 0 of its diagonal"),
        ("eigh", np.full((2, 2), np.nan), "must be of finite numbers"),
    ],
)
def test_a_matrix_without_result_is_named(name, bad, said, traced):
    batch = np.stack([np.stack([np.eye(2)] * 3), np.stack([np.eye(2), np.eye(2), bad])])
    fn = tf.function(RESULTS[name]) if traced else RESULTS[name]
    with pytest.raises(tf.errors.InvalidArgumentError, match=said) as raised:
        fn(tf.constant(batch))
    assert "position (1, 2)" in str(raised.value)
    with pytest.raises(tf.errors.InvalidArgumentError, match="the matrix must"):
        RESULTS[name](tf.constant(bad))


@pytest.mark.parametrize("name", RESULTS)
def test_matrices_must_be_floats_and_square(name):
    with pytest.raises((TypeError, ValueError), match="floats"):
        RESULTS[name](tf.constant([[1]]))
    with pytest.raises(ValueError, match="at least 2 axes|axes"):
        RESULTS[name](tf.constant([1.0]))
    if name not in ("qr", "svd"):
        with pytest.raises(ValueError, match="must be square: got shape \\(2, 3\\)"):
            RESULTS[name](tf.ones((2, 3)))


def test_matrices_without_elements():
    none = tf.zeros((2, 0, 0))
    np.testing.assert_array_equal(tf.linalg.det(none).numpy(), [1, 1])
    np.testing.assert_array_equal(tf.linalg.slogdet(none).log_abs_determinant.numpy(), [0, 0])
    for fn in (tf.linalg.inv, tf.linalg.cholesky, tf.linalg.expm):
        assert fn(none).numpy().shape == (2, 0, 0)
    assert tf.linalg.solve(none, tf.zeros((2, 0, 3))).numpy().shape == (2, 0, 3)
    q, r = tf.linalg.qr(tf.zeros((3, 0)), full_matrices=True)
    np.testing.assert_array_equal(q.numpy(), np.eye(3))
    assert r.numpy().shape == (3, 0)
    s, u, v = tf.linalg.svd(tf.zeros((0, 2)), full_matrices=True)
    assert (s.numpy().shape, u.numpy().shape) == ((0,), (0, 0))
    np.testing.assert_array_equal(v.numpy(), np.eye(2))
    assert tf.linalg.cholesky(tf.zeros((0, 3, 3))).numpy().shape == (0, 3, 3)


def test_a_singular_matrix_has_a_determinant():
    singular = tf.ones((2, 2))
    assert float(tf.linalg.det(singular)) == 0
    sign, logarithm = tf.linalg.slogdet(singular)
    assert (float(sign), float(logarithm)) == (0, -np.inf)


def test_singular_values_of_numbers_that_are_not_finite_are_nan():
    s, u, v = tf.linalg.svd([[1.0, np.inf], [0.0, 1.0]])
    assert np.isnan(np.concatenate([x.numpy().ravel() for x in (s, u, v)])).all()
    assert np.isnan(tf.linalg.expm([[np.nan]]).numpy()).all()


@pytest.mark.parametrize("program", [tf.linalg.qr, tf.linalg.svd])
def test_vectors_that_nothing_determines_have_no_derivative(program):
    x = tf.Variable(RNG.normal(size=(4, 2)))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(program(x, full_matrices=True)[1])
    with pytest.raises(NotImplementedError, match="full_matrices=False"):
        tape.gradient(y, x)


def test_bfloat16_is_computed_wider():
    found = tf.linalg.inv(tf.cast([[2.0, 0.0], [0.0, 4.0]], "bfloat16"))
    assert found.dtype == tf.bfloat16
    np.testing.assert_array_equal(tf.cast(found, "float32").numpy(), [[0.5, 0], [0, 0.25]])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: tf.linalg.cross([1.0, 2.0], [1.0, 2.0]), "vectors have 3 elements"),
        (lambda: tf.linalg.set_diag(tf.ones((2, 2)), [1.0]), "have at most 2 elements: got shape"),
        (lambda: tf.linalg.lstsq(tf.ones((2, 2)), tf.ones((2, 1)), -1.0), "must be 0 or more"),
        (lambda: tf.linalg.solve(tf.ones((2, 2)), tf.ones((3, 1))), "columns of its own"),
        (lambda: tf.linalg.tensor_diag_part(tf.ones((2, 3))), "must be equal"),
        (lambda: tf.linalg.matvec(tf.ones((2, 2)), [1.0, 1.0], True, True), "turned over once"),
    ],
)
def test_what_does_not_fit_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()
