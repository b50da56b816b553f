"""Metrics over batches and replicas."""

import numpy as np
import pytest
from replica_values import local, shares, split, strategy

import samegrad as tf
from samegrad.keras import metrics
from samegrad.train._trackable import build_tree, collect, restore_tree


@pytest.mark.parametrize(("values", "batch", "mean"), [(range(10), 2, 4.5), (range(9), 4, 4.0)])
def test_sums_and_counts_of_batches_merge(values, batch, mean):
    metric, values = metrics.Mean(), np.array(values, "float32")
    for i in range(0, len(values), batch):
        metric.update_state(values[i : i + batch])
    assert float(metric.result()) == mean
    assert float(metric.total.numpy()) == values.sum()
    assert float(metric.count.numpy()) == len(values)


def test_weights_count():
    metric = metrics.Mean()
    metric.update_state([1.0, 3.0, 5.0], sample_weight=[1.0, 1.0, 0.0])
    assert float(metric.result()) == 2.0
    metric.update_state([[2.0, 2.0]], sample_weight=[2.0])
    assert float(metric.result()) == 2.0
    assert float(metric.count.numpy()) == 4.0
    assert float(metrics.Sum()([1.0, 2.0], sample_weight=0.5)) == 1.5


def test_nothing_has_a_mean_of_zero():
    metric = metrics.Mean()
    assert float(metric.result()) == 0.0
    metric.update_state(np.zeros((0,), "float32"))
    assert float(metric.result()) == 0.0


def test_reset():
    metric = metrics.Mean()
    metric.update_state([4.0])
    metric.reset_state()
    assert float(metric([2.0])) == 2.0
    metric.reset_states()
    assert float(metric.result()) == 0.0


def test_counts_beyond_what_float32_can_count():
    metric = metrics.Sum()
    metric.update_state([2.0**25])
    for _ in range(3):
        metric.update_state([1.0])
    assert float(metric.total.numpy()) == 2.0**25 + 3


def test_dtype_of_the_result():
    assert metrics.Mean()([1, 2]).dtype == tf.float32
    assert metrics.Mean(dtype="float64")([1.0]).dtype == tf.float64


ACCURACIES = [
    (metrics.Accuracy(), [[1], [2], [3], [4]], [1, 2, 3, 0], 0.75),
    (metrics.BinaryAccuracy(), [[1], [1], [0], [0]], [[0.98], [1.0], [0.0], [0.6]], 0.75),
    (metrics.BinaryAccuracy(threshold=0.7), [1, 0], [0.6, 0.6], 0.5),
    (
        metrics.CategoricalAccuracy(),
        [[0, 0, 1], [0, 1, 0]],
        [[0.1, 0.9, 0.8], [0.05, 0.95, 0]],
        0.5,
    ),
    (metrics.SparseCategoricalAccuracy(), [2, 1], [[0.1, 0.6, 0.3], [0.05, 0.95, 0]], 0.5),
    (metrics.SparseCategoricalAccuracy(), [[2.0], [1.0]], [[0.1, 0.3, 0.6], [0.05, 0.95, 0]], 1.0),
    (metrics.MeanSquaredError(), [[0.0, 1.0], [0.0, 0.0]], [[1.0, 1.0], [0.0, 0.0]], 0.25),
    (metrics.MeanAbsoluteError(), [[0.0, 1.0], [0.0, 0.0]], [[1.0, 1.0], [0.0, 0.0]], 0.25),
]


@pytest.mark.parametrize(("metric", "truth", "guess", "mean"), ACCURACIES)
def test_means_of_labels_and_predictions(metric, truth, guess, mean):
    metric.reset_state()
    metric.update_state(truth, guess)
    assert float(metric.result()) == mean
    metric.update_state(truth, guess, sample_weight=[0.0] * len(truth))
    assert float(metric.result()) == mean


def test_labels_of_bytes_do_not_wrap():
    scores = np.zeros((1, 300), "float32")
    scores[0, 257] = 1.0
    metric = metrics.SparseCategoricalAccuracy()
    assert float(metric(np.array([1], "uint8"), scores)) == 0.0


