"""Errors of operations that run name the line of user code that made the operation."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad import _core

OPERATIONS = [row for row in _core.op_table() if row["may_raise"]]
EIGENVALUES = ("eigh", "eigvalsh")  # they reject NaN, the others a matrix of zeros
Operation = Callable[..., list[tf.Tensor]]


def bad_operands(row: dict[str, Any], sample: dict[str, Any]) -> list[np.ndarray]:
    """Values that the operation rejects: indices out of range, a singular matrix, or NaN."""
    arrays = []
    for index, shape in enumerate(sample["shapes"]):
        dtype = (sample["dtypes"] or ["int32" if row["elementwise"] else "float32"] * 3)[index]
        value: float = {"pow": -1, "floor_div": 0, "mod": 0}.get(row["name"], 99)
        if dtype == "float32":
            value = np.nan if row["name"] in EIGENVALUES else 0.0
        if row["name"] in EIGENVALUES:
            shape = (*shape[:-2], 3, 3)
        arrays.append(np.full(shape, value, dtype))
    return arrays


def cases() -> Iterator[Any]:
    for row in OPERATIONS:
        for number, sample in enumerate(row["samples"]):
            if all(np.prod(shape) for shape in sample["shapes"]):
                yield pytest.param(row, sample, id=f"{row['name']}-{number}")


def operation(row: dict[str, Any], sample: dict[str, Any]) -> Operation:
    def apply(*operands: tf.Tensor) -> list[tf.Tensor]:
        made = getattr(_core.ops, row["name"])(*operands, **sample["attrs"])  # this line
        return list(made) if isinstance(made, (list, tuple)) else [made]

    return apply


LINE = inspect.getsourcelines(operation)[1] + 2
SOURCE = "made = getattr(_core.ops, row"


def error_of(run: Callable[[], object]) -> str:
    with pytest.raises((ValueError, ArithmeticError)) as caught:
        run()
    return str(caught.value)


def check(message: str, line: int = LINE, source: str = SOURCE, file: str = __file__) -> None:
    assert re.match(r"\[[\w.]+\] ", message), message
    place = f'\nin user code: File "{file}", line {line}, in '
    assert place in message and message.count("in user code") == 1, message
    assert message.split("\n")[-1].startswith(f"    {source}"), message


def eager(apply: Operation, arrays: list[np.ndarray]) -> object:
    return apply(*(tf.constant(array) for array in arrays))


def in_run(apply: Operation, arrays: list[np.ndarray]) -> object:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    step = tf.function(lambda *operands: strategy.run(apply, operands))
    return step(*(tf.constant(array) for array in arrays))


def on_replicas(apply: Operation, arrays: list[np.ndarray]) -> object:
    """Operands differ between replicas, as far as the engine knows."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def step(*operands: tf.Tensor) -> object:
        index = tf.distribute.get_replica_context().replica_id_in_sync_group
        return apply(*(value + tf.cast(0 * index, value.dtype) for value in operands))

    run = tf.function(lambda *operands: strategy.run(step, operands))
    return run(*(tf.constant(array) for array in arrays))


