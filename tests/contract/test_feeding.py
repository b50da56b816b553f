"""A layer or a loss computes the same of the same numbers, however it is given them.

As plain tensors, arrays, constants that a function captures or batches of a dataset; alone, and on
two replicas with unequal shares. Batches have as many rows as there are steps, units or classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from layer_cases import CASES, ROWS, SERIES, VECTORS, WORDS, Case, class_of
from loss_cases import (
    CLASSES,
    COMPARES_ROWS,
    LABELS,
    LOSS_ARGUMENTS,
    STEPS,
    outputs_of,
    predicted,
    truth,
)
from public_classes import public_classes
from test_every_layer import loss_of, training

import samegrad as tf

losses = tf.keras.losses
Step = Callable[..., list[Any]]
EDGE = 3


def squared(case: Case) -> Case:
    """Return a batch with as many rows as steps, columns and units."""
    inputs = tuple(x[(slice(EDGE),) * x.ndim] for x in case.inputs)
    sizes = {"units": EDGE} if "units" in case.arguments else {}
    return case._replace(arguments={**case.arguments, **sizes}, inputs=inputs)


def is_squared(case: Case) -> bool:
    return all(x is SERIES or x is VECTORS or x is WORDS for x in case.inputs)


def met(case: Case) -> Case:
    """Return a batch whose rows are the most frequent size of the case, the largest of several."""
    sizes = [size for x in case.inputs for size in x.shape[1:]]
    sizes += [x for x in case.arguments.values() if type(x) is int]
    counted = Counter(size for size in sizes if 2 < size < ROWS)
    rows = max(counted, key=lambda size: (counted[size], size), default=EDGE)
    return case._replace(inputs=tuple(x[:rows] for x in case.inputs))


NOT_SQUARED = {"EinsumDense", "GroupNormalization", "Dropout, one mask for all"}  # fixed sizes
FED = {
    **{name: met(case) for name, case in CASES.items()},
    **{
        f"{name}, square": squared(case)
        for name, case in CASES.items()
        if is_squared(case) and name not in NOT_SQUARED
    },
}


def arrays_of(values: Any) -> list[np.ndarray]:
    return [np.asarray(value) for value in tf.nest.flatten(values)]


class Model(tf.keras.Model):  # type: ignore[misc,name-defined]
    """The layer of a case, which takes a list of its inputs."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.case, self.layer = FED[name], class_of(name)(**FED[name].made())

    def call(self, inputs: Any) -> Any:
        """The results of the layer in training."""
        given = self.case.enter(*inputs)
        return self.layer(*given, **self.case.options, **training(self.layer))


def step_of(model: Any) -> Step:
    """Return results and gradients of the rows, then of the weights, of a training step."""

    def step(*rows: Any) -> Any:
        rows = tuple(tf.convert_to_tensor(x) for x in rows)
        with tf.GradientTape() as tape:
            if model.case.learns:
                tape.watch(rows)
            results = tf.nest.flatten(model(list(rows)))
            loss = loss_of(model.layer, results)
        sources = list(rows) if model.case.learns else []
        of_rows, of_weights = tape.gradient(loss, [sources, model.trainable_variables])
        context = tf.distribute.get_replica_context()
        if context is not None:
            of_weights = context.all_reduce("sum", of_weights)
        return [*results, *of_rows], of_weights

    return step


def eager(step: Step, inputs: tuple[np.ndarray, ...]) -> Iterator[tuple[str, list[Any]]]:
    """Return the eager results: the gradients of loops are summed in another order."""
    yield "eager tensors", step(*(tf.constant(x) for x in inputs))


def alone(step: Step, inputs: tuple[np.ndarray, ...]) -> Iterator[tuple[str, list[Any]]]:
    """Return the results of each way to feed a function on one device."""
    tensors = [tf.constant(x) for x in inputs]
    traced = tf.function(step)
    yield "tensors", traced(*tensors)
    yield "arrays", traced(*inputs)
    yield "captured", tf.function(lambda: step(*tensors))()
    (batch,) = tf.data.Dataset.from_tensor_slices(inputs).batch(len(inputs[0]))
    yield "batch", traced(*batch)


