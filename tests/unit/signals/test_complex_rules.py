"""Complex tensors where NumPy's numbers, or the definition of a gradient, say what is right."""

from __future__ import annotations

import inspect
import sys

import numpy as np
import pytest

import samegrad as tf
from samegrad._base.dtypes import complex_type


def gradients(program, *sources):
    with tf.GradientTape() as tape:
        tape.watch(sources)
        loss, wanted = program(*sources)
    return [complex(each) for each in tape.gradient(loss, wanted)]


def test_what_a_tensor_is_made_of_has_gradients_of_its_own():
    x, y = tf.constant(3.0), tf.constant(4.0)

    def of_complex(x, y):
        z = tf.complex(x, y)
        return tf.abs(z) + 100.0 * x, [z, x, y]

    assert np.allclose(gradients(of_complex, x, y), [0.6 + 0.8j, 100.6, 0.8])

    def of_cast(x):
        z = tf.cast(x, tf.complex64)
        return tf.abs(z) + 100.0 * x, [z, x]

    assert np.allclose(gradients(of_cast, x), [1.0, 101.0])


@pytest.mark.parametrize(
    ("part", "of_part", "of_whole"),
    [
        (tf.math.real, 2.0, 7.0 + 5.0j),
        (tf.math.imag, 2.0, 5.0 + 7.0j),
        (lambda z: tf.cast(z, tf.float32), 2.0, 7.0 + 5.0j),
        (lambda z: tf.math.real(tf.math.conj(z)), 2.0, 7.0 + 5.0j),
    ],
)
def test_the_gradient_by_a_part_is_not_that_of_the_whole(part, of_part, of_whole):
    def program(z):
        one = part(z)
        return 2.0 * one + 5.0 * (tf.math.real(z) + tf.math.imag(z)), [one, z]

    assert gradients(program, tf.constant(1 + 1j, tf.complex64)) == [of_part, of_whole]


def test_the_gradient_by_a_conjugate_is_not_that_of_the_number():
    def program(z):
        other = tf.math.conj(z)
        return tf.math.real(other * 2.0) + 5.0 * tf.math.real(z), [other, z]

    assert gradients(program, tf.constant(1 + 1j)) == [2.0, 7.0]


@pytest.mark.parametrize("number", [-4 + 0j, -4 + 3j, -4 - 3j, 4 + 0j, 4 - 3j])
def test_the_gradients_of_roots_are_their_derivatives(number):
    def of(part):
        def program(z):
            return part(tf.sqrt(z)), [z]

        return gradients(program, tf.constant(number))[0]

    slope = 0.5 / np.sqrt(number)
    assert np.allclose(of(tf.math.real), np.conj(slope))
    assert np.allclose(of(tf.math.imag), np.conj(slope) * 1j)


def frames_of(call):
    """The names of Python's functions that a call enters."""
    entered = []

    def profile(frame, event, _):
        if event == "call":
            entered.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(before)
    return entered


def test_real_operands_pay_little_for_complex_ones():
    x, v = tf.constant(2.0), tf.Variable(2.0)
    calls = (lambda: tf.add(x, x), lambda: tf.abs(x), lambda: tf.abs(v), lambda: tf.pow(v, x))
    for call in calls:
        call()
        assert "is_complex" not in frames_of(call)
    for function in (tf.add, tf.abs, tf.math.squared_difference, tf.math.reciprocal):
        either = inspect.unwrap(function, stop=lambda f: f.__code__.co_name == "either")
        assert either.__code__.co_name == "either"
        assert not either.__code__.co_flags & inspect.CO_VARARGS, function
    assert float(tf.add(y=1.0, x=x, name="sum")) == 3.0 and float(tf.abs(x=-x, name="a")) == 2.0
    assert complex(tf.add(y=1j, x=2.0)) == 2 + 1j and float(tf.abs(x=3j)) == 3.0
    with pytest.raises(TypeError, match=r"\[add\] missing a required argument: 'y'"):
        tf.add(x)


def test_whether_a_dtype_is_complex_costs_no_name_of_numpys():
    for kind in (np.float32, float, np.dtype("int64"), "float32", tf.float32, None, object()):
        found = []
        entered = frames_of(lambda kind=kind, found=found: found.append(complex_type(kind)))
        assert found == [None] and not {"_name_get", "_complex_name"} & set(entered)
    for kind in (np.complex64, np.dtype(">c8"), "complex64", tf.complex64):
        assert complex_type(kind) is tf.complex64
    for kind in (complex, np.dtype("c16"), np.complex128, "complex128"):
        assert complex_type(kind) is tf.complex128


def test_lists_of_real_numbers_are_not_looked_through_for_complex_ones():
    real, z = [[1.0, 2.0], [3.0, 4.0]], tf.constant([1j])
    for make in (tf.constant, tf.convert_to_tensor):
        assert "_holds_complex" not in frames_of(lambda make=make: make(real))
        assert make([[1.0, 2j]]).numpy().tolist() == [[1.0, 2j]]
        assert make((z[0], 2.0, z[0])).numpy().tolist() == [1j, 2.0, 1j]
        assert make([np.array([1j]), np.ones(1)]).shape == (2, 1)
        for wrong in ([[1.0], [1.0, 2.0]], [object()], ["a", 1j], [[1j], [1.0, 2.0]]):
            with pytest.raises((TypeError, ValueError), match=r"^\[\w+\] "):
                make(wrong)
    assert tf.constant([1j], shape=[2, 1]).shape == (2, 1)


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
@pytest.mark.parametrize(
    "exponent", [-1, -2, -3, -2.0, -64, 7, 64, 101, np.int64(2), np.int8(-3), np.float32(2), 1000]
)
def test_whole_powers_are_products(exponent, kind):
    z = np.array([1 + 0.01j, 2 - 1j, -0.5j, 3, -1], kind)
    z = z if abs(exponent) < 50 else (z / np.abs(z)).astype(kind)
    found = tf.constant(z) ** exponent
    assert np.array_equal(tf.pow(tf.constant(z), exponent).numpy(), found.numpy())
    assert found.dtype == kind
    assert "logarithm" not in frames_of(lambda: tf.constant(z) ** exponent)
    expected = z.astype(complex) ** float(exponent)
    bound = (3e-7 if kind == "complex64" else 4e-16) * abs(exponent) * 2
    assert np.all(np.abs(found.numpy() - expected) <= bound * np.abs(expected))


