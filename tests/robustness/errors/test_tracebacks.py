"""Tracebacks show the frames of user code, each once, and none of samegrad's."""

from __future__ import annotations

import builtins
import dataclasses
import gc
import sys
import threading
import traceback
import weakref
from collections.abc import Callable
from typing import Any

import callers
import numpy as np
import pytest
import surface

import samegrad as tf
from samegrad._base.tracebacks import _Folders


class OwnError(Exception):
    def __init__(self, code: int, words: str) -> None:
        super().__init__(code, words)
        self.code = code


@dataclasses.dataclass(frozen=True)
class FrozenError(Exception):
    code: int


def raises_key(x: Any) -> Any:
    return {}["key"]  # raised here


def raises_operation(x: Any) -> Any:
    return tf.reshape(tf.ones((2,)), "x")  # raised here


def raises_loss(x: Any) -> Any:
    return tf.nn.compute_average_loss(tf.ones((2,)), global_batch_size="8")  # raised here


def raises_operator(x: Any) -> Any:
    return tf.ones((2,)) + tf.ones((3,), tf.int32)  # raised here


def raises_own(x: Any) -> Any:
    raise OwnError(3, "words")  # raised here


def raises_frozen(x: Any) -> Any:
    raise FrozenError(3)  # raised here


def raises_from(x: Any) -> Any:
    try:
        return {}["key"]
    except KeyError as error:
        raise ValueError("new") from error  # raised here


def raises_in_steps(x: Any) -> Any:
    return tf.nest.map_structure(lambda v: tf.map_fn(raises_key, tf.ones((2,))), [1])


@tf.function
def control_flow(y: Any) -> Any:
    if y > 0.0:
        while y < 10.0:
            y = tf.reshape(y, "x")  # raised here
    return y


def raises_in_control_flow(x: Any) -> Any:
    return control_flow(1.0)


ERRORS = [
    raises_key, raises_operation, raises_loss, raises_operator, raises_own, raises_frozen,
    raises_from, raises_in_steps, raises_in_control_flow,
]  # fmt: skip


def frames_of(error: BaseException) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(error.__traceback__))


def own_frames(error: BaseException) -> list[str]:
    """Frames of samegrad and Keras, and of libraries that they call."""
    folders = _Folders()
    names = [frame.filename for frame in frames_of(error)]
    return [n for n in names if n.startswith(folders.own) or folders.is_called(n)]


def caught(caller: Any, f: Any) -> BaseException:
    try:
        caller(f)
    except Exception as error:
        return error
    pytest.fail("nothing was raised")


def check(caller: Any, f: Any, most: int = 0) -> BaseException:
    error = caught(caller, f)
    frames = frames_of(error)
    assert len(own_frames(error)) <= most, own_frames(error)
    assert (frames[-1].line or "").endswith("# raised here")
    for frame in frames:
        same = [f for f in frames if (f.filename, f.lineno) == (frame.filename, frame.lineno)]
        assert len(same) <= 2  # a lambda on the line of its call
    text = "".join(traceback.format_exception(error))
    shown = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert (shown is not None) == (f is raises_from), text
    return error


