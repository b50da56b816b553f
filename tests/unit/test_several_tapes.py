"""Several tapes at once: nested, one after the other, interleaved, each with its own record.

The reference of the random programs is compared with TensorFlow's recorded answers.
"""

import json
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tape_programs import Reference, program, run

import samegrad as tf
from samegrad import _core

RECORDED = json.loads((Path(__file__).parent / "tensorflow_tapes.json").read_text())
Runner = Callable[[list[list[Any]]], list[Any]]


def _in_a_trace(call: Callable[[Callable[[], Any]], Any]) -> Runner:
    """Run a program in one call; what is None is noted while it is traced."""

    def runner(instructions: list[list[Any]]) -> list[Any]:
        missing: list[bool] = []

        def fn() -> list[Any]:
            found = run(tf, instructions)
            missing[:] = [g is None for g in found]
            return [tf.zeros(2, "float64") if g is None else g for g in found]

        made = call(fn)
        return [None if none else g for none, g in zip(missing, made, strict=True)]

    return runner


def _in_run(fn: Callable[[], Any]) -> Any:
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    return [g.values[1] if hasattr(g, "values") else g for g in strategy.run(fn)]


RUNNERS: dict[str, Runner] = {
    "eager": lambda instructions: run(tf, instructions),
    "traced": _in_a_trace(lambda fn: tf.function(fn)()),
    "run": _in_a_trace(_in_run),
}


def check(got: list[Any], want: list[Any]) -> None:
    """Compare gradients, None with None."""
    for g, w in zip(got, want, strict=True):
        assert (g is None) == (w is None)
        if w is not None:
            np.testing.assert_allclose(np.asarray(g), w, rtol=1e-7, atol=1e-7)


def test_the_reference_gives_tensorflows_gradients() -> None:
    assert len(RECORDED) == 150
    for seed, want in RECORDED.items():
        check(Reference().run(program(int(seed))), want)


@pytest.mark.parametrize("mode", RUNNERS)
def test_random_programs_of_tapes_have_the_gradients_of_the_reference(mode: str) -> None:
    for seed in range(150 if mode == "eager" else 40):
        instructions = program(seed)
        check(RUNNERS[mode](instructions), Reference().run(instructions))


def cubes(x: tf.Tensor) -> list[Any]:
    """Return gradients of two tapes, one after the other, that watch one tensor."""
    with tf.GradientTape() as first:
        first.watch(x)
        a = x * x
    with tf.GradientTape() as second:
        second.watch(x)
        b = x * x * x
    return [first.gradient(a, x), second.gradient(b, x)]


def in_two_pieces(x: tf.Tensor) -> list[Any]:
    """Return a backward pass whose second half is that of an earlier tape."""
    with tf.GradientTape() as first:
        first.watch(x)
        y = x * x
    with tf.GradientTape() as second:
        second.watch(y)
        z = y * y
    return [first.gradient(y, x, output_gradients=second.gradient(z, y))]


def along_a_direction(x: tf.Tensor) -> list[Any]:
    """Return J · 2 of x³ by two backward passes, of which a later tape records the first."""
    with tf.GradientTape() as first:
        first.watch(x)
        y = x * x * x
    with tf.GradientTape() as second:
        weights = tf.ones_like(y)
        second.watch(weights)
        slope = first.gradient(y, x, output_gradients=weights)
    return [second.gradient(slope, weights, output_gradients=2 * tf.ones_like(slope))]


def entered_again(x: tf.Tensor) -> list[Any]:
    """Return gradients of a tape that records again while another one records."""
    first = tf.GradientTape(persistent=True)
    with first:
        first.watch(x)
        y = x * x
    with tf.GradientTape(persistent=True) as second:
        second.watch(x)
        with first:
            z = y * x
        w = z * x
    return [first.gradient(z, x), second.gradient(w, x), second.gradient(z, x)]


def with_a_function(x: tf.Tensor) -> list[Any]:
    """Return gradients behind calls of a function that two tapes share."""
    square = tf.function(lambda x: x * x)
    with tf.GradientTape() as first:
        first.watch(x)
        y = square(x)
    with tf.GradientTape() as second:
        second.watch([x, y])
        slope = first.gradient(y, x, output_gradients=y)
        z = square(slope)
    return list(second.gradient(z, [x, y]))


