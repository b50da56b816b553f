"""Optimizers: formulas, replicas, clipping, slots, learning rates."""

import warnings

import numpy as np
import pytest
from replica_values import shares, strategy

import samegrad as tf
from samegrad.keras import optimizers
from samegrad.keras.optimizers import schedules
from samegrad.train._trackable import build_tree, collect, restore_tree

RNG = np.random.default_rng(0)
START = RNG.normal(size=(3, 2))
GRADIENTS = [RNG.normal(size=(3, 2)) for _ in range(6)]


def sgd(w, gradients, lr, momentum=0.0, nesterov=False):
    m = np.zeros_like(w)
    for g in gradients:
        m = momentum * m - lr * g
        w = w + (momentum * m - lr * g if nesterov else m)
    return w


def adam(w, gradients, lr, beta_1=0.9, beta_2=0.999, epsilon=1e-7, amsgrad=False):
    m, v, largest = np.zeros_like(w), np.zeros_like(w), np.zeros_like(w)
    for t, g in enumerate(gradients, 1):
        m, v = beta_1 * m + (1 - beta_1) * g, beta_2 * v + (1 - beta_2) * g * g
        largest = np.maximum(largest, v)
        rate = lr * np.sqrt(1 - beta_2**t) / (1 - beta_1**t)
        w = w - rate * m / (np.sqrt(largest if amsgrad else v) + epsilon)
    return w


CASES = [
    (optimizers.SGD, {"learning_rate": 0.1}, sgd, {"lr": 0.1}),
    (optimizers.SGD, {}, sgd, {"lr": 0.01}),
    (optimizers.SGD, {"momentum": 0.9}, sgd, {"lr": 0.01, "momentum": 0.9}),
    (
        optimizers.SGD,
        {"momentum": 0.9, "nesterov": True},
        sgd,
        {"lr": 0.01, "momentum": 0.9, "nesterov": True},
    ),
    (optimizers.Adam, {}, adam, {"lr": 0.001}),
    (
        optimizers.Adam,
        {"learning_rate": 0.1, "beta_1": 0.5, "beta_2": 0.9, "epsilon": 0.1},
        adam,
        {"lr": 0.1, "beta_1": 0.5, "beta_2": 0.9, "epsilon": 0.1},
    ),
    (
        optimizers.Adam,
        {"beta_2": 0.5, "amsgrad": True},
        adam,
        {"lr": 0.001, "beta_2": 0.5, "amsgrad": True},
    ),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("make", "given", "formula", "arguments"), CASES)
def test_formulas(make, given, formula, arguments, dtype):
    w, optimizer = tf.Variable(START.astype(dtype)), make(**given)
    step = tf.function(lambda g: optimizer.apply_gradients([(g, w)]))
    for g in GRADIENTS:
        step(tf.constant(g.astype(dtype)))
    # The learning rate is kept in float32.
    np.testing.assert_allclose(w.numpy(), formula(START, GRADIENTS, **arguments), rtol=2e-6)
    assert int(optimizer.iterations.numpy()) == 6
    assert all(v.dtype == dtype for v in optimizer.variables if len(v.shape))


def test_gradients_are_summed_over_replicas_and_applied_once():
    two = strategy(2)
    with two.scope():
        v, optimizer = tf.Variable(0.0), optimizers.SGD(0.1)
    two.run(lambda g: optimizer.apply_gradients([(g, v)]), args=(scalars(1.0, 2.0),))
    assert float(v.numpy()) == pytest.approx(-0.3)
    assert int(optimizer.iterations.numpy()) == 1


def scalars(*numbers):
    return type(shares([0.0]))(tuple(tf.constant(number) for number in numbers))


@pytest.mark.parametrize(
    ("clipping", "change"),
    [
        ({"clipnorm": 1.0}, 1.0),
        ({"clipvalue": 0.5}, 0.5),
        ({"global_clipnorm": 2.0}, 2.0),
        ({}, 7.0),
    ],
)
def test_clipping_comes_after_the_sum(clipping, change):
    two = strategy(2)
    with two.scope():
        v, optimizer = tf.Variable(0.0), optimizers.SGD(1.0, **clipping)
    two.run(lambda g: optimizer.apply_gradients([(g, v)]), args=(scalars(3.0, 4.0),))
    assert float(v.numpy()) == pytest.approx(-change)


