"""The trace-time check of loss normalization."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import samegrad as tf
from samegrad._base.failure_modes import PROGRAM_FAILURE_MODES
from samegrad._context.counted_numbers import questions
from samegrad.errors import LossNormalizationError, LossNormalizationWarning
from samegrad_doctor import _catalogue as doctor

average = tf.nn.compute_average_loss
NAMES = {row.name for row in PROGRAM_FAILURE_MODES.values()}


def batch_size(p):
    """Of all replicas, computed from that of one where it can be."""
    count = p.strategy.num_replicas_in_sync
    return 8 // count * count if 8 % count == 0 else 8


class Program:
    """A step of a linear model; `loss` is given the step itself."""

    def __init__(self, loss, replicas=4, optimizer=None):
        self.strategy = tf.distribute.MirroredStrategy(replicas=replicas)
        with self.strategy.scope():
            self.w = tf.Variable(np.ones((3, 1), np.float32))
            self.optimizer = optimizer or tf.keras.optimizers.SGD(0.1)
            self.metric = tf.keras.metrics.Mean()
        self.loss = loss

    def step(self, x):
        self.x = x
        with tf.GradientTape() as tape:
            self.losses = tf.reduce_sum(tf.square(tf.matmul(x, self.w)), axis=1)
            loss = self.loss(self)
        self.update(tape.gradient(loss, [self.w]))
        return loss

    def update(self, gradients):
        self.optimizer.apply_gradients(zip(gradients, [self.w], strict=True))

    def penalties(self):
        with tf.GradientTape() as tape:
            tape.watch(self.x)
            outputs = tf.square(tf.matmul(self.x, self.w))
        norms = tf.sqrt(tf.reduce_sum(tf.square(tape.gradient(outputs, self.x)), axis=1))
        return tf.square(norms - 1.0)

    def run(self):
        rows = np.arange(24, dtype=np.float32).reshape(8, 3)
        data = tf.data.Dataset.from_tensor_slices(rows).batch(8)
        (batch,) = self.strategy.experimental_distribute_dataset(data)
        return self.strategy.run(self.step, args=(batch,))


def found(program):
    """The names of the mistakes that running it shows."""
    # Some also use local means as statistics.
    with (
        tf.config.replica_dependence_check("off"),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        (program if isinstance(program, Program) else Program(program)).run()
    assert all(w.category is LossNormalizationWarning for w in caught)
    texts = [str(w.message).removeprefix("[loss normalization] ") for w in caught]
    return [name for text in texts for name in NAMES if text.startswith(f"{name}: ")]


def replicas_of(p):
    return p.strategy.num_replicas_in_sync


def all_reduce(op, value):
    return tf.distribute.get_replica_context().all_reduce(op, value)


def decay(p):
    return 0.01 * tf.reduce_sum(tf.square(p.w))


MEAN_THEN_SUM = "mean per replica, then sum"
SHARE_THEN_MEAN = "divided by the global batch, then averaged"
DECAY = "regularisation counts once on every replica"
MEAN_OF_MEANS = "mean of the replicas' means"
NONLINEAR = "a per-replica sum is used as the global sum"
MISTAKES = {
    "reduce_mean": (MEAN_THEN_SUM, lambda p: tf.reduce_mean(p.losses)),
    "sum by shape": (
        MEAN_THEN_SUM,
        lambda p: tf.reduce_sum(p.losses) / tf.cast(tf.shape(p.losses)[0], tf.float32),
    ),
    "losses by size": (
        MEAN_THEN_SUM,
        lambda p: tf.reduce_sum(p.losses / tf.cast(tf.size(p.losses), tf.float32)),
    ),
    "local weights": (
        MEAN_THEN_SUM,
        lambda p: tf.reduce_sum(p.losses * p.x[:, 0]) / (tf.reduce_sum(p.x[:, 0]) + 1e-6),
    ),
    "local mean beside a share": (MEAN_THEN_SUM, lambda p: average(p.losses) + tf.reduce_mean(p.x)
                                  * tf.reduce_mean(p.losses)),
    "batch size of one replica": (
        MEAN_THEN_SUM,
        lambda p: average(p.losses, global_batch_size=-(-8 // p.strategy.num_replicas_in_sync)),
    ),
    "local mean by replicas": (
        MEAN_OF_MEANS,
        lambda p: tf.reduce_mean(p.losses) / replicas_of(p),
    ),
    "local mean times a part of one": (
        MEAN_OF_MEANS,
        lambda p: tf.reduce_mean(p.losses) * (1 / replicas_of(p)),
    ),
    "losses by replicas": (
        MEAN_OF_MEANS,
        lambda p: tf.reduce_mean(p.losses / tf.constant(replicas_of(p), tf.float32)),
    ),
    "sum by local size and replicas": (
        MEAN_OF_MEANS,
        lambda p: tf.reduce_sum(p.losses)
        / tf.cast(tf.shape(p.losses)[0] * replicas_of(p), tf.float32),
    ),
    "local size as the batch size": (
        MEAN_OF_MEANS,
        lambda p: average(
            p.losses, global_batch_size=tf.shape(p.losses)[0] * replicas_of(p)
        ),
    ),
    "local mean scaled as a regularization": (
        MEAN_OF_MEANS,
        lambda p: tf.nn.scale_regularization_loss(tf.reduce_mean(p.losses)),
    ),
    "local mean and decay by replicas": (
        MEAN_OF_MEANS,
        lambda p: (tf.reduce_mean(p.losses) + decay(p)) / replicas_of(p),
    ),
    "penalty by replicas": (
        MEAN_OF_MEANS,
        lambda p: average(p.losses) + tf.reduce_mean(p.penalties()) / replicas_of(p),
    ),
    "local mean of Keras's losses": (
        MEAN_OF_MEANS,
        lambda p: tf.keras.ops.mean(
            tf.keras.losses.MeanSquaredError(reduction="none")(
                tf.zeros_like(p.x), p.x * tf.reduce_sum(p.w)
            )
        )
        / replicas_of(p),
    ),
    "Keras's mean by replicas": (  # which is that of all replicas already
        SHARE_THEN_MEAN,
        lambda p: tf.keras.losses.MeanSquaredError()(
            tf.zeros_like(p.x), p.x * tf.reduce_sum(p.w)
        )
        / replicas_of(p),
    ),
    "mean over replicas": (SHARE_THEN_MEAN, lambda p: all_reduce("mean", average(p.losses))),
    "divided by replicas": (
        SHARE_THEN_MEAN,
        lambda p: average(p.losses) / p.strategy.num_replicas_in_sync,
    ),
    "reduced before": (
        "multiplied by the replicas",
        lambda p: all_reduce("sum", average(p.losses)),
    ),
    "times replicas": (
        "multiplied by the replicas",
        lambda p: average(p.losses) * p.strategy.num_replicas_in_sync,
    ),
    "decay": (DECAY, lambda p: average(p.losses) + decay(p)),
    "decay of a batch size": (
        DECAY,
        lambda p: average(p.losses, global_batch_size=8) + tf.nn.l2_loss(p.w),
    ),
    "root of a share": (NONLINEAR, lambda p: tf.sqrt(average(p.losses))),
    "squared share": (NONLINEAR, lambda p: average(p.losses) * average(p.losses)),
    "limited share": (NONLINEAR, lambda p: tf.maximum(average(p.losses), 0.1)),
    "penalty": (
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count: "
        "mean per replica, then sum",
        lambda p: average(p.losses) + 10.0 * tf.reduce_mean(p.penalties()),
    ),
}  # fmt: skip


@pytest.mark.parametrize("replicas", [2, 3, 4])
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named(name, replicas):
    mistake, loss = MISTAKES[name]
    assert found(Program(loss, replicas)) == [mistake]


CORRECT = {
    "average": lambda p: average(p.losses),
    "batch size": lambda p: average(p.losses, global_batch_size=8),
    "batch size of replicas": lambda p: average(p.losses, global_batch_size=batch_size(p)),
    "literal": lambda p: tf.reduce_sum(p.losses) / 8.0,
    "literal of replicas": lambda p: tf.reduce_sum(p.losses)
    / (2 * p.strategy.num_replicas_in_sync),
    "local mean times a part": lambda p: tf.reduce_mean(p.losses) * (
        1.0 / p.strategy.num_replicas_in_sync
    ),
    "local mean by its part": lambda p: tf.reduce_mean(p.losses) * tf.cast(
        tf.size(p.losses), tf.float32) / 8.0,
    "all-reduced count": lambda p: tf.reduce_sum(p.losses) / all_reduce(
        "sum", tf.cast(tf.size(p.losses), tf.float32)
    ),
    "global mean": lambda p: tf.keras.losses.MeanSquaredError()(
        tf.zeros_like(p.x), p.x * tf.reduce_sum(p.w)),
    "weights": lambda p: tf.nn.compute_weighted_mean_loss(p.losses, p.x[:, 0]),
    "guarded weights": lambda p: tf.reduce_sum(p.losses * p.x[:, 0])
    / tf.maximum(all_reduce("sum", tf.reduce_sum(p.x[:, 0])), 1.0),
    "scaled decay": lambda p: average(p.losses) + tf.nn.scale_regularization_loss(decay(p)),
    "decay by replicas": lambda p: average(p.losses) + decay(p) / p.strategy.num_replicas_in_sync,
    "decay times a part": lambda p: average(p.losses)
    + decay(p) * (0.5 / p.strategy.num_replicas_in_sync),
    "decay by a literal": lambda p: average(p.losses) + decay(p) / 4.0,
    "penalty": lambda p: average(p.losses) + 10.0 * average(p.penalties()),
    "centred by the local mean": lambda p: average(tf.square(p.losses - tf.reduce_mean(p.losses))),
    "global moments": lambda p: average(
        p.losses - all_reduce("sum", tf.reduce_sum(p.losses)) / 8.0
    ),
    "contrast within the replica": lambda p: average(
        tf.reduce_sum(tf.square(p.x @ p.w), axis=1)
    ) + 0.0 * tf.reduce_sum(tf.stop_gradient(p.losses)),
    "epsilon": lambda p: average(p.losses + 1e-6) + 1e-8,
}  # fmt: skip


@pytest.mark.parametrize("replicas", [2, 4])
@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_program_is_left_alone(name, replicas):
    program = Program(CORRECT[name], 4 if "literal" in name else replicas)
    assert found(program) == []


TERMS = [name for name in CORRECT if "literal" not in name]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(TERMS), min_size=1, max_size=4), st.sampled_from(range(2, 7)),
       st.lists(st.sampled_from([0.5, 2.0, 0.3]), min_size=4, max_size=4))  # fmt: skip
def test_sums_of_correct_terms_are_left_alone(names, replicas, factors):
    def loss(p):
        return sum(f * CORRECT[name](p) for f, name in zip(factors, names, strict=False))

    assert found(Program(loss, replicas)) == []


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["average", "weights", "scaled decay", "penalty"]),
       st.sampled_from(sorted(MISTAKES)))  # fmt: skip
def test_a_mistake_beside_a_correct_term_is_named(correct, name):
    mistake, loss = MISTAKES[name]
    assert mistake in found(lambda p: CORRECT[correct](p) + 3.0 * loss(p))


@pytest.mark.parametrize("replicas", [2, 3, 4])
def test_a_mean_metric_fed_shares_has_the_mean_of_all(replicas):
    def loss(p):
        p.metric.update_state(average(p.losses))
        return average(p.losses)

    program, alone = Program(loss, replicas), Program(loss, 1)
    assert found(program) == []
    alone.run()
    np.testing.assert_allclose(program.metric.result(), alone.metric.result(), rtol=1e-6)


def test_a_mean_metric_fed_what_it_takes_is_left_alone():
    def loss(p):
        p.metric.update_state(p.losses)
        p.metric.update_state(average(p.losses) * p.strategy.num_replicas_in_sync)
        p.metric.update_state(all_reduce("sum", average(p.losses)))
        return average(p.losses)

    assert found(loss) == []


@pytest.mark.parametrize("replicas", [1, 2, 4])
@pytest.mark.parametrize("literal", [2, 2.0, 4, 0.5])
def test_a_literal_is_a_factor_though_there_are_as_many_replicas(replicas, literal):
    """Who means the number of replicas says strategy.num_replicas_in_sync."""
    of_all = tf.keras.metrics.Mean()

    def loss(p):
        share = average(p.losses)
        p.metric.update_state(share * literal)
        of_all.update_state(share * p.strategy.num_replicas_in_sync)
        return share

    program = Program(loss, replicas)
    rows = np.arange(24, dtype=np.float32).reshape(8, 3)
    whole = np.mean(np.square(rows.sum(axis=1)))  # all weights are 1
    assert found(program) == []
    np.testing.assert_allclose(program.metric.result(), literal * whole, rtol=1e-6)
    np.testing.assert_allclose(of_all.result(), whole, rtol=1e-6)


@pytest.mark.parametrize("replicas", [2, 3])
@pytest.mark.parametrize("mode", ["warn", "error"])
def test_a_local_mean_of_a_model_with_biases_is_one_mistake(replicas, mode):
    """The biases' part of the gradient is not a regularization."""
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(4, "relu"), tf.keras.layers.Dense(1)])
        optimizer = tf.keras.optimizers.SGD(0.1)

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - x[:, :1]))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    data = tf.data.Dataset.from_tensor_slices(np.ones((12, 3), np.float32)).batch(12)
    (batch,) = strategy.experimental_distribute_dataset(data)
    model.build((None, 3))
    tf.config.set_loss_normalization_check(mode)
    try:
        if mode == "error":
            with pytest.raises(LossNormalizationError, match=MEAN_THEN_SUM):
                strategy.run(step, args=(batch,))
            return
        with pytest.warns(LossNormalizationWarning, match=MEAN_THEN_SUM) as caught:
            strategy.run(step, args=(batch,))
    finally:
        tf.config.set_loss_normalization_check("warn")
    assert len(caught) == 1
    assert caught[0].filename.endswith("test_loss_normalization_check.py")