def on_examples(apply: Operation, arrays: list[np.ndarray]) -> object:
    """Operands are batches: their examples go through loops over tiles."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    operands = [
        strategy.experimental_distribute_values_from_function(lambda _, array=array: array)
        for array in arrays
    ]
    return tf.function(lambda *given: strategy.run(apply, given))(*operands)


def sum_of(results: list[tf.Tensor]) -> tf.Tensor:
    return sum((tf.reduce_sum(tf.cast(value, "float32")) for value in results), tf.constant(0.0))


def in_branch(apply: Operation, arrays: list[np.ndarray]) -> object:
    def step(wanted: tf.Tensor, *operands: tf.Tensor) -> object:
        return tf.cond(wanted, lambda: sum_of(apply(*operands)), lambda: tf.constant(0.0))

    return tf.function(step)(tf.constant(True), *(tf.constant(array) for array in arrays))


def in_loop(apply: Operation, arrays: list[np.ndarray]) -> object:
    def step(rounds: tf.Tensor, *operands: tf.Tensor) -> object:
        total = tf.constant(0.0)
        for _ in tf.range(rounds):
            total += sum_of(apply(*operands))
        return total

    return tf.function(step)(tf.constant(2), *(tf.constant(array) for array in arrays))


def in_fit(apply: Operation, arrays: list[np.ndarray]) -> object:
    class Layer(tf.keras.layers.Layer):
        def build(self, shape: tuple[int, ...]) -> None:
            self.zero = self.add_weight(shape=(), initializer="zeros", trainable=False)

        def call(self, x: tf.Tensor) -> tf.Tensor:
            operands = [tf.constant(array) + tf.cast(self.zero, array.dtype) for array in arrays]
            return x + tf.stop_gradient(sum_of(apply(*operands)))

    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(2), Layer()])
        model.compile("sgd", "mse")
    return model.fit(np.ones((4, 3)), np.ones((4, 2)), batch_size=4, verbose=0)


@pytest.mark.parametrize(
    "run", [eager, in_run, on_replicas, on_examples, in_branch, in_loop, in_fit]
)
@pytest.mark.parametrize(("row", "sample"), list(cases()))
def test_errors_of_operations_name_the_user_line(
    row: dict[str, Any], sample: dict[str, Any], run: Callable[..., object]
) -> None:
    arrays = bad_operands(row, sample)
    if run is on_examples and row["name"] in ("read_row", "write_row", "place_row"):
        pytest.skip("rows of a TensorArray are not examples")
    check(error_of(lambda: run(operation(row, sample), arrays)))


def two_replicas(step: Callable[..., object], *operands: Any) -> object:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    return tf.function(lambda *given: strategy.run(step, given))(*map(tf.constant, operands))


def line_of(function: Callable[..., object], text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(index for index, line in enumerate(lines) if text in line)


VALUES = {"x": [1.0, -1.0, 5.0, np.nan], "y": [2.0, -1.0, 0.0, 1.0]}  # each comparison fails


def assertions() -> Iterator[str]:
    """Functions of tf.debugging that look at values."""
    for name in tf.debugging.__all__:
        parameters = [*inspect.signature(getattr(tf.debugging, name)).parameters][:2]
        of_values = parameters in (["x", "y"], ["x", "message"]) and name != "assert_integer"
        if of_values or name in ("check_numerics", "Assert"):
            yield name


@pytest.mark.parametrize("name", list(assertions()))
def test_assertions_about_values_name_the_user_line(name: str) -> None:
    second = [*inspect.signature(getattr(tf.debugging, name)).parameters][1]

    def step(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        operands = (
            (tf.reduce_all(x > y), [x]) if name == "Assert" else (x, {"y": y}.get(second, "m"))
        )
        getattr(tf.debugging, name)(*operands)
        return x + y

    message = error_of(lambda: two_replicas(step, VALUES["x"], VALUES["y"]))
    check(message, line_of(step, "getattr("), "getattr(tf.debugging, name)(")


@pytest.fixture
def checked_numbers() -> Iterator[None]:
    tf.debugging.enable_check_numerics()
    yield
    tf.debugging.disable_check_numerics()


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.usefixtures("checked_numbers")
def test_checked_numbers_name_the_user_line(traced: bool) -> None:
    def step(x: tf.Tensor) -> tf.Tensor:
        y = tf.exp(-x)
        return tf.math.log(x) + y

    run = (lambda: two_replicas(step, [-1.0])) if traced else (lambda: step(tf.constant([-1.0])))
    check(error_of(run), line_of(step, "log(x)"), "return tf.math.log(x) + y")


@pytest.mark.usefixtures("checked_numbers")
def test_gradients_name_the_line_of_what_they_derive() -> None:
    def step(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(x)
            root = tf.sqrt(x)
            loss = tf.reduce_sum(root * 3.0)
        return tape.gradient(loss, x)

    message = error_of(lambda: two_replicas(step, [0.0]))
    check(message, line_of(step, "tf.sqrt(x)"), "root = tf.sqrt(x)")


def test_labels_out_of_range_name_the_line_of_fit() -> None:
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(3)])
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("sgd", loss)
    x, y = np.ones((8, 2), "float32"), np.array([0, 1, 2, 7] * 2)

    def train() -> None:
        model.fit(x, y, batch_size=4, verbose=0)

    check(error_of(train), line_of(train, "model.fit"), "model.fit(x, y, batch_size=4, verbose=0)")


def test_a_dataset_names_the_line_of_its_function() -> None:
    def pick(index: tf.Tensor) -> tf.Tensor:
        return tf.gather(tf.constant([1.0, 2.0]), index)

    elements = tf.data.Dataset.from_tensor_slices([0, 1, 2]).map(pick)
    check(error_of(lambda: list(elements)), line_of(pick, "tf.gather"), "return tf.gather(")


def test_one_program_of_two_lines_names_the_line_that_ran() -> None:
    """Equal programs are compiled once."""

    def first(x: tf.Tensor, index: tf.Tensor) -> tf.Tensor:
        return tf.gather(x, index)

    def second(x: tf.Tensor, index: tf.Tensor) -> tf.Tensor:
        return tf.gather(x, index)

    for function in (first, second, first):
        message = error_of(lambda step=function: two_replicas(step, [1.0, 2.0], [2]))
        check(message, line_of(function, "return"), "return tf.gather(x, index)")


def test_files_of_one_name_name_no_source(tmp_path: Path) -> None:
    """Lines are known by the names of their files without folders."""
    program = "import samegrad as tf\n\n\ndef pick(x, index):\n    return tf.gather(x, index)\n"
    picks = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        file = tmp_path / folder / "steps_of_one_name.py"
        file.write_text(program)
        names: dict[str, Any] = {}
        exec(compile(program, str(file), "exec"), names)
        picks.append(names["pick"])
    message = error_of(lambda: two_replicas(picks[0], [1.0], [2]))
    check(message, 5, "return tf.gather(x, index)", str(tmp_path / "a/steps_of_one_name.py"))
    message = error_of(lambda: two_replicas(picks[1], [1.0], [2]))
    assert message.endswith("\nin user code: steps_of_one_name.py:5")