def test_clipping_formulas():
    a, b = np.float32([3.0, 4.0]), np.float32([0.3, -12.0])

    def change(**clipping):
        v = [tf.Variable(np.zeros(2, "float32")) for _ in range(2)]
        optimizer = optimizers.SGD(1.0, **clipping)
        optimizer.apply_gradients(zip([tf.constant(a), tf.constant(b)], v, strict=True))
        return [-x.numpy() for x in v]

    np.testing.assert_allclose(change(clipnorm=6.0), [a, b * 6 / np.linalg.norm(b)], rtol=1e-6)
    np.testing.assert_array_equal(change(clipvalue=3.5), [[3.0, 3.5], np.float32([0.3, -3.5])])
    norm = np.sqrt((a * a).sum() + (b * b).sum())
    np.testing.assert_allclose(change(global_clipnorm=1.0), [a / norm, b / norm], rtol=1e-6)
    np.testing.assert_allclose(change(global_clipnorm=100.0), [a, b])
    assert not np.isnan(change(clipnorm=1.0)[0]).any()


def test_a_norm_that_is_not_finite_spares_no_variable():
    v = [tf.Variable(1.0), tf.Variable(1.0)]
    optimizer = optimizers.SGD(1.0, global_clipnorm=1.0)
    optimizer.apply_gradients(
        zip([tf.constant(np.float32(np.inf)), tf.constant(1.0)], v, strict=True)
    )
    assert [np.isnan(x.numpy()) for x in v] == [True, True]


def test_gradients_that_are_missing():
    a, b, c = (tf.Variable(1.0, name=name) for name in "abc")
    optimizer = optimizers.SGD(0.5)
    with pytest.warns(UserWarning, match=r"variables \['a', 'c'\]") as caught:
        optimizer.apply_gradients([(None, a), (tf.constant(1.0), b), (None, c)])
    assert len(caught) == 1
    assert [float(v.numpy()) for v in (a, b, c)] == [1.0, 0.5, 1.0]
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        optimizer.apply_gradients([(None, a), (None, c)])
    with pytest.raises(ValueError, match="must be variables to train: got none"):
        optimizer.apply_gradients([])
    assert int(optimizer.iterations) == 1
    with pytest.raises(ValueError, match=r"shape of its variable: got \(2,\) for a:0"):
        optimizer.apply_gradients([(tf.constant([1.0, 2.0]), a)])


def test_cross_replica_context_is_refused():
    two = strategy(2)
    with two.scope():
        v, optimizer = tf.Variable(0.0), optimizers.SGD()
        with pytest.raises(RuntimeError, match="called in cross-replica context"):
            optimizer.apply_gradients([(tf.constant(1.0), v)])


def test_sums_made_by_the_user_are_not_summed_again():
    two = strategy(2)
    with two.scope():
        v, optimizer = tf.Variable(0.0), optimizers.SGD(1.0)

    def step(g):
        total = tf.distribute.get_replica_context().all_reduce("sum", g)
        optimizer.apply_gradients([(total, v)], experimental_aggregate_gradients=False)
        optimizer.apply_gradients([(total, v)], skip_gradients_aggregation=True)

    two.run(step, args=(scalars(1.0, 2.0),))
    assert float(v.numpy()) == -6.0


def test_learning_rate_can_be_changed_without_tracing_again():
    v, optimizer, traces = tf.Variable(0.0), optimizers.SGD(1.0), []

    @tf.function
    def step(g):
        traces.append(1)
        optimizer.apply_gradients([(g, v)])

    for rate in (1.0, 0.5, tf.constant(0.25)):
        optimizer.learning_rate = rate
        step(tf.constant(1.0))
    assert float(v.numpy()) == -1.75
    assert len(traces) == 1
    assert optimizer.get_config()["learning_rate"] == 0.25
    optimizer.learning_rate.assign(2.0)
    step(tf.constant(1.0))
    assert float(v.numpy()) == -3.75


def test_learning_rates_that_are_functions():
    class Steps(schedules.LearningRateSchedule):
        def __call__(self, step):
            return tf.cast(step, tf.float32) + 1.0

    rate = tf.Variable(2.0)
    cases = [
        (Steps(), -6.0),
        (lambda: 2.0, -6.0),
        (rate, -6.0),
    ]
    for given, end in cases:
        v, optimizer = tf.Variable(0.0), optimizers.SGD(given)
        step = tf.function(lambda g, o=optimizer, v=v: o.apply_gradients([(g, v)]))
        for _ in range(3):
            step(tf.constant(1.0))
        assert float(v.numpy()) == end
    decay = schedules.ExponentialDecay(1.0, decay_steps=10, decay_rate=0.5, staircase=True)
    assert [float(decay(step)) for step in (0, 9, 10, 25)] == [1.0, 1.0, 0.5, 0.25]
    assert float(optimizers.SGD(decay).learning_rate) == 1.0