def test_a_share_averaged_outside_run_is_named_at_the_line_of_the_reduction():
    program = Program(CORRECT["average"])
    loss = program.run()
    with pytest.warns(LossNormalizationWarning, match=SHARE_THEN_MEAN) as caught:
        program.strategy.reduce("MEAN", loss, axis=None)
    assert caught[0].filename.endswith("test_loss_normalization_check.py")


def test_a_share_averaged_in_a_function_is_named():
    program = Program(CORRECT["average"])

    @tf.function
    def step(batch):
        return program.strategy.reduce(
            tf.distribute.ReduceOp.MEAN, program.strategy.run(program.step, (batch,)), axis=None
        )

    data = tf.data.Dataset.from_tensor_slices(tf.ones([8, 3])).batch(8)
    (batch,) = program.strategy.experimental_distribute_dataset(data)
    with pytest.warns(LossNormalizationWarning, match=SHARE_THEN_MEAN):
        step(batch)


def test_means_of_other_things_are_left_alone():
    program = Program(CORRECT["average"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ids = program.strategy.run(
            lambda: tf.distribute.get_replica_context().replica_id_in_sync_group
        )
        assert float(program.strategy.reduce("MEAN", ids, axis=None)) == 1.5


@pytest.mark.parametrize("rule", ["assign_sub", "assign"])
def test_an_update_by_hand_is_followed_as_well(rule):
    class ByHand(Program):
        def update(self, gradients):
            change = 0.1 * all_reduce("sum", gradients[0])
            if rule == "assign_sub":
                self.w.assign_sub(change)
            else:
                self.w.assign(self.w - change)

    assert found(ByHand(CORRECT["scaled decay"])) == []
    assert found(ByHand(MISTAKES["reduce_mean"][1])) == [MEAN_THEN_SUM]
    assert found(ByHand(MISTAKES["local mean by replicas"][1])) == [MEAN_OF_MEANS]


def test_shares_averaged_over_the_replicas_are_named():
    class Averaged(Program):
        def update(self, gradients):
            self.w.assign_sub(0.1 * all_reduce("mean", gradients[0]))

    assert found(Averaged(CORRECT["average"])) == [SHARE_THEN_MEAN]
    # It may be a statistic of equal shares, as batch normalization's by hand.
    assert found(Averaged(MISTAKES["reduce_mean"][1])) == []


def test_gradients_limited_before_they_are_summed_are_named():
    class Limited(Program):
        def update(self, gradients):
            super().update([tf.clip_by_norm(gradients[0], 1.0)])

    assert found(Limited(CORRECT["average"])) == [NONLINEAR]
    clipping = tf.keras.optimizers.SGD(0.1, clipnorm=1.0)
    assert found(Program(CORRECT["average"], optimizer=clipping)) == []


@pytest.mark.parametrize("optimizer", [
    lambda: tf.keras.optimizers.Adam(0.1),
    lambda: tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam(0.1)),
])  # fmt: skip
def test_the_optimizer_makes_no_difference(optimizer):
    assert found(Program(CORRECT["scaled decay"], optimizer=optimizer())) == []
    assert found(Program(MISTAKES["decay"][1], optimizer=optimizer())) == [DECAY]


def test_one_replica_has_nothing_to_divide():
    assert found(Program(MISTAKES["reduce_mean"][1], replicas=1)) == []


def test_the_warning_is_at_the_line_of_the_mistake():
    def loss(p):
        return tf.reduce_mean(p.losses)

    with pytest.warns(LossNormalizationWarning) as caught:
        Program(loss).run()
    assert caught[0].filename == "test_loss_normalization_check.py"
    assert caught[0].lineno == loss.__code__.co_firstlineno + 1


def test_mistakes_can_be_errors_that_leave_everything_as_it_was():
    program = Program(MISTAKES["reduce_mean"][1])
    tf.config.set_loss_normalization_check("error")
    try:
        with pytest.raises(
            LossNormalizationError, match="mean per replica, then sum.*Fix: divide by"
        ):
            program.run()
    finally:
        tf.config.set_loss_normalization_check("warn")
    assert np.array_equal(program.w.numpy(), np.ones((3, 1)))
    assert int(program.optimizer.iterations) == 0


def test_the_check_can_be_left_out():
    tf.config.set_loss_normalization_check("off")
    try:
        assert tf.config.get_loss_normalization_check() == "off"
        assert found(MISTAKES["reduce_mean"][1]) == []
    finally:
        tf.config.set_loss_normalization_check("warn")


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="one of 'warn', 'error', 'off': got 'loud'"):
        tf.config.set_loss_normalization_check("loud")


