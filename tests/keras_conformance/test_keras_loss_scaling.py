"""Loss scaling: steps that are skipped on all replicas at once, the scale, its state."""

import numpy as np
import pytest
from replica_values import shares, strategy

import samegrad as tf
from samegrad.keras.mixed_precision import LossScaleOptimizer
from samegrad.keras.optimizers import SGD, Adam
from samegrad.train import Checkpoint

RNG = np.random.default_rng(0)
X = RNG.normal(size=(8, 3)).astype(np.float32)
START = RNG.normal(size=(3, 2)).astype(np.float32)
BAD = (np.inf, -np.inf, np.nan)
MODES = {"eager": lambda f: f, "traced": tf.function}


def scalars(*numbers):
    """One number per replica."""
    return numbers[0] if len(numbers) == 1 else tf.distribute.PerReplica(
        tuple(tf.constant(np.float32(number)) for number in numbers)
    )  # fmt: skip


class Trainer:
    """Two variables and an optimizer, whose gradients are given per replica."""

    def __init__(self, replicas=1, mode="traced", inner=SGD, **options):
        self.strategy = strategy(replicas)
        with self.strategy.scope():
            self.w = tf.Variable(np.float32([1.0, 2.0]), name="w")
            self.b = tf.Variable(0.5, name="b")
            self.inner = inner(0.5)
            self.optimizer = LossScaleOptimizer(self.inner, **options)
        self._run = MODES[mode](lambda g: self.strategy.run(self._step, args=(g,)))
        self.traces = 0

    def _step(self, gradient):
        self.traces += 1
        pairs = [(tf.ones_like(self.w), self.w), (gradient, self.b)]
        scaled = [(gradient * self.optimizer.loss_scale, v) for gradient, v in pairs]
        self.optimizer.apply_gradients(scaled)

    def step(self, *gradients):
        self._run(scalars(*(np.float32(g) for g in gradients)))

    def state(self):
        """All bits that a skipped step must leave."""
        return [v.numpy().tobytes() for v in (self.w, self.b, *self.inner.variables)]

    def scale(self):
        return float(self.optimizer.loss_scale), int(self.optimizer.dynamic_counter)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("inner", [SGD, Adam])
@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("bad", BAD)
def test_a_bad_gradient_on_one_replica_skips_the_step_on_all(replicas, inner, bad, mode):
    trainer = Trainer(replicas, mode, inner, initial_scale=8)
    trainer.step(*[1.0] * replicas)
    before = trainer.state()
    assert trainer.scale() == (8.0, 1)
    trainer.step(*[1.0] * (replicas - 1), bad)
    assert trainer.state() == before
    assert trainer.scale() == (4.0, 0)
    assert int(trainer.optimizer.iterations) == 1
    trainer.step(*[1.0] * replicas)
    assert trainer.state() != before
    assert trainer.scale() == (4.0, 1)
    assert int(trainer.optimizer.iterations) == 2


def test_gradients_whose_sum_is_too_large_skip_the_step():
    trainer = Trainer(2, initial_scale=8)
    before = trainer.state()
    trainer.step(4e37, 4e37)
    assert trainer.state() == before
    assert trainer.scale() == (4.0, 0)


def test_infinities_that_would_cancel_skip_the_step():
    trainer = Trainer(2, initial_scale=8)
    before = trainer.state()
    trainer.step(np.inf, -np.inf)
    assert trainer.state() == before


def test_clipping_does_not_hide_a_bad_gradient():
    trainer = Trainer(inner=lambda rate: SGD(rate, clipvalue=1.0), initial_scale=8)
    before = trainer.state()
    trainer.step(np.inf)
    assert trainer.state() == before


@pytest.mark.parametrize("mode", MODES)
def test_sums_made_by_the_user_are_not_summed_again(mode):
    two = strategy(2)
    with two.scope():
        w, optimizer = tf.Variable(1.0), LossScaleOptimizer(SGD(0.5), initial_scale=8)

    def step(own):
        total = tf.distribute.get_replica_context().all_reduce("sum", own)
        optimizer.apply_gradients([(8.0 * total, w)], skip_gradients_aggregation=True)

    run = MODES[mode](lambda g: two.run(step, args=(g,)))
    run(scalars(1.0, 2.0))
    run(scalars(1.0, np.inf))
    assert (float(w.numpy()), float(optimizer.loss_scale)) == (-0.5, 4.0)


