"""After an exception at any point of any call, the next call works and no state is half-made."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inject import NO_INSTRUCTIONS
from program import Program

import samegrad as tf
from samegrad import _core
from samegrad._context import state as _context

_SCRIPT = Path(__file__).with_name("long_interrupts.py")
_CALLS = [
    "first trace",
    "step",
    "first run",
    "run",
    "first eager step",
    "eager step",
    "creation",
    "next",
    "save",
    "restore",
    "first trace after a restore",
]


def _run_or_skip(*command: str) -> str:
    """Run a program that injects, in a process of its own, and return what it prints."""
    result = subprocess.run(
        [sys.executable, *command],
        capture_output=True, text=True, timeout=300, env=dict(os.environ),
    )  # fmt: skip
    if NO_INSTRUCTIONS in result.stderr:
        pytest.skip(NO_INSTRUCTIONS)
    assert result.returncode == 0, result.stdout + result.stderr[-4000:]
    return result.stdout


def _interrupt(kind: str, way: str, count: int) -> None:
    arguments = ["--kinds", kind, "--ways", way, "--count", str(count)]
    printed = _run_or_skip(str(_SCRIPT), *arguments)
    found = re.search(rf"{kind}, {way}: (\d+) interrupts, 0 broken", printed)
    assert found is not None, printed
    # How many allocations a call needs depends on what is at hand: a restore may need very few.
    assert int(found[1]) >= (1 if way == "allocation" else count // 2)


@pytest.mark.parametrize("kind", _CALLS)
def test_after_an_exception_at_any_bytecode_the_program_goes_on(kind: str) -> None:
    _interrupt(kind, "bytecode", 15)


@pytest.mark.parametrize("kind", ["first trace", "step", "first run", "save", "restore"])
def test_after_a_signal_at_any_time_the_program_goes_on(kind: str) -> None:
    _interrupt(kind, "signal", 15)


@pytest.mark.parametrize("kind", ["first trace", "step", "restore"])
def test_after_an_allocation_that_fails_the_program_goes_on(kind: str) -> None:
    _interrupt(kind, "allocation", 15)


def test_an_injected_exception_leaves_none_handled() -> None:
    """The injector leaves no exception handled: all later errors would have it as their context."""
    _run_or_skip(str(Path(__file__).with_name("handled.py")))


def test_no_destructor_is_pythons() -> None:
    # What a signal raises in one is lost: Python prints it, and the call goes on.
    package = Path(tf.__file__).parent
    ways = re.compile(r"def __del__|weakref\.Weak(Set|\w+Dictionary)")
    found = [path.name for path in package.rglob("*.py") if ways.search(path.read_text())]
    assert not found


@pytest.mark.parametrize("step", ["train", "train_without_function", "train_eagerly"])
def test_no_block_of_a_step_is_a_generator(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # One that a signal reaches as it ends is ended again when its traceback is freed, and puts
    # back then what it found long ago: scopes of Keras, weights of a layer that is built by now.
    entered: list[str] = []
    enter = contextlib._GeneratorContextManager.__enter__

    def seen(manager: Any) -> Any:
        entered.append(manager.gen.__qualname__)
        return enter(manager)

    program = Program()
    monkeypatch.setattr(contextlib._GeneratorContextManager, "__enter__", seen)
    getattr(program, step)()
    assert not entered
    with tf.keras.backend.learning_phase_scope(1):
        getattr(program, step)()
    assert not entered


class _InterruptedError(BaseException):
    """What no handler catches."""


def test_what_a_frame_has_entered_and_not_left_goes_with_the_block_around_it() -> None:
    trace = _core.Trace(2)
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with _core.tracing_into(trace):
        left_open = [strategy.scope(), tf.init_scope(), _core.data_function(987654, 4)]
        for guard in left_open:
            guard.__enter__()
        assert not _core.tracing()
        assert _core.random_state().seed == 987654
    assert _core.current_trace() is None
    assert not tf.distribute.has_strategy()
    assert _core.random_state().seed != 987654
    for guard in left_open:  # too late: nothing happens
        guard.__exit__(None, None, None)
    assert _context.current().strategy is None


def test_a_block_ends_with_the_frame_that_holds_it() -> None:
    guard = tf.distribute.MirroredStrategy(replicas=2).scope()
    guard.__enter__()
    assert tf.distribute.has_strategy()
    del guard
    assert not tf.distribute.has_strategy()


def test_a_block_is_entered_once_at_a_time() -> None:
    guard = tf.init_scope()
    with guard, pytest.raises(ValueError, match="entered already"):
        guard.__enter__()
    with guard:
        pass


def test_a_scope_of_another_thread_is_left_alone() -> None:
    guard = tf.distribute.MirroredStrategy(replicas=2).scope()
    thread = threading.Thread(target=guard.__enter__)
    thread.start()
    thread.join()
    with tf.distribute.MirroredStrategy(replicas=3).scope() as own:
        guard.__exit__(None, None, None)
        assert tf.distribute.get_strategy() is own


class _Dense(tf.keras.layers.Layer):
    """Fails once, after its first weight."""

    failures = 1

    def build(self, input_shape: Any) -> None:
        self.kernel = self.add_weight(name="kernel", shape=(input_shape[-1], 3), regularizer="l2")
        if _Dense.failures:
            _Dense.failures -= 1
            raise _InterruptedError
        self.second = self.add_weight(name="second", shape=(7,), initializer="random_uniform")

    def call(self, inputs: Any) -> Any:
        return inputs @ self.kernel


def test_a_build_that_fails_leaves_no_weights_and_gives_its_random_numbers_back() -> None:
    tf.random.set_seed(5)
    _Dense.failures = 0
    whole = _Dense()
    whole(np.ones((2, 5), np.float32))
    tf.random.set_seed(5)
    _Dense.failures = 1
    layer = _Dense()
    with pytest.raises(_InterruptedError):
        layer(np.ones((2, 5), np.float32))
    assert layer.weights == [] and layer.losses == [] and not hasattr(layer, "kernel")
    layer(np.ones((2, 5), np.float32))
    assert len(layer.losses) == 1
    for ours, theirs in zip(layer.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_slots_are_made_for_all_variables_or_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = [tf.Variable(np.ones(n, np.float32)) for n in (3, 0, 17)]
    optimizer = tf.keras.optimizers.Adam()
    gradients = [tf.ones_like(v) for v in variables]
    made = [0]

    def failing(*arguments: Any, **options: Any) -> Any:
        made[0] += 1
        if made[0] == 4:
            raise KeyboardInterrupt
        return whole(*arguments, **options)

    whole = optimizer.add_variable_from_reference
    monkeypatch.setattr(optimizer, "add_variable_from_reference", failing)
    with pytest.raises(KeyboardInterrupt):
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
    assert len(optimizer.variables) == 2  # iterations and learning rate
    optimizer.apply_gradients(zip(gradients, variables, strict=True))
    shapes = [tuple(v.shape) for v in optimizer.variables[2:]]
    assert sorted(shapes) == sorted(2 * [(3,), (0,), (17,)])


class _HalfWay(tf.keras.optimizers.SGD):
    """Stops at its second variable."""

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        if tuple(variable.shape) == (2,):
            raise KeyboardInterrupt
        super().update_step(gradient, variable, learning_rate)


def test_an_eager_update_changes_all_variables_or_none() -> None:
    one, two = tf.Variable(np.ones(5, np.float32)), tf.Variable(np.ones(2, np.float32))
    optimizer = _HalfWay(0.5, momentum=0.9)
    gradients = [tf.ones_like(one), tf.ones_like(two)]
    with pytest.raises(KeyboardInterrupt):
        optimizer.apply_gradients(zip(gradients, (one, two), strict=True))
    assert one.numpy().tolist() == [1.0] * 5
    assert optimizer.momentums[0].numpy().tolist() == [0.0] * 5
    assert int(optimizer.iterations.numpy()) == 0


def test_a_metric_is_reset_as_a_whole() -> None:
    metric = tf.keras.metrics.Mean()
    metric.update_state([1.0, 2.0, 6.0])

    def stop(value: Any) -> None:
        raise KeyboardInterrupt

    metric.count.assign = stop  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyboardInterrupt):
        metric.reset_state()
    assert float(metric.result()) == 3.0


class _Size:
    """A size whose number cannot be had."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __index__(self) -> int:
        raise self._error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), SystemExit(3)])