def test_a_loop_that_asks_for_the_number_of_replicas_keeps_nothing():
    strategy = tf.distribute.MirroredStrategy(replicas=4)
    before = len(questions.open)
    for _ in range(100):
        assert 0.5 / strategy.num_replicas_in_sync == 0.125
    assert len(questions.open) == before


def test_the_number_of_replicas_is_an_int():
    count = tf.distribute.MirroredStrategy(replicas=4).num_replicas_in_sync
    assert isinstance(count, int) and count == 4 and repr(count) == "4"
    assert list(range(count)) == [0, 1, 2, 3]
    assert (32 * count, 128 // count, 2 / count, 0.5 * count) == (128, 32, 0.5, 2.0)


def test_texts_of_the_check_are_those_of_the_doctor():
    own = {
        "mean_then_sum": doctor.MEAN_THEN_SUM,
        "share_then_mean": doctor.SHARE_THEN_MEAN,
        "regularization": doctor.term_counted("once on every replica"),
        "times_replicas": doctor.TIMES_REPLICAS,
        "penalty": doctor.part_with(None, doctor.MEAN_THEN_SUM),
        "mean_of_means": doctor.MEAN_OF_MEANS,
    }
    shown = {key: tuple(PROGRAM_FAILURE_MODES[key]) for key in own}
    texts = {key: (row.name, row.sentence, row.formula, row.fix) for key, row in own.items()}
    assert shown == texts
    assert PROGRAM_FAILURE_MODES.keys() - own.keys() == {"nonlinear_share"}
