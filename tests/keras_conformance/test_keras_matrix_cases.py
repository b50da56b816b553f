"""What a step on replicas may meet: overflows, empty shares, new variables, exact counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keras_programs import keras, shared
from matrix_programs import assert_near, states, trained, weights_of

import samegrad as tf

layers, ops, optimizers = keras.layers, keras.ops, keras.optimizers
RNG = np.random.default_rng(8)


def _model() -> Any:
    made = keras.Sequential([
        keras.Input((3,)),
        layers.Dense(4, "tanh", activity_regularizer="l2"),
        layers.BatchNormalization(),
        layers.Dense(2, kernel_regularizer="l2"),
    ])  # fmt: skip
    return weights_of(made)


def _loss(model: Any, x: Any, y: Any) -> Any:
    return keras.losses.MeanSquaredError()(y, model(x, training=True))


def _batch(count: int) -> dict[str, Any]:
    return {"x": RNG.normal(size=(count, 3)), "y": RNG.normal(size=(count, 2))}


@pytest.mark.parametrize("sizes", [[5, 0], [0, 0, 5, 0], [0, 1], [0, 0, 0, 1]])
@pytest.mark.parametrize("traced", [True, False])
def test_one_replica_alone_may_have_examples(float64: None, sizes: list[int], traced: bool) -> None:
    batches = [_batch(sum(sizes)) for _ in range(2)]

    def make() -> tuple[Any, Any]:
        return _model(), optimizers.Adam(0.1, global_clipnorm=0.5)

    wanted = trained(make, _loss, batches, None)
    assert_near(trained(make, _loss, batches, sizes, traced=traced), wanted)


@pytest.mark.parametrize("sizes", [[3, 2], [2, 1, 1, 1]])
@pytest.mark.parametrize("place", [0, 4])
def test_an_overflow_in_one_replica_skips_the_step_on_all(
    float64: None, sizes: list[int], place: int
) -> None:
    batches = [_batch(5) for _ in range(4)]
    batches[1]["x"][place] = 1e200
    batches[1]["y"][place] = np.inf

    def make() -> tuple[Any, Any]:
        inner = optimizers.Adam(0.1, clipnorm=1.0)
        model = weights_of(keras.Sequential([keras.Input((3,)), layers.Dense(2)]))
        return model, optimizers.LossScaleOptimizer(inner, initial_scale=8.0)

    wanted = trained(make, _loss, batches, None)
    found = trained(make, _loss, batches, sizes)
    for values in (wanted, found):
        for name in [name for name in values if name.startswith("step 1")]:
            assert not np.all(np.isfinite(values.pop(name)))
    assert_near(found, wanted)
    assert any(np.all(value == 4.0) for value in found.values())  # the scale, halved


@pytest.mark.parametrize("sizes", [[3, 2], [1, 0], [2, 1, 1, 1]])
def test_an_optimizer_takes_other_variables_later(float64: None, sizes: list[int]) -> None:
    batches = [_batch(sum(sizes)) for _ in range(2)]

    def run(shares: list[int] | None) -> dict[str, Any]:
        strategy = tf.distribute.MirroredStrategy(replicas=len(shares or [1]))
        with strategy.scope():
            model, head = _model(), weights_of(keras.Sequential([keras.Input((2,)),
                                                                 layers.Dense(2)]))  # fmt: skip
            optimizer = optimizers.Adam(0.1)
        for parts in ([model], [model, head], [head]):

            def step(x: Any, y: Any, parts: Any = parts) -> None:
                weights = [w for part in parts for w in part.trainable_variables]
                with tf.GradientTape() as tape:
                    hidden = head(model(x, training=True))
                    value = keras.losses.MeanSquaredError()(y, hidden)
                gradients = tape.gradient(value, weights)
                optimizer.apply_gradients(zip(gradients, weights, strict=True))

            function = tf.function(lambda step=step, **kw: strategy.run(step, kwargs=kw))
            for batch in batches:
                given = shares or [len(batch["x"])]
                function(**{name: shared(array, given) for name, array in batch.items()})
        return states(model=model, head=head, optimizer=optimizer)

    assert_near(run(sizes), run(None))


class _Owner(keras.layers.Layer):  # type: ignore[misc,name-defined]
    """A layer whose state is samegrad's variables."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = tf.Variable(np.full(3, 0.5), name="scale")
        self.shifts = [tf.Variable(np.zeros(3), name="shift")]
        self.seen = tf.Variable(np.float64(0.0), trainable=False, name="seen")
        self.mean = keras.metrics.Mean()

    def call(self, x: Any) -> Any:
        """Scaled and shifted inputs."""
        return x * self.scale + self.shifts[0]