def test_an_interrupt_inside_a_conversion_arrives_as_it_is(error: BaseException) -> None:
    x = tf.constant([[1.0, 2.0]])
    with pytest.raises(type(error)):
        _core.ops.reshape(x, shape=[_Size(error), 2])
    with pytest.raises(type(error)):
        _core.ops.reduce_sum(x, axes=[_Size(error)])
    with pytest.raises(TypeError, match="^not an integer$"):
        _core.ops.reshape(x, shape=[_Size(TypeError("not an integer")), 2])


def test_an_interrupt_inside_a_hash_arrives_as_it_is() -> None:
    class Argument:
        def __hash__(self) -> int:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tf.function(lambda argument: tf.constant(1.0))(Argument())


def test_an_element_that_could_not_be_packed_is_the_next_one() -> None:
    class Pair(dict):  # type: ignore[type-arg]
        """A structure."""

    dataset = tf.data.Dataset.from_tensor_slices({"a": np.arange(11), "b": np.arange(11)}).batch(4)
    iterator = iter(dataset)
    assert next(iterator)["a"].numpy().tolist() == [0, 1, 2, 3]
    seen: list[str] = []

    def stop_in_pack(frame: Any, event: str, argument: Any) -> Any:
        if event == "call" and "_structure" in frame.f_code.co_filename:
            seen.append(frame.f_code.co_name)
            raise KeyboardInterrupt
        return None

    sys.settrace(stop_in_pack)
    try:
        with pytest.raises(KeyboardInterrupt):
            next(iterator)
    finally:
        sys.settrace(None)
    assert seen
    assert iterator._checkpoint_state()["position"] == 1
    assert next(iterator)["a"].numpy().tolist() == [4, 5, 6, 7]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_an_interrupt_between_the_stages_of_python_loses_no_element(prefetch: int) -> None:
    stops = [0]

    def double(x: Any) -> Any:
        stops[0] += 1
        if stops[0] == 8:
            raise KeyboardInterrupt
        return x * 2

    dataset = tf.data.Dataset.range(23).map(double).shuffle(5, 3, False).batch(4)
    stops[0] = 100
    expected = [batch.numpy().tolist() for batch in dataset]
    stops[0] = 0
    iterator = iter(dataset.prefetch(prefetch) if prefetch else dataset)
    seen = []
    while len(seen) < len(expected):
        try:
            seen.append(next(iterator).numpy().tolist())
        except KeyboardInterrupt:
            continue
    assert seen == expected
    assert stops[0] > 8