def test_powers_of_large_and_small_numbers():
    z = tf.constant([1e30 + 0j, 1e-30 + 0j, 1e10j], tf.complex64)
    assert (z**-2).numpy()[[0, 2]].tolist() == pytest.approx([0, -1e-20])
    assert (z**-2).numpy()[1].real == np.inf
    odd = (tf.constant(2j) ** float("inf"), tf.constant(2j) ** float("nan"))
    assert all(np.isnan(each.numpy()) for each in odd)


def test_zero_to_a_power_is_what_tensorflow_makes_of_it():
    nothing, nan, inf = tf.constant([0j, 1j]), np.nan, np.inf
    for exponent, real, imag in (
        (-1, inf, nan), (-2, inf, nan), (-1.5, inf, nan), (-1 + 0j, inf, nan), (2, 0, 0),
        (0.5, 0, 0), (1 + 1j, 0, 0), (1j, nan, nan), (0, 1, 0),
    ):  # fmt: skip
        found = tf.pow(nothing, exponent).numpy()
        assert np.array_equal([found[0].real, found[0].imag], [real, imag], equal_nan=True)
        assert np.allclose(found[1], 1j**exponent)


@pytest.mark.parametrize("exponent", [-3, -1, 2, 5, np.int32(70)])
def test_powers_have_the_gradients_of_their_derivatives(exponent):
    number = 0.9 - 0.6j
    slope = gradients(lambda z: (tf.math.real(z**exponent), [z]), tf.constant(number))[0]
    n = int(exponent)
    assert np.allclose(slope, np.conj(n * number ** (n - 1)))


@pytest.mark.parametrize("fill", [1.0, 1j, 2 - 3j, np.float64(1), np.complex64(1j), 0])
def test_frames_of_complex_signals_are_filled_up_with_the_number(fill):
    signal = np.array([1j, 2, 3 + 1j], np.complex64)
    found = tf.signal.frame(signal, 2, 2, pad_end=True, pad_value=fill)
    assert found.dtype == tf.complex64
    assert found.numpy().tolist() == [[1j, 2], [3 + 1j, complex(fill)]]
    by_tensor = tf.signal.frame(signal, 2, 2, True, tf.constant(fill))
    assert np.array_equal(by_tensor.numpy(), found.numpy())
    traced = tf.function(lambda x: tf.signal.frame(x, 2, 2, pad_end=True, pad_value=fill))
    assert np.array_equal(traced(tf.constant(signal)).numpy(), found.numpy())


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_tangents_and_exponentials_are_exact_in_both_parts(kind):
    places = np.array([0, 0.3, 1, 5, 12, 30, -5, -0.01, 75, 88, 300, 900, -900])
    z = (places[:, None] + 1j * np.array([0, 1.0, 1.6, -2])).astype(kind)
    bound = 2e-6 if kind == "complex64" else 4e-14
    smallest = np.finfo(kind).tiny / bound  # below it numbers lose their places
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for ours, theirs in ((tf.tanh, np.tanh), (tf.exp, np.exp)):
            found, expected = ours(tf.constant(z)).numpy(), theirs(z)
            for part in (np.real, np.imag):
                a, b = part(found), part(expected)
                ends = ~np.isfinite(b)
                assert np.array_equal(a[ends], b[ends])
                fits = np.isfinite(b)
                assert np.all(np.abs(a - b)[fits] <= bound * np.abs(b[fits]) + smallest * bound)


def test_numbers_at_the_edge():
    z = tf.constant([89 + 1.6j, 100 + 1.6j], tf.complex64)
    assert tf.exp(z).numpy()[0].real == pytest.approx(-1.3109466e37, rel=1e-5)
    assert tf.exp(tf.constant(711 + 1.6j)).numpy().real == pytest.approx(
        np.exp(700.0) * (np.exp(11.0) * np.cos(1.6)), rel=1e-12
    )
    inf, nan = np.inf, np.nan
    odd = [complex(inf, nan), complex(nan, -inf), complex(nan, 1), complex(inf, inf), complex(1, 0)]
    assert np.array_equal(tf.abs(tf.constant(odd)).numpy(), np.abs(odd), equal_nan=True)


@pytest.mark.parametrize("function", [tf.tanh, tf.exp])
@pytest.mark.parametrize("number", [0.5 + 0.2j, 20 - 1j, -30 + 2j, 100 + 1j])
def test_their_gradients_are_their_derivatives(function, number):
    slope = gradients(lambda z: (tf.math.real(function(z)), [z]), tf.constant(number))[0]
    expected = np.exp(number) if function is tf.exp else 1 / np.cosh(number) ** 2
    assert abs(slope - np.conj(expected)) <= 1e-9 * abs(expected) + 1e-16
    with tf.GradientTape() as tape:
        far = tf.constant([1e4 + 1j, -1e4 + 1j], tf.complex64)
        tape.watch(far)
        loss = tf.reduce_sum(tf.math.real(tf.tanh(far)))
    assert np.array_equal(tape.gradient(loss, far).numpy(), [0, 0])