@pytest.mark.parametrize("mode", MODES)
def test_variables_with_a_copy_per_replica_skip_the_step_together(mode):
    two = strategy(2)
    with two.scope():
        w = tf.Variable(
            1.0,
            trainable=True,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )
        optimizer = LossScaleOptimizer(SGD(0.5), initial_scale=8)

    def step(own):
        scaled = own * optimizer.loss_scale
        optimizer.apply_gradients([(scaled, w)], skip_gradients_aggregation=True)

    run = MODES[mode](lambda g: two.run(step, args=(g,)))
    run(scalars(1.0, np.inf))
    assert (float(w.numpy()), float(optimizer.loss_scale)) == (1.0, 4.0)
    run(scalars(1.0, 2.0))
    assert (float(w.numpy()), float(optimizer.loss_scale)) == (-0.5, 4.0)


@pytest.mark.parametrize("mode", MODES)
def test_the_scale_doubles_after_good_steps_in_a_row(mode):
    trainer = Trainer(2, mode, initial_scale=4, dynamic_growth_steps=3)
    seen = []
    for gradient in (1, 1, np.nan, 1, 1, 1, 1):
        trainer.step(1.0, gradient)
        seen.append(trainer.scale())
    assert seen == [(4, 1), (4, 2), (2, 0), (2, 1), (2, 2), (4, 0), (4, 1)]
    if mode == "traced":
        assert trainer.traces <= 2  # strategy.run may trace once more than the step


def test_the_scale_stays_at_least_1_and_finite():
    trainer = Trainer(initial_scale=1.5)
    seen = []
    for _ in range(2):
        trainer.step(np.inf)
        seen.append(trainer.scale())
    assert seen == [(1.0, 0), (1.0, 0)]
    trainer = Trainer(initial_scale=2.0**126, dynamic_growth_steps=1)
    for _ in range(3):
        trainer.step(0.0)
    assert trainer.scale() == (2.0**127, 0)
    assert int(trainer.optimizer.iterations) == 3


