"""Steps over shares of a batch, and the same steps on one device without a strategy."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from keras_programs import keras, shared

import samegrad as tf

SHARES = [[4, 4], [3, 2], [1, 0], [2, 1, 1, 1]]
Step = Callable[..., dict[str, Any]]


def public_classes(module: Any) -> set[str]:
    """The names of the public classes of a module of Keras."""
    return {
        name for name, value in vars(module).items() if isinstance(value, type) and name[0] != "_"
    }


def total(sizes: Sequence[int]) -> int:
    """How many examples the replicas have together."""
    return sum(sizes)


def on_one_device(step: Step, arrays: dict[str, Any]) -> dict[str, Any]:
    """What a step returns for the whole batch, eagerly and without a strategy."""
    tensors = {name: tf.convert_to_tensor(array) for name, array in arrays.items()}
    return {name: np.asarray(value) for name, value in step(**tensors).items()}


def on_replicas(
    step: Step, arrays: dict[str, Any], sizes: Sequence[int], *, traced: bool = True
) -> dict[str, Any]:
    """The sums over the replicas of what a step returns for their shares."""
    strategy = tf.distribute.MirroredStrategy(replicas=len(sizes))

    def run(**parts: Any) -> dict[str, Any]:
        found = strategy.run(step, kwargs=parts)
        return {name: strategy.reduce("SUM", part, axis=None) for name, part in found.items()}

    parts = {name: shared(array, sizes) for name, array in arrays.items()}
    found = (tf.function(run) if traced else run)(**parts)
    return {name: np.asarray(value) for name, value in found.items()}


def assert_near(found: dict[str, Any], wanted: dict[str, Any], who: Any = "") -> None:
    """Each value is as wanted to 1e-12 of the largest number in it."""
    assert found.keys() == wanted.keys(), who
    wrong = {}
    for name, value in wanted.items():
        scale = max(1.0, float(np.max(np.abs(value), initial=0.0)))
        equal = found[name].shape == value.shape
        if not equal or not np.allclose(
            found[name], value, rtol=0, atol=1e-12 * scale, equal_nan=True
        ):
            wrong[name] = (found[name].tolist(), value.tolist())
    assert not wrong, (who, wrong)


def assert_finite(values: dict[str, Any], who: Any = "") -> None:
    """A comparison of what is not a number would show nothing."""
    wrong = [name for name, value in values.items() if not np.all(np.isfinite(value))]
    assert not wrong, (who, wrong)


def masked(tensor: Any, mask: Any) -> Any:
    """Return the tensor with a mask of Keras, unless the mask is None."""
    if mask is not None:
        keras.src.backend.set_keras_mask(tensor, mask)
    return tensor


def weights_of(model: Any) -> Any:
    """The model, its trained weights drawn again from one generator."""
    rng = np.random.default_rng(11)
    for variable in model.trainable_variables:
        variable.assign(0.5 + 0.3 * rng.normal(size=tuple(variable.shape)))
    return model


def trained(
    make: Callable[[], tuple[Any, Any]],
    loss: Callable[..., Any],
    batches: Sequence[dict[str, Any]],
    sizes: Sequence[Any] | None,
    *,
    traced: bool = True,
) -> dict[str, Any]:
    """The losses, gradients and variables of a custom loop.

    Args:
        make: Gives model and optimizer; `fit` is not used.
        loss: Of the model and a batch.
        batches: By the names of the arguments of `loss`, one for each step.
        sizes: How many examples each replica has, or a list of such lists, one for each step;
            None is one device without a strategy.
        traced: Whether steps run in a tf.function.
    """
    uneven = [sizes] * len(batches) if sizes is None or isinstance(sizes[0], int) else sizes
    replicas = len(uneven[0] or [])
    strategy = tf.distribute.MirroredStrategy(replicas=replicas) if replicas else None
    keras.utils.set_random_seed(3)
    with contextlib.nullcontext() if strategy is None else strategy.scope():
        model, optimizer = make()

    def step(**parts: Any) -> dict[str, Any]:
        with tf.GradientTape() as tape:
            value = loss(model, **parts)
            if model.losses:
                value += tf.nn.scale_regularization_loss(model.losses)
            scaled = optimizer.scale_loss(value)
        weights = model.trainable_variables
        gradients = tape.gradient(scaled, weights)
        optimizer.apply_gradients(zip(gradients, weights, strict=True))
        named = {f"gradient {i}": g for i, g in enumerate(gradients) if g is not None}
        return {"loss": value, **named}

    def run(**parts: Any) -> dict[str, Any]:
        found = strategy.run(step, kwargs=parts)
        return {name: strategy.reduce("SUM", part, axis=None) for name, part in found.items()}

    call = step if strategy is None else tf.function(run) if traced else run
    figures = {}
    for i, batch in enumerate(batches):
        given = {
            name: shared(array, uneven[i]) if replicas else tf.convert_to_tensor(array)
            for name, array in batch.items()
        }
        figures |= {f"step {i} {name}": np.asarray(v) for name, v in call(**given).items()}
    return figures | states(model=model, optimizer=optimizer)


def states(**objects: Any) -> dict[str, Any]:
    """The values of the variables of models, optimizers and metrics."""
    found = {}
    for name, owner in objects.items():
        for i, variable in enumerate(owner.variables):
            found[f"{name} {i}"] = np.asarray(variable.numpy())
    return found