@pytest.mark.parametrize("f", ERRORS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("caller", callers.CALLERS)
def test_traceback_through_a_public_function_shows_user_frames(caller: str, f: Any) -> None:
    error = check(callers.CALLERS[caller], f)
    assert isinstance(error, (KeyError, ValueError, TypeError, OwnError, FrozenError))


# Keras makes an error of a layer once more with other words, and cannot with such classes;
# contextlib, through which others go, cannot with frozen ones.
KERAS = [
    (caller, f)
    for caller in callers.KERAS
    for f in ERRORS
    if f is not raises_frozen and not (caller == "a layer" and f in (raises_own, raises_from))
]


@pytest.mark.parametrize(("caller", "f"), KERAS, ids=lambda value: getattr(value, "__name__", None))
def test_traceback_through_keras_shows_user_frames(caller: str, f: Any) -> None:
    check(callers.KERAS[caller], f, most=1)  # a function of keras.ops, without an entry point


@pytest.mark.parametrize("f", ERRORS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("caller", callers.DOCTOR)
def test_traceback_of_the_doctor_has_the_step_in_its_cause(caller: str, f: Any) -> None:
    error = caught(callers.DOCTOR[caller], f)
    assert not own_frames(error)
    assert error.__cause__ is not None and not own_frames(error.__cause__)
    assert (frames_of(error.__cause__)[-1].line or "").endswith("# raised here")


def test_every_public_function_that_calls_user_functions_is_tried() -> None:
    named = {name.partition(" in ")[0] for name in callers.CALLERS}
    named |= callers.NOT_CALLERS | set(callers.DOCTOR)
    methods = {name.rpartition(".")[2] for name in named}
    takers = {
        target.path
        for target in surface.targets()
        if any("Callable" in str(parameter.annotation) for parameter in target.signature or [])
    }
    assert len(takers) > 100
    assert not {path for path in takers if path.rpartition(".")[2] not in methods}


def test_error_of_user_code_stays_the_same_object() -> None:
    made = OwnError(3, "words")
    made.add_note("a note")

    def raises(x: Any) -> Any:
        raise made

    error = caught(callers.CALLERS["distribute.Strategy.run in a function"], raises)
    assert error is made
    assert made.args == (3, "words") and made.code == 3 and made.__notes__ == ["a note"]


@pytest.mark.parametrize("value", [None, 3, [ValueError("a part")], ["words"]], ids=repr)
def test_error_with_an_attribute_named_exceptions_is_no_group(value: Any) -> None:
    made = OwnError(3, "words")
    made.exceptions = value  # type: ignore[attr-defined]

    def raises(x: Any) -> Any:
        raise made

    assert caught(callers.CALLERS["distribute.Strategy.run in a function"], raises) is made


def test_error_at_the_end_of_a_long_chain_of_causes_passes() -> None:
    def raises(x: Any) -> Any:
        last: Exception | None = None
        for number in range(2 * sys.getrecursionlimit()):
            try:
                raise OwnError(number, "words") from last
            except OwnError as error:
                last = error
        raise OwnError(-1, "words") from last

    error = caught(callers.CALLERS["distribute.Strategy.run in a function"], raises)
    assert isinstance(error, OwnError) and error.code == -1


def test_frames_of_a_group_of_errors_are_user_frames() -> None:
    def raises(x: Any) -> Any:
        try:
            raises_operation(x)
        except TypeError as error:
            raise builtins.ExceptionGroup("several", [error]) from None

    group = caught(callers.CALLERS["distribute.Strategy.run in a function"], raises)
    assert isinstance(group, builtins.ExceptionGroup)
    (part,) = group.exceptions
    assert [frame.name for frame in frames_of(part)] == ["raises", "raises_operation"]


def test_reworded_error_hides_its_first_form() -> None:
    error = caught(lambda f: tf.linspace(f, 1.0, 3), "a")
    assert str(error).startswith("[linspace] a number, an array or a tensor is needed")
    assert error.__cause__ is None and error.__suppress_context__
    assert len("".join(traceback.format_exception(error)).splitlines()) <= 7


def test_error_that_user_code_handles_stays_its_context() -> None:
    def raises(x: Any) -> Any:
        try:
            return tf.reshape(tf.ones((2,)), "x")
        except TypeError:
            return {}["key"]

    error = caught(callers.CALLERS["function"], raises)
    assert isinstance(error.__context__, TypeError) and not error.__suppress_context__
    assert [frame.name for frame in frames_of(error.__context__)] == ["raises"]


def test_handler_in_user_code_sees_its_frames() -> None:
    found: list[Any] = []

    def handles(x: Any) -> Any:
        try:
            tf.map_fn(raises_key, callers.ROWS)
        except KeyError as error:
            found.extend(frames_of(error))
        return x

    tf.function(handles)(1.0)
    assert [frame.name for frame in found] == ["handles", "raises_key"]


def test_interrupt_passes_through_as_it_is() -> None:
    def interrupts(x: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as seen:
        callers.CALLERS["distribute.Strategy.run in a function"](interrupts)
    assert own_frames(seen.value)


def test_frames_of_user_subclasses_are_user_frames() -> None:
    class Own(tf.Module):
        def step(self, x: Any) -> Any:
            return self.inner(x)

        def inner(self, x: Any) -> Any:
            return raises_key(x)

    error = caught(lambda f: tf.function(f)(1.0), Own().step)
    assert [frame.name for frame in frames_of(error)][-3:] == ["step", "inner", "raises_key"]


def test_recursion_in_control_flow_keeps_the_frame_of_each_call() -> None:
    def deeper(x: Any, n: int) -> Any:
        if tf.reduce_sum(x) > 0.0:
            x = deeper(x, n - 1) if n else raises_key(x)
        return x

    error = caught(lambda f: tf.function(f)(tf.constant(1.0), 3), deeper)
    assert [frame.name for frame in frames_of(error)].count("deeper") == 4


def test_error_about_control_flow_names_the_line_of_its_condition() -> None:
    def branches(x: Any) -> Any:
        if x > 0.0:  # the condition
            x = tf.ones((2,))
            y = 1
        else:
            x = tf.ones((3,))
            y = 2
        return x, y

    def loop(x: Any) -> Any:
        while x < 9.0:  # the condition
            x = tf.cast(x, tf.int32)
            y = 1
        return x, y

    for f in (branches, loop):
        error = caught(lambda f: tf.function(f)(tf.constant(1.0)), f)
        assert (frames_of(error)[-1].line or "").endswith("# the condition")


class Large:
    """What a frame of a traceback keeps alive."""


def handled(caller: str) -> weakref.ref[Large]:
    large = Large()

    def raises(x: Any) -> Any:
        return {}[large]

    assert isinstance(caught(callers.CALLERS[caller], raises), KeyError)
    return weakref.ref(large)


@pytest.mark.parametrize("caller", ["function", "distribute.Strategy.run", "data.Dataset.map"])
def test_error_that_was_handled_leaves_no_cycle(caller: str) -> None:
    gc.collect()
    gc.disable()
    try:
        assert handled(caller)() is None
    finally:
        gc.enable()


WRONG: dict[str, Callable[[], Any]] = {
    "an operation": lambda: tf.reshape(1.0, "x"),
    "an operator": lambda: tf.ones((2,)) + tf.ones((3,)),
    "an index": lambda: tf.ones((2,))[5],
    "a conversion": lambda: int(tf.ones((2,))),
    "unpacking": lambda: list(tf.constant(1.0)),
    "a name": lambda: tf.nope,
    "a name of a module": lambda: tf.nn.rellu,
    "an attribute": lambda: tf.constant(1.0).nope,
    "a variable": lambda: tf.Variable(1.0).assign([1.0, 2.0]),
    "a strategy": lambda: tf.distribute.MirroredStrategy(3.5),
    "a dataset": lambda: tf.data.Dataset.range(3).batch("x"),
    "a file": lambda: list(tf.data.TextLineDataset("/no/such/file")),
    "a checkpoint": lambda: tf.train.Checkpoint(v=tf.Variable(1.0)).restore("/no/such/file"),
    "a value in a step": lambda: tf.function(lambda x: x.numpy())(tf.constant(1.0)),
    "gradients": lambda: tf.keras.optimizers.SGD(0.1).apply_gradients([(None, tf.Variable(1.0))]),
    "a loss": lambda: tf.keras.losses.MeanSquaredError()(callers.ROWS, np.ones((4, 2))),
    "a metric": lambda: tf.keras.metrics.MeanSquaredError().update_state(
        callers.ROWS, np.ones((4, 2))
    ),
    "a model": lambda: callers.compiled()(np.ones((4, 2))),
    "a fit": lambda: callers.compiled().fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0),
}


@pytest.mark.parametrize("call", WRONG)
def test_wrong_call_shows_user_frames_and_one_error(call: str) -> None:
    error = caught(lambda f: f(), WRONG[call])
    assert not own_frames(error)
    assert "".join(traceback.format_exception(error)).count("Traceback (most recent") == 1


def test_threads_of_user_code_see_their_frames() -> None:
    found: list[Any] = []

    def work() -> None:
        found.append(caught(callers.CALLERS["function"], raises_key))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not own_frames(found[0])
    assert [frame.name for frame in frames_of(found[0])][-1] == "raises_key"


def test_switch_shows_all_frames_and_the_first_error() -> None:
    debugging = tf.debugging
    assert debugging.is_traceback_filtering_enabled()
    debugging.disable_traceback_filtering()
    try:
        assert not debugging.is_traceback_filtering_enabled()
        assert not tf.keras.config.is_traceback_filtering_enabled()
        error = caught(callers.CALLERS["distribute.Strategy.run in a function"], raises_operation)
        assert len(own_frames(error)) > 5
        assert error.__cause__ is not None
        frames = [frame.tb_frame for frame in entries(error.__traceback__)]
        assert len(frames) == len(set(frames))
    finally:
        tf.keras.config.enable_traceback_filtering()
    assert debugging.is_traceback_filtering_enabled()


def entries(trace: Any) -> list[Any]:
    return [trace, *entries(trace.tb_next)] if trace else []