def train(style, replicas, mode, inner, scale=2**15, steps=5):
    """Weights after some steps of a regression; the plain optimizer for style None."""
    several = strategy(replicas)
    with several.scope():
        w, b = tf.Variable(START), tf.Variable(np.zeros(2, np.float32))
        plain = inner()
        optimizer = LossScaleOptimizer(plain, initial_scale=scale) if style else plain

    def loss_of(rows):
        losses = tf.reduce_sum(tf.square(tf.matmul(rows, w) + b - 1.0), axis=1)
        return tf.nn.compute_average_loss(losses)

    def step(rows):
        if style == "minimize":
            return optimizer.minimize(lambda: loss_of(rows), [w, b])
        with tf.GradientTape() as tape:
            loss = loss_of(rows)
            if style == "tf.keras":
                loss = optimizer.get_scaled_loss(loss)
            elif style == "Keras 3":
                loss = optimizer.scale_loss(loss)
        if style == "minimize with tape":
            return optimizer.minimize(loss, [w, b], tape=tape)
        gradients = tape.gradient(loss, [w, b])
        if style == "tf.keras":
            gradients = optimizer.get_unscaled_gradients(gradients)
        return optimizer.apply_gradients(zip(gradients, [w, b], strict=True))

    batch = shares(*np.split(X, replicas))
    run = MODES[mode](lambda rows: several.run(step, args=(rows,)))
    for _ in range(steps):
        run(batch)
    return [v.numpy().tobytes() for v in (w, b, *plain.variables)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("style", ["tf.keras", "Keras 3", "minimize", "minimize with tape"])
@pytest.mark.parametrize(
    "inner",
    [
        lambda: SGD(0.1, momentum=0.9),
        lambda: Adam(0.1, amsgrad=True, global_clipnorm=0.5),
    ],
    ids=["SGD", "Adam"],
)
def test_steps_have_the_bits_of_the_inner_optimizer_alone(inner, style, mode):
    alone = train(None, 1, mode, inner)
    assert train(style, 1, mode, inner) == alone
    assert train(style, 2, mode, inner) == alone


def test_bits_are_those_for_large_and_small_scales():
    def inner():
        return SGD(0.1)

    alone = train(None, 1, "traced", inner)
    for scale in (1, 2, 2.0**100):
        assert train("tf.keras", 1, "traced", inner, scale) == alone


def test_a_scale_saves_gradients_that_would_vanish():
    w, optimizer = tf.Variable(1.0), LossScaleOptimizer(SGD(), initial_scale=2.0**60)
    with tf.GradientTape(persistent=True) as tape:
        loss = ((w * 2.0**40) * 2.0**-80) * 2.0**-80  # on its way back it passes 2^-160
        scaled = optimizer.get_scaled_loss(loss)
    assert float(tape.gradient(loss, w)) == 0.0
    (gradient,) = optimizer.get_unscaled_gradients([tape.gradient(scaled, w)])
    assert float(gradient) == 2.0**-120


def test_scaled_losses_are_numbers_tensors_and_functions():
    optimizer = LossScaleOptimizer(SGD(), initial_scale=4)
    for scaled in (optimizer.get_scaled_loss, optimizer.scale_loss):
        assert float(scaled(1.5)) == 6.0
        assert scaled(tf.constant(np.float64(1.5))).dtype == tf.float64
    assert float(optimizer.get_scaled_loss(lambda: tf.constant(1.5))()) == 6.0
    unscaled = optimizer.get_unscaled_gradients([tf.constant([8.0]), None, np.float64(2)])
    assert unscaled[0].numpy().tolist() == [2.0]
    assert unscaled[1] is None
    assert (unscaled[2].dtype, float(unscaled[2])) == (tf.float64, 0.5)


def test_a_loss_scaled_as_in_keras_3_can_be_unscaled_by_hand():
    w, optimizer = tf.Variable(1.0), LossScaleOptimizer(SGD(1.0), initial_scale=4)
    with tf.GradientTape() as tape:
        loss = optimizer.scale_loss(w * 0.25)
    gradients = optimizer.get_unscaled_gradients(tape.gradient(loss, [w]))
    optimizer.apply_gradients(zip(gradients, [w], strict=True))
    assert float(w.numpy()) == 0.75


def test_what_belongs_to_the_inner_optimizer_is_its_own():
    trainer = Trainer(inner=Adam)
    optimizer, inner = trainer.optimizer, trainer.inner
    assert optimizer.inner_optimizer is inner
    assert optimizer.iterations is inner.iterations
    optimizer.learning_rate = 0.25
    assert float(inner.learning_rate) == float(optimizer.lr) == 0.25
    optimizer.build([trainer.w])
    assert optimizer.get_slot(trainer.w, "m") is inner.get_slot(trainer.w, "m")
    assert all(any(v is own for own in optimizer.variables()) for v in inner.variables)
    assert (optimizer.dynamic, optimizer.initial_scale) == (True, 2.0**15)
    assert optimizer.dynamic_growth_steps == 2000
    assert isinstance(optimizer, tf.keras.optimizers.Optimizer)
    assert tf.keras.optimizers.LossScaleOptimizer is LossScaleOptimizer


def test_a_checkpoint_holds_scale_counter_and_slots(tmp_path):
    def objects(trainer):
        return {"optimizer": trainer.optimizer, "w": trainer.w, "b": trainer.b}

    options = {"inner": Adam, "initial_scale": 16, "dynamic_growth_steps": 3}
    one = Trainer(2, **options)
    for gradient in (1.0, np.inf, 1.0, 2.0):
        one.step(1.0, gradient)
    assert one.scale() == (8.0, 2)
    path = Checkpoint(**objects(one)).save(str(tmp_path / "c"))
    other = Trainer(4, **options)  # its slots do not exist yet
    Checkpoint(**objects(other)).restore(path)
    assert other.scale() == (8.0, 2)
    assert int(other.optimizer.iterations) == 3
    again = Trainer(2, **options)
    Checkpoint(**objects(again)).restore(path)
    for trainer in (one, again):
        trainer.step(1.0, 1.0)
    assert again.state() == one.state()
    assert again.scale() == one.scale() == (16.0, 0)


def test_weights_go_through_arrays():
    one, other = Trainer(inner=Adam), Trainer(inner=Adam)
    one.step(1.0)
    other.step(2.0)
    other.optimizer.set_weights(one.optimizer.get_weights())
    for trainer in (one, other):
        found = [v.numpy().tobytes() for v in trainer.optimizer.variables]
    assert found == [v.numpy().tobytes() for v in one.optimizer.variables]


def test_a_fixed_scale_is_an_argument_of_the_optimizer_itself():
    with pytest.raises(ValueError, match="loss_scale_factor"):
        LossScaleOptimizer(SGD(), dynamic=False)


def test_cross_replica_context_is_refused_and_nothing_changes():
    trainer = Trainer(2)
    with trainer.strategy.scope(), pytest.raises(RuntimeError, match="cross-replica context"):
        trainer.optimizer.apply_gradients([(tf.constant(1.0), trainer.b)])
    assert trainer.scale() == (2.0**15, 0)


def test_a_gradient_that_is_missing_is_left_out():
    w, b = tf.Variable(1.0, name="w"), tf.Variable(1.0)
    optimizer = LossScaleOptimizer(SGD(0.5))
    with pytest.warns(UserWarning, match=r"variables \['w'\]") as caught:
        optimizer.apply_gradients([(None, w), (optimizer.loss_scale, b)])
    assert caught[0].filename == __file__
    assert (float(w.numpy()), float(b.numpy())) == (1.0, 0.5)


def test_policies_with_a_loss_scale_name_the_optimizer():
    for module in (tf.keras.mixed_precision, tf.keras.mixed_precision.experimental):
        with pytest.raises(ValueError, match=r"got 'dynamic'.*LossScaleOptimizer\(optimizer\)"):
            module.Policy("mixed_float16", loss_scale="dynamic")