def with_a_custom_gradient(x: tf.Tensor) -> list[Any]:
    """Return gradients of a gradient that the program gives, recorded by a later tape."""

    @tf.custom_gradient
    def cube(x: tf.Tensor) -> Any:
        return x * x * x, lambda ct: ct * 5.0 * x * x

    with tf.GradientTape() as first:
        first.watch(x)
        y = cube(x)
    with tf.GradientTape() as second:
        second.watch(x)
        slope = first.gradient(y, x)
    return [slope, second.gradient(slope, x)]


# At x = 3.
FIXED: dict[str, tuple[Callable[[tf.Tensor], list[Any]], list[float]]] = {
    "one after the other": (cubes, [6.0, 27.0]),
    "in two pieces": (in_two_pieces, [108.0]),
    "along a direction": (along_a_direction, [54.0]),
    # y is a constant to the second tape: z = 9 x, w = 9 x².
    "entered again": (entered_again, [27.0, 54.0, 9.0]),
    # slope = 2 x y with y = 9 watched by itself: z = 4 x² y².
    "with a function": (with_a_function, [1944.0, 648.0]),
    "with a custom gradient": (with_a_custom_gradient, [45.0, 30.0]),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", FIXED)
def test_each_of_two_tapes_has_its_gradients(name: str, compiled: bool) -> None:
    fn, want = FIXED[name]
    found = (tf.function(fn) if compiled else fn)(tf.constant(3.0))
    assert [float(g) for g in found] == want


def test_two_tapes_know_a_variable_and_a_watched_tensor() -> None:
    v, x = tf.Variable(2.0), tf.constant(3.0)
    with tf.GradientTape() as first:
        first.watch(x)
        a = v * x
    with tf.GradientTape() as second:
        second.watch(x)
        b = v * v * x
    assert [float(g) for g in first.gradient(a, [v, x])] == [3.0, 2.0]
    assert [float(g) for g in second.gradient(b, [v, x])] == [12.0, 4.0]


def test_tapes_end_in_any_order() -> None:
    x = tf.constant(3.0)
    first, second = tf.GradientTape(), tf.GradientTape()
    first.__enter__()
    first.watch(x)
    second.__enter__()
    second.watch(x)
    y = x * x
    first.__exit__(None, None, None)
    z = y * x
    second.__exit__(None, None, None)
    assert _core.current_trace() is None
    assert first.gradient(z, x) is None
    assert float(second.gradient(z, x)) == 27.0


def test_a_tape_that_pauses_or_is_reset_leaves_others_alone() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(x)
            with outer.stop_recording():
                y = x * x
            z = y * x
            outer.reset()
            w = z * x
    assert float(inner.gradient(w, x)) == 108.0
    assert outer.gradient(w, x) is None and outer.gradient(y, x) is None
    assert _core.current_trace() is None


def test_what_came_before_a_tensor_was_watched_is_a_constant() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            y = x * x
            tape.watch(x)
            z = y * x
        assert float(tape.gradient(z, x)) == 9.0
    assert float(outer.gradient(z, x)) == 27.0


def test_an_unwatched_tensor_has_the_gradient_of_itself_alone() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * 2.0
    assert float(tape.gradient(x, x)) == 1.0
    assert tape.gradient(y, x) is None
    with tf.GradientTape() as tape:
        y = tf.constant(2.0) * 3.0
        z = y * y
    assert tape.gradient(z, y) is None


def test_tapes_that_take_turns_at_one_tensor_keep_nothing_alive() -> None:
    x = tf.constant(np.zeros(1 << 20, np.float32))  # 4 MiB
    page = resource.getpagesize()

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * page

    def turn() -> None:
        for _ in range(2):
            tapes.append(tf.GradientTape())
            with tapes[-1]:
                tapes[-1].watch(x)
                y = x * x
            tapes[-1].gradient(y, x)
        del tapes[:-1]

    tapes: list[Any] = []
    for _ in range(5):
        turn()
    before = resident()
    for _ in range(60):
        turn()
    assert resident() - before < 200 * 2**20  # of 1.4 GiB