def test_a_tape_stops_where_its_block_ends_and_can_be_asked_again_after_an_error() -> None:
    x = tf.constant([3.0, 0.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            z = x * y
        w = y * 2.0
    assert _core.current_trace() is None
    with pytest.raises(ValueError, match="one per target"):
        tape.gradient(w, x, output_gradients=[w, w])
    with pytest.raises(ValueError):
        tape.gradient(w, x, output_gradients=tf.constant([1.0, 2.0]))
    assert tape.gradient(w, x).numpy().tolist() == [12.0, 0.0, 8.0]
    assert z.numpy().tolist() == [27.0, 0.0, 8.0]


def test_a_tape_that_is_reset_goes_on_as_it_was_made() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        _ = x * x
        tape.reset()
        tape.watch(x)
        y = x * x * x
    assert float(tape.gradient(y, x)) == 27.0
    assert float(tape.gradient(y, x)) == 27.0
    assert _core.current_trace() is None


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_step_that_is_stopped_in_a_loop_changes_nothing(replicas: int) -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        before, inside, after = (tf.Variable(np.zeros(9, np.float32)) for _ in range(3))

    @tf.function
    def step(rounds: Any) -> Any:
        def replica_fn(rounds: Any) -> Any:
            before.assign_add(tf.ones_like(before))
            i = tf.constant(0)
            while i < rounds:
                inside.assign_add(tf.ones_like(inside))
                i += 1
            after.assign_add(tf.ones_like(after))
            return tf.cast(i, "float32")

        return strategy.run(replica_fn, args=(rounds,))

    step(tf.constant(0))
    values = [v.numpy().tolist() for v in (before, inside, after)]
    old = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            step(tf.constant(2**31 - 1))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert [v.numpy().tolist() for v in (before, inside, after)] == values
    assert _core.current_trace() is None
    step(tf.constant(2))
    assert float(inside.numpy()[0]) == values[1][0] + 2.0
