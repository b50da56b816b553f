"""fit that is left early, called again, given nothing; several steps per execution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import samegrad as tf

keras = tf.keras
ROWS = 46  # batches of 8: the last one has 6


def _rows() -> tuple[np.ndarray, np.ndarray]:
    draws = np.random.default_rng(3)
    x = draws.normal(size=(ROWS, 4)).astype(np.float32)
    return x, draws.normal(size=(ROWS, 1)).astype(np.float32)


def _model(replicas: int = 1, **options: Any) -> Any:
    keras.utils.set_random_seed(4)
    layers = keras.layers
    with tf.distribute.MirroredStrategy(replicas=replicas).scope():
        model = keras.Sequential(
            [
                layers.Input((4,)),
                layers.Dense(8, activation="relu"),
                layers.BatchNormalization(),
                layers.Dropout(0.25),
                layers.Dense(1),
            ]
        )
        model.compile("adam", "mse", metrics=["mae"], **options)
    return model


def _state(model: Any) -> list[bytes]:
    return [np.asarray(v).tobytes() for v in [*model.variables, *model.optimizer.variables]]


class Batches(keras.callbacks.Callback):  # type: ignore[name-defined]
    """Notes the batches that it is called with; may raise."""

    def __init__(self, at: int = -1, error: type[BaseException] = KeyboardInterrupt) -> None:
        super().__init__()
        self.begun: list[int] = []
        self.ended: list[int] = []
        self.at, self.error = at, error

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.begun.append(batch)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.ended.append(batch)
        if len(self.ended) == self.at:
            raise self.error


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("steps", [2, 4, 100])
@pytest.mark.parametrize("kind", ["arrays", "tf.data", "distributed", "generator"])
def test_several_steps_per_execution_have_the_bits_of_single_steps(
    kind: str, steps: int, replicas: int
) -> None:
    found = []
    for count in (1, steps):
        model = _model(replicas, steps_per_execution=count)
        dataset = tf.data.Dataset.from_tensor_slices(_rows()).shuffle(ROWS, seed=2).batch(8)
        options: dict[str, Any] = {"epochs": 2, "verbose": 0}
        total = 6
        data: tuple[Any, ...] = (dataset,)
        if kind == "arrays":
            data, options["batch_size"] = _rows(), 8
        elif kind == "distributed":
            data = (model.distribute_strategy.experimental_distribute_dataset(dataset),)
        elif kind == "generator":
            data = ((pair for pair in dataset.repeat()),)
            options["steps_per_epoch"] = total = max(4, steps)
        seen = Batches()
        history = model.fit(*data, callbacks=[seen], **options)
        assert seen.begun == [*range(0, total, count)] * 2  # once per execution
        assert len(seen.ended) == len(seen.begun)
        assert model.optimizer.iterations.numpy() == 2 * total
        found.append((_state(model), history.history))
    assert found[0] == found[1]


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_a_model_is_usable_after_an_interrupted_fit(
    error: type[BaseException], replicas: int
) -> None:
    """It has the state after the last step, and goes on from it."""
    x, y = _rows()
    model, whole = _model(replicas), _model(replicas)
    with pytest.raises(error):
        model.fit(x, y, batch_size=8, verbose=0, shuffle=False, callbacks=[Batches(3, error)])
    keras.utils.set_random_seed(4)
    whole.fit(x[:24], y[:24], batch_size=8, verbose=0, shuffle=False)
    assert _state(model) == _state(whole)
    for one in (model, whole):
        one.fit(x, y, batch_size=8, verbose=0, shuffle=False, epochs=2)
        one.evaluate(x, y, verbose=0)
    assert _state(model) == _state(whole)
    assert model.predict(x, verbose=0).tolist() == whole.predict(x, verbose=0).tolist()


def test_two_fits_are_one_that_is_twice_as_long() -> None:
    x, y = _rows()
    one, two = _model(), _model()
    keras.utils.set_random_seed(4)
    history = one.fit(x, y, batch_size=8, epochs=4, verbose=0).history
    keras.utils.set_random_seed(4)
    first = two.fit(x, y, batch_size=8, epochs=2, verbose=0).history
    second = two.fit(x, y, batch_size=8, epochs=4, initial_epoch=2, verbose=0)
    assert _state(one) == _state(two)
    assert second.epoch == [2, 3]
    assert history == {name: first[name] + second.history[name] for name in history}


class Nothing(keras.utils.PyDataset):  # type: ignore[name-defined]
    def __len__(self) -> int:
        return 0

    def __getitem__(self, number: int) -> Any:
        raise AssertionError("there is none")


@pytest.mark.parametrize("built", [True, False])
@pytest.mark.parametrize("kind", ["arrays", "tf.data", "PyDataset"])
def test_data_without_a_batch_are_a_clear_error(kind: str, built: bool) -> None:
    x, y = _rows()
    data: Any = {
        "arrays": (x[:0], y[:0]),
        "tf.data": (tf.data.Dataset.from_tensor_slices((x, y)).batch(8).take(0),),
        "PyDataset": (Nothing(),),
    }[kind]
    model = _model() if built else keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    before = [w.tolist() for w in model.get_weights()]
    with pytest.raises(ValueError, match=r"\[fit\] data must have at least one batch: got none"):
        model.fit(*data, verbose=0)
    assert [w.tolist() for w in model.get_weights()] == before
    with pytest.raises(ValueError, match=r"\[evaluate\] data must have at least one batch"):
        model.evaluate(*data, verbose=0)
    with pytest.raises(ValueError, match=r"\[predict\] data must have at least one batch"):
        model.predict(data[0], verbose=0)
    model.fit(x, y, verbose=0)  # usable after it


def test_one_batch_alone_builds_a_model_that_makes_several_steps_at_once() -> None:
    """A generator loses no batch to the shapes that an unbuilt model is made by."""
    taken = []

    def batches() -> Any:
        x, y = _rows()
        for number in range(6):
            taken.append(number)
            yield x[8 * number : 8 * number + 8], y[8 * number : 8 * number + 8]

    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse", steps_per_execution=3)
    model.fit(batches(), steps_per_epoch=6, verbose=0)
    assert taken == [0, 1, 2, 3, 4, 5]
    assert model.optimizer.iterations.numpy() == 6


def test_an_epoch_that_a_callback_has_set_does_not_stay() -> None:
    class From(keras.callbacks.Callback):  # type: ignore[name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            self.model._initial_epoch = 2

    model = _model()
    x, y = _rows()
    assert model.fit(x, y, epochs=4, verbose=0, callbacks=[From()]).epoch == [2, 3]
    assert model.fit(x, y, epochs=2, verbose=0).epoch == [0, 1]


class Numbered(keras.utils.PyDataset):  # type: ignore[name-defined]
    def __len__(self) -> int:
        return 6

    def __getitem__(self, number: int) -> Any:
        return np.full((2, 1), number, "float32"), np.zeros((2, 1), "float32")


def test_what_workers_had_ready_for_an_unbuilt_model_is_not_given_again() -> None:
    seen: list[int] = []

    class Seen(keras.Model):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, x: Any) -> Any:
            return self.dense(x)

        def train_step(self, data: Any) -> Any:
            return {**super().train_step(data), "number": data[0][0, 0]}

    model = Seen()
    model.compile("sgd", "mse")
    noting = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: seen.append(int(logs["number"]))
    )
    data = Numbered(workers=2)
    model.fit(data, epochs=2, shuffle=False, verbose=0, callbacks=[noting])
    assert seen == [0, 1, 2, 3, 4, 5] * 2
