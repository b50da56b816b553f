"""A local mean divided by the number of replicas: right where all have as many examples."""

import warnings

import numpy as np
import pytest
from test_loss_normalization_check import (
    MEAN_OF_MEANS,
    MISTAKES,
    Program,
    average,
    found,
    replicas_of,
)

import samegrad as tf
from samegrad.errors import LossNormalizationError, LossNormalizationWarning

DIVIDED = MISTAKES["local mean by replicas"][1]


def texts(run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    assert all(w.category is LossNormalizationWarning for w in caught)
    return [str(w.message) for w in caught]


def batches(program, rows, batch):
    data = np.arange(3.0 * rows, dtype=np.float32).reshape(rows, 3)
    dataset = tf.data.Dataset.from_tensor_slices(data).batch(batch)
    return program.strategy.experimental_distribute_dataset(dataset)


def test_unequal_shares_are_told_with_the_weights_of_their_examples():
    program = Program(DIVIDED, 2)
    (batch,) = batches(program, 5, 5)
    (text,) = texts(lambda: program.strategy.run(program.step, (batch,)))
    assert "here, with shares of 3 + 2, an example counts 1/6 to 1/4 instead of 1/5" in text
    assert "nn.compute_average_loss(per_example, global_batch_size=...)" in text


def test_the_weights_that_are_told_are_those_of_the_update():
    program = Program(lambda p: tf.reduce_mean(p.x[:, 0] * p.w[0, 0]) / 2, 2, Descent())
    (batch,) = batches(program, 5, 5)
    program.strategy.run(program.step, (batch,))
    x = np.arange(15.0).reshape(5, 3)[:, 0]
    expected = 1.0 - np.array([1 / 6, 1 / 6, 1 / 6, 1 / 4, 1 / 4]) @ x
    np.testing.assert_allclose(program.w.numpy()[0, 0], expected, rtol=1e-6)


class Descent(tf.keras.optimizers.SGD):
    def __init__(self):
        super().__init__(1.0)


def test_equal_shares_are_right_and_a_short_last_batch_is_told():
    program = Program(DIVIDED, 2)
    (text,) = texts(program.run)
    assert "right while all replicas divide by the same count, as with 4 examples on each" in text
    assert "with shares of 4 + 3, an example counts 1/8 to 1/6 instead of 1/7" in text


@pytest.mark.parametrize(("replicas", "rows", "said"), [
    (3, 3, "with shares of 2 + 2 + 1, an example counts 1/6 to 1/3 instead of 1/5"),
    (8, 16, "with shares of 2 to 1, an example counts 1/16 to 1/8 instead of 1/15"),
    (4, 2, "the mean of a replica without examples is NaN"),
])  # fmt: skip
def test_shares_of_any_size_have_their_words(replicas, rows, said):
    program = Program(DIVIDED, replicas)
    (batch,) = batches(program, rows, rows)
    (text,) = texts(lambda: program.strategy.run(program.step, (batch,)))
    assert said in text


def test_what_is_right_here_is_no_error_and_what_is_wrong_is_one():
    program = Program(DIVIDED, 2)
    tf.config.set_loss_normalization_check("error")
    try:
        (text,) = texts(program.run)
        assert MEAN_OF_MEANS in text
        before = program.w.numpy()
        (batch,) = batches(program, 5, 5)
        with pytest.raises(LossNormalizationError, match="shares of 3 \\+ 2"):
            program.strategy.run(program.step, (batch,))
    finally:
        tf.config.set_loss_normalization_check("warn")
    assert np.array_equal(program.w.numpy(), before)


def test_the_steps_of_a_program_warn_once():
    program = Program(DIVIDED, 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for size in (8, 7, 6, 5, 3):
            (batch,) = batches(program, size, size)
            program.strategy.run(program.step, (batch,))
    assert len(caught) == 1


def test_a_finding_inside_of_keras_is_at_the_line_of_the_program():
    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = tf.keras.layers.Dense(1)

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                losses = tf.square(self(x) - y)
                loss = tf.keras.ops.mean(losses) / count
            variables = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))  # noqa: B905
            return {"loss": average(losses[:, 0])}

    strategy = tf.distribute.MirroredStrategy(replicas=2)
    count = strategy.num_replicas_in_sync
    with strategy.scope():
        model = Model()
        model.compile(optimizer="sgd")
    x = np.ones((6, 2), np.float32)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(x, x[:, :1], batch_size=6, verbose=0)
    (warning,) = (w for w in caught if w.category is LossNormalizationWarning)
    assert MEAN_OF_MEANS in str(warning.message)
    assert warning.filename == "test_mean_of_replica_means.py"
    line = Model.train_step.__code__.co_firstlineno + 4
    assert warning.lineno == line


RIGHT = {
    "average": lambda p: average(p.losses),
    "number of all": lambda p: tf.reduce_sum(p.losses)
    / tf.cast(tf.shape(p.losses)[0], tf.float32)
    / replicas_of(p)
    * (tf.cast(tf.shape(p.losses)[0], tf.float32) * replicas_of(p) / 8.0),
    "penalty of the weights": lambda p: average(p.losses)
    + tf.nn.scale_regularization_loss([tf.nn.l2_loss(p.w), tf.reduce_sum(p.w)]),
    "nothing of the examples": lambda p: tf.reduce_mean(tf.square(p.w))
    / replicas_of(p) + average(p.losses),
    "Keras": lambda p: tf.keras.losses.MeanSquaredError()(
        tf.zeros_like(p.x), p.x * tf.reduce_sum(p.w)
    ) + tf.nn.scale_regularization_loss(tf.reduce_sum(tf.abs(p.w))),
}  # fmt: skip


@pytest.mark.parametrize("replicas", [2, 3, 4])
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_program_is_left_alone(name, replicas):
    assert found(Program(RIGHT[name], replicas)) == []


def test_a_mean_that_is_shown_and_trains_nothing_is_left_alone():
    class Shown(Program):
        def step(self, x):
            super().step(x)
            return tf.reduce_mean(self.losses) / replicas_of(self)

    assert found(Shown(average_of)) == []


def average_of(p):
    return average(p.losses)


def test_a_batch_that_all_replicas_share_is_left_alone():
    program = Program(DIVIDED, 2)
    rows = tf.constant(np.arange(15, dtype=np.float32).reshape(5, 3))
    assert texts(lambda: program.strategy.run(program.step, (rows,))) == []


def test_one_replica_has_one_mean():
    assert found(Program(DIVIDED, 1)) == []


def test_updates_in_a_loop_are_not_followed_and_run():
    program = Program(DIVIDED, 2)

    @tf.function
    def steps(batch):
        for _ in tf.range(3):
            program.strategy.run(program.step, (batch,))

    (batch,) = batches(program, 8, 8)
    texts(lambda: steps(batch))
    assert int(program.optimizer.iterations) == 3


def test_the_check_changes_nothing_of_the_step():
    plans, weights = [], []
    (batch,) = batches(Program(DIVIDED, 2), 8, 8)
    for mode in ("warn", "off"):
        tf.config.set_loss_normalization_check(mode)
        try:
            program = Program(DIVIDED, 2)
            texts(lambda: program.strategy.run(program.step, (batch,)))  # noqa: B023
            plan = []
            texts(lambda: plan.append(str(program.strategy.explain(program.step, (batch,)))))  # noqa: B023
        finally:
            tf.config.set_loss_normalization_check("warn")
        plans += plan
        weights.append(program.w.numpy())
    assert plans[0] == plans[1]
    assert np.array_equal(*weights)