def test_sparse_categorical_crossentropy():
    metric = metrics.SparseCategoricalCrossentropy(from_logits=True)
    assert float(metric([0, 1], [[0.0, 0.0], [0.0, 0.0]])) == pytest.approx(np.log(2))


def in_run(replicas, values, weights=None):
    """A mean over batches of a strategy; its bits."""
    several = strategy(replicas)
    with several.scope():
        metric = metrics.Mean()
    step = tf.function(lambda *batch: several.run(metric.update_state, args=batch))
    for i in range(0, len(values), 32):
        batch = [split(values[i : i + 32], replicas)]
        if weights is not None:
            batch.append(split(weights[i : i + 32], replicas))
        step(*batch)
    return metric.total.numpy(), metric.count.numpy(), metric.result().numpy()


def test_bits_do_not_depend_on_the_number_of_replicas():
    rng = np.random.default_rng(0)
    values, weights = (rng.random(96).astype("float32") for _ in range(2))
    for given in (None, weights):
        alone = metrics.Mean()
        for i in range(0, 96, 32):
            weight = None if given is None else given[i : i + 32]
            alone.update_state(values[i : i + 32], weight)
        expected = (alone.total.numpy(), alone.count.numpy(), alone.result().numpy())
        assert [in_run(n, values, given) for n in (1, 2, 3, 8)] == [expected] * 4


def test_results_inside_run_are_those_of_all_replicas():
    two = strategy(2)
    with two.scope():
        mean, total = metrics.Mean(), metrics.Sum()
    values = shares(np.float32([1, 2, 3]), np.float32([10]))
    parts = two.run(lambda x: (mean(x), total(x)), args=(values,))
    assert [local(part) for part in parts] == [[4.0, 4.0], [16.0, 16.0]]


def test_an_empty_replica_adds_nothing():
    two = strategy(2)
    with two.scope():
        metric = metrics.SparseCategoricalAccuracy()
    guess = np.float32([[0.0, 1.0], [1.0, 0.0]])
    truth, guess = shares([1, 1], np.zeros(0, "int64")), shares(guess, guess[:0])
    two.run(metric.update_state, args=(truth, guess))
    assert float(metric.result()) == 0.5


def test_shares_of_a_loss_count_as_the_loss():
    two = strategy(2)
    with two.scope():
        metric = metrics.Mean()
    losses = shares(np.float32([2, 3]), np.float32([4, 5]))

    @tf.function
    def step(x):
        two.run(lambda x: metric.update_state(tf.nn.compute_average_loss(x)), args=(x,))

    step(losses)
    assert float(metric.result()) == 3.5


def test_a_checkpoint_knows_nothing_of_replicas():
    def make(replicas):
        several = strategy(replicas)
        with several.scope():
            return several, metrics.Mean()

    two, metric = make(2)
    two.run(metric.update_state, args=(shares(np.float32([1, 2]), np.float32([6])),))
    leaves, aliases = collect(metric)
    assert sorted(leaves) == ["count", "total"]
    for replicas in (1, 4):
        _, other = make(replicas)
        restore_tree(other, build_tree(leaves, aliases))
        assert float(other.result()) == 3.0


class Largest(metrics.Metric):
    """A user's metric with a value per replica."""

    def __init__(self):
        super().__init__()
        self.seen = self.add_weight("seen")

    def update_state(self, values):
        self.seen.assign_add(tf.reduce_sum(values))

    def result(self):
        return self.seen.value


def test_weights_of_a_users_metric_are_summed_when_read():
    two = strategy(2)
    with two.scope():
        metric = Largest()
    two.run(metric.update_state, args=(shares(np.float32([1, 2]), np.float32([6])),))
    assert float(metric.result()) == 9.0
    metric.reset_state()
    assert float(metric.result()) == 0.0


def test_a_metric_that_defines_the_older_name_begins_anew():
    class Older(Largest):
        def reset_states(self):
            super().reset_states()
            self.was_reset = True

    metric = Older()
    metric.update_state([1.0])
    metric.reset_state()
    assert metric.was_reset
    assert float(metric.result()) == 0.0