def test_slots_wait_for_their_values():
    def train(optimizer, v, steps):
        for _ in range(steps):
            optimizer.apply_gradients([(tf.constant([1.0, -2.0]), v)])

    v, optimizer = tf.Variable([1.0, 2.0]), optimizers.Adam(0.1)
    train(optimizer, v, 3)
    leaves, aliases = collect(optimizer)
    assert sorted(leaves) == [f"variables/{i}" for i in range(4)]
    leaves = {key: np.array(value) for key, value in leaves.items()}
    w, other = tf.Variable(v.numpy()), optimizers.Adam(0.5)
    restore_tree(other, build_tree(leaves, aliases))
    train(optimizer, v, 2)
    train(other, w, 2)
    np.testing.assert_array_equal(w.numpy(), v.numpy())
    assert int(other.iterations.numpy()) == 5


def test_bits_are_those_of_eager_steps():
    gradients = [tf.constant(g.astype("float32")) for g in GRADIENTS]

    def train(wrap, replicas):
        several = strategy(replicas)
        with several.scope():
            w, optimizer = (
                tf.Variable(START.astype("float32")),
                optimizers.Adam(0.1, global_clipnorm=1.0),
            )
        step = wrap(lambda g: several.run(lambda: optimizer.apply_gradients([(g / replicas, w)])))
        for g in gradients:
            step(g)
        return w.numpy().tobytes()

    assert train(tf.function, 1) == train(lambda f: f, 1) == train(tf.function, 4)
    w, optimizer = tf.Variable(START.astype("float32")), optimizers.Adam(0.1, global_clipnorm=1.0)
    for g in gradients:
        optimizer.apply_gradients([(g, w)])
    assert w.numpy().tobytes() == train(tf.function, 1)


@pytest.mark.parametrize("optimizer", [optimizers.SGD(0.5, momentum=0.25, clipnorm=2.0),
                                       optimizers.Adam(0.5, amsgrad=True)])  # fmt: skip
def test_a_configuration_makes_the_same_optimizer(optimizer):
    config = optimizer.get_config()
    assert type(optimizer).from_config(config).get_config() == config


def test_no_warning_when_all_is_well():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        v = tf.Variable(1.0)
        optimizers.Adam().apply_gradients([(tf.constant(1.0), v)])


def lazy_adam(w, gradients, lr, beta_1=0.9, beta_2=0.999, epsilon=1e-7):
    """Rows without gradient are left out of each step, which counts for all."""
    w, m, v = w.copy(), np.zeros_like(w), np.zeros_like(w)
    for t, g in enumerate(gradients, 1):
        rows = (g != 0).any(axis=tuple(range(1, g.ndim)))
        m[rows] += (1 - beta_1) * (g - m)[rows]
        v[rows] += (1 - beta_2) * (g * g - v)[rows]
        # Keras raises tensors to the power, which are made of numbers in float32.
        first, second = (1 - float(np.float32(beta)) ** t for beta in (beta_1, beta_2))
        rate = lr * np.sqrt(second) / first
        w[rows] -= rate * m[rows] / (np.sqrt(v[rows]) + epsilon)
    return w


@pytest.mark.parametrize("shape", [(5, 2), (4, 2, 3)])
def test_lazy_adam_moves_rows_that_have_a_gradient(shape):
    rng = np.random.default_rng(2)
    start = rng.normal(size=shape)
    gradients = [rng.normal(size=shape) for _ in range(6)]
    for k, g in enumerate(gradients):
        g[k % shape[0]] = 0.0
        g[(k + 1) % shape[0], 0] = 0.0  # a zero in a row that moves
        g[-1] = 0.0
    w = tf.Variable(start)
    optimizer = optimizers.LazyAdam(0.125)
    for g in gradients:
        optimizer.apply_gradients([(tf.constant(g), w)])
    expected = lazy_adam(start, gradients, 0.125)
    np.testing.assert_allclose(w.numpy(), expected, rtol=1e-12)
    assert (w.numpy()[-1] == start[-1]).all() and (w.numpy()[0] != start[0]).any()


def test_lazy_adam_is_adam_for_vectors():
    gradients = [np.where(np.arange(5) == k % 5, 0.0, RNG.normal(size=5)) for k in range(6)]
    ends = []
    for kind in (optimizers.Adam, optimizers.LazyAdam):
        w, optimizer = tf.Variable(np.ones(5)), kind(0.1)
        for g in gradients:
            optimizer.apply_gradients([(tf.constant(g), w)])
        ends.append(w.numpy())
    np.testing.assert_array_equal(*ends)


def test_lazy_adam_takes_a_row_of_nan_for_one_with_a_gradient():
    w, optimizer = tf.Variable(np.ones((3, 2))), optimizers.LazyAdam(0.1)
    optimizer.apply_gradients([(tf.constant([[0.0, np.nan], [0.0, 0.0], [-0.0, 0.0]]), w)])
    np.testing.assert_array_equal(np.isnan(w.numpy()), [[False, True], [False] * 2, [False] * 2])
    np.testing.assert_array_equal(w.numpy()[1:], 1.0)