def _owner(replicas: int) -> Any:
    with tf.distribute.MirroredStrategy(replicas=replicas).scope():
        model = keras.Sequential([keras.Input((3,)), _Owner()])
        model.compile(optimizers.Adam(0.1), "mse")
    return model


@pytest.mark.filterwarnings("ignore:Skipping variable loading for optimizer")
def test_variables_of_samegrad_are_state_of_their_layer(float64: None, tmp_path: Path) -> None:
    x, y = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 3))
    one, several = _owner(1), _owner(3)
    layer = several.layers[-1]
    assert len(layer.trainable_variables) == 2
    assert len(layer.non_trainable_variables) == 1
    for model in (one, several):
        model.fit(x, y, epochs=2, batch_size=3, shuffle=False, verbose=0)
    assert_near(states(model=several, optimizer=several.optimizer),
                states(model=one, optimizer=one.optimizer))  # fmt: skip
    trained_scale = layer.scale.numpy()
    assert np.all(trained_scale != 0.5)
    layer.seen.assign(3.0)
    layer.mean.update_state([2.0, 4.0])
    tf.train.Checkpoint(model=several).write(str(tmp_path / "c"))
    several.save_weights(tmp_path / "w.weights.h5")
    again = _owner(2)
    tf.train.Checkpoint(model=again).restore(str(tmp_path / "c"))
    other = again.layers[-1]
    np.testing.assert_array_equal(other.scale.numpy(), trained_scale)
    assert (float(other.seen), float(other.mean.result())) == (3.0, 3.0)
    loaded = _owner(1)
    loaded.load_weights(tmp_path / "w.weights.h5")
    np.testing.assert_array_equal(loaded.layers[-1].scale.numpy(), trained_scale)


@pytest.mark.parametrize("name", ["AUC", "R2Score", "F1Score", "Mean"])
def test_checkpoints_hold_metrics(tmp_path: Path, name: str) -> None:
    def feed(metric: Any, seed: int) -> None:
        rng = np.random.default_rng(seed)
        y, p = (rng.random((6, 2)) > 0.5) * 1.0, rng.random((6, 2))
        metric.update_state(*([p] if name == "Mean" else [y, p]))

    made, again = (getattr(keras.metrics, name)() for _ in range(2))
    feed(made, 1)
    tf.train.Checkpoint(metric=made).write(str(tmp_path / "c"))
    tf.train.Checkpoint(metric=again).restore(str(tmp_path / "c"))
    for metric in (made, again):  # some have no variables before
        feed(metric, 2)
    np.testing.assert_array_equal(np.asarray(again.result()), np.asarray(made.result()))


class _Count(keras.metrics.Metric):  # type: ignore[misc,name-defined]
    """A sum of integers."""

    def __init__(self) -> None:
        super().__init__()
        self.total = self.add_variable((), "zeros", dtype="int64", name="total")

    def update_state(self, values: Any) -> None:
        """Adds numbers."""
        self.total.assign_add(ops.sum(ops.cast(values, "int64")))

    def result(self) -> Any:
        """The sum."""
        return self.total


@pytest.mark.parametrize("start", [2**24, 2**53, 2**62])
@pytest.mark.parametrize("sizes", [[3, 2], [2, 1, 1, 1]])
def test_whole_numbers_are_counted_exactly(start: int, sizes: list[int]) -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=len(sizes))
    count = _Count()
    count.total.assign(start)
    run = tf.function(lambda values: strategy.run(count.update_state, (values,)))
    values = np.array([1, 2**53 + 1, 0, 2**53 + 3, 1])
    for _ in range(2):
        run(shared(values, sizes))
    assert int(count.result()) == start + 2 * int(values.sum())