def on_replicas(
    strategy: Any, step: Step, inputs: tuple[np.ndarray, ...], mirrored: bool
) -> Iterator[tuple[str, list[Any]]]:
    """Return the results on two replicas: unequal batches, or all rows for each of them."""
    local = strategy.experimental_local_results

    def joined(found: Any) -> list[Any]:
        of_rows, of_weights = found
        rows = [np.concatenate(arrays_of(list(local(x)))) for x in of_rows]
        return [*rows, *(local(x)[0] for x in of_weights)]

    run = tf.function(lambda *rows: strategy.run(step, rows))
    times = 2 if mirrored else 1
    dataset = tf.data.Dataset.from_tensor_slices(
        tuple(np.concatenate([x] * times) for x in inputs)
    ).batch(times * len(inputs[0]))
    (batch,) = strategy.experimental_distribute_dataset(dataset)
    yield "shares", joined(run(*batch))
    if mirrored:
        tensors = [tf.constant(x) for x in inputs]
        yield "tensors in run", joined(run(*tensors))
        yield "arrays in run", joined(run(*inputs))
        yield "captured in run", joined(tf.function(lambda: strategy.run(lambda: step(*tensors)))())


def check(
    model: Any, ways: Iterator[tuple[str, list[Any]]], start: list[Any],
    expected: Any = (), tolerance: float = 0.0,
) -> Any:  # fmt: skip
    """All ways give the same; returns that of the first one."""
    while True:
        tf.keras.utils.set_random_seed(7)  # some layers draw with Python's generator
        for variable, value in zip(model.variables, start, strict=True):
            variable.assign(value)
        way, found = next(ways, ("", None))
        if found is None:
            return expected
        states = arrays_of([found, model.non_trainable_variables])
        expected = expected or states
        for one, other in zip(states, expected, strict=True):
            np.testing.assert_allclose(one, other, tolerance, tolerance, err_msg=way)


def draws(model: Any) -> bool:
    return any("seed_generator" in variable.path for variable in model.variables)


@pytest.mark.parametrize("name", FED)
def test_a_layer_computes_the_same_however_it_is_fed(name: str) -> None:
    inputs = FED[name].inputs
    tf.keras.utils.set_random_seed(5)
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        model = Model(name)
        model.layer(*model.case.enter(*(tf.constant(x) for x in inputs)), **model.case.options)
    start = [variable.numpy() for variable in model.variables]
    step = step_of(model)
    expected = check(model, alone(step, inputs), start)
    check(model, eager(step, inputs), start, expected, 1e-5)
    check(model, on_replicas(strategy, step, inputs, False), start, expected, 1e-4)
    if not draws(model):  # on each replica other numbers are drawn
        check(model, on_replicas(strategy, step, inputs, True), start, tolerance=1e-5)


LOSSES = public_classes(losses, losses.Loss)


class Loss(tf.keras.Model):  # type: ignore[misc,name-defined]
    """A loss of targets and the numbers that a model gives, with one weight for each column."""

    def __init__(self, name: str, reduction: str) -> None:
        super().__init__()
        self.name_of_loss = name
        self.loss_of_rows = getattr(losses, name)(
            **LOSS_ARGUMENTS.get(name, {}), reduction=reduction
        )
        self.scale = self.add_weight(shape=(outputs_of(name),), initializer="ones")

    def call(self, numbers: Any) -> Any:
        """Predictions."""
        return predicted(self.name_of_loss, numbers * self.scale)

    def step(self, targets: Any, numbers: Any) -> Any:
        """The loss by rows, if it has them, and gradients of rows, then of weights."""
        numbers = tf.convert_to_tensor(numbers)
        with tf.GradientTape() as tape:
            tape.watch(numbers)
            rows = self.loss_of_rows(targets, self(numbers))
            total = tf.nn.compute_average_loss(rows) if rows.shape.rank else rows
        of_rows, of_scale = tape.gradient(total, [numbers, self.scale])
        context = tf.distribute.get_replica_context()
        sums = [of_scale, total]
        if context is not None:
            sums = context.all_reduce("sum", sums)
        return [rows, of_rows] if rows.shape.rank else [of_rows], sums


@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_the_same_however_it_is_fed(name: str, reduction: str) -> None:
    rows = STEPS if name == "CTC" else CLASSES
    numbers = np.random.default_rng(3).normal(size=(rows, outputs_of(name))).astype(np.float32)
    inputs = truth(name, LABELS[:rows]), numbers
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        model = Loss(name, reduction)
    start = [variable.numpy() for variable in model.variables]
    expected = check(model, alone(model.step, inputs), start)
    check(model, eager(model.step, inputs), start, expected, 1e-6)
    if name in COMPARES_ROWS:
        return  # of all replicas
    check(model, on_replicas(strategy, model.step, inputs, False), start, expected, 1e-5)
    check(model, on_replicas(strategy, model.step, inputs, True), start, tolerance=1e-5)
