"""Where what functions print goes, and what programs of plots see of tensors."""

from __future__ import annotations

import contextlib
import io
import sys
from typing import Any

import numpy as np
import pytest

import samegrad as tf


def test_prints_of_functions_go_to_standard_output_wherever_that_is(capsys: Any) -> None:
    @tf.function
    def f(x: Any) -> Any:
        print("x is", x)
        return x

    with contextlib.redirect_stdout(io.StringIO()) as out:
        f(tf.constant(1.0))
    f(tf.constant(2.0))  # traced under another standard output
    shown = capsys.readouterr()
    assert (out.getvalue(), shown.out, shown.err) == ("x is 1\n", "x is 2\n", "")


def test_a_function_prints_to_the_stream_that_it_names(capsys: Any) -> None:
    @tf.function
    def f(x: Any) -> Any:
        tf.print("out", x, output_stream=sys.stdout)
        tf.print("plain", output_stream=sys.stdout)
        tf.print("err", x, output_stream=sys.stderr)
        tf.print("default", x)
        print("python", x, file=sys.stderr)
        return x

    f(tf.constant(1))
    shown = capsys.readouterr()
    assert shown.out == "out 1\nplain\n"
    assert shown.err == "err 1\ndefault 1\npython 1\n"


def test_replicas_print_to_standard_output(capsys: Any) -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    step = tf.function(lambda: strategy.run(lambda: tf.print("here", output_stream=sys.stdout)))
    step()
    assert capsys.readouterr().out.splitlines() == ["[replica 0] here", "[replica 1] here"]


def test_prints_are_added_to_a_file(tmp_path: Any) -> None:
    path = tmp_path / "log"
    for value in (1, 2):
        tf.print("value", tf.constant(value), output_stream=f"file://{path}")
    assert path.read_text() == "value 1\nvalue 2\n"


def test_other_streams_are_refused_where_the_step_prints() -> None:
    f = tf.function(lambda x: tf.print(x, output_stream=io.StringIO()))
    with pytest.raises(ValueError, match=r"^\[print\] output_stream must be sys.stdout or sys."):
        f(tf.constant(1.0))
    with pytest.raises(ValueError, match=r"^\[print\] output_stream must be a file.*: got 3"):
        tf.print("x", output_stream=3)


def test_text_is_printed_in_each_round_and_in_the_branch_taken(capsys: Any) -> None:
    @tf.function
    def f(x: Any) -> Any:
        for i in tf.range(2):
            tf.print("round", i)
        tf.cond(x > 0, lambda: tf.print("positive"), lambda: tf.print("negative"))
        return x

    f(tf.constant(1))
    f(tf.constant(-1))
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["round 0", "round 1", "positive", "round 0", "round 1", "negative"]


def test_a_loop_without_an_end_runs_until_it_is_interrupted() -> None:
    rounds = []

    @tf.function
    def f() -> None:
        while tf.constant(True):
            rounds.append(1)
            if len(rounds) > 100:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        f()
    assert len(rounds) == 101


def test_plots_see_tensors_as_arrays() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    numbers = np.array([1.0, 2.0, 2.0, 5.0], "float32")
    figure, axes = plt.subplots()
    for values in (tf.constant(numbers), tf.Variable(numbers)):
        counts, edges, _ = axes.hist(values)
        expected, ends = np.histogram(numbers)
        np.testing.assert_array_equal(counts, expected)
        np.testing.assert_array_equal(edges, ends)
        (line,) = axes.plot(np.arange(4), values)
        np.testing.assert_array_equal(line.get_ydata(), numbers)
        assert (
            len(axes.bar(values, values)) == 4
            and len(axes.scatter(values, values).get_offsets()) == 4
        )
    plt.close(figure)


def test_keras_trains_with_functions_that_print_their_tensors() -> None:
    """TensorFlow 2.21 formats each of these tensors as a symbolic one, such as Tensor("Mean:0")."""
    keras = tf.keras
    printed: dict[str, str] = {}

    def show(where: str, x: Any) -> Any:
        printed[where] = f"{x} {x!s} {[x]}"
        return x

    def showing(base: Any, method: str) -> Any:
        """Return a subclass whose method prints its first argument."""

        def call(self: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
            show(f"{base.__name__}.{method}", x)
            return getattr(base, method)(self, x, *args, **kwargs)

        return type(f"Printing{base.__name__}", (base,), {method: call})

    class Model(keras.Sequential):  # type: ignore[misc]
        def train_step(self, data: Any) -> Any:
            show("train_step", data[0])
            return {k: show(f"train_step {k}", v) for k, v in super().train_step(data).items()}

        def test_step(self, data: Any) -> Any:
            show("test_step", tf.shape(data[0])[0])
            return super().test_step(data)

        def compute_loss(self, x: Any = None, *args: Any, **kwargs: Any) -> Any:
            show("compute_loss x", x)
            return show("compute_loss", super().compute_loss(x, *args, **kwargs))

    dense = keras.layers.Dense(2, kernel_regularizer=lambda w: show("regularizer", tf.norm(w)))
    model = Model([dense])
    model.compile(
        showing(keras.optimizers.SGD, "update_step")(0.1),
        "mse",
        metrics=[showing(keras.metrics.MeanAbsoluteError, "update_state")()],
    )
    x = np.ones((4, 3), "float32")
    model.fit(x, x[:, :2], batch_size=2, validation_data=(x, x[:, :2]), verbose=0)
    assert len(printed) == 9
    assert {k: text for k, text in printed.items() if text.count("traced") != 3} == {}
