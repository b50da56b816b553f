"""Statistics of one replica's examples that reach a variable, and programs that have none."""

import linecache
import warnings

import numpy as np
import pytest

import samegrad as tf
from samegrad.errors import ReplicaDependenceWarning

average = tf.nn.compute_average_loss
ROWS = np.random.default_rng(0).normal(size=(11, 3)).astype("float32")
LABELS = np.arange(11, dtype=np.int32) % 3


def context():
    return tf.distribute.get_replica_context()


def replicas():
    return context().num_replicas_in_sync


def count(x):
    return tf.cast(tf.shape(x)[0], "float32")


class Program:
    """A step of a linear model on examples of three features.

    Args:
        step: Given the program and a batch; returns a loss, or None where it assigns by itself.
    """

    def __init__(self, step, number=2):
        self.strategy = tf.distribute.MirroredStrategy(replicas=number)
        self.call = step
        with self.strategy.scope():
            self.w = tf.Variable(np.eye(3, dtype=np.float32))
            self.optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
            self.mean = tf.keras.metrics.Mean()
            mean, total = tf.VariableAggregation.MEAN, tf.VariableAggregation.SUM
            self.average = tf.Variable(0.0, trainable=False, aggregation=mean)
            self.averages = tf.Variable(tf.zeros(3), trainable=False, aggregation=mean)
            self.total = tf.Variable(0.0, trainable=False, aggregation=total)
            self.first = tf.Variable(
                0.0, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA
            )
            self.local = tf.Variable(
                0.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=total
            )

    def step(self, x, y):
        with tf.GradientTape() as tape:
            loss = self.call(self, x, y)
        if loss is not None:
            self.optimizer.apply_gradients([(tape.gradient(loss, self.w), self.w)])
        return loss

    def run(self, mode="bare", rows=ROWS):
        data = tf.data.Dataset.from_tensor_slices((rows, LABELS[: len(rows)])).batch(len(rows))
        (batch,) = self.strategy.experimental_distribute_dataset(data)
        call = tf.function(self.strategy.run) if mode == "traced" else self.strategy.run
        tf.config.run_functions_eagerly(mode == "eager")
        try:
            return call(self.step, args=batch)
        finally:
            tf.config.run_functions_eagerly(False)


def found(program, *args, **kwargs):
    """The lines that running it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program.run(*args, **kwargs)
    ours = [w for w in caught if w.category is ReplicaDependenceWarning]
    return [linecache.getline(__file__, w.lineno).strip() for w in ours if w.filename in __file__]


def errors(p, x):
    """Return the error of each example."""
    return tf.reduce_sum(tf.square(x @ p.w), axis=1)


def maximum_in_metric(p, x, y):
    p.mean.update_state(tf.reduce_sum(x, axis=1) / tf.reduce_max(x))  # here


def distance_to_smallest(p, x, y):
    return average(tf.abs(errors(p, x) - tf.reduce_min(x)))  # here


def scaled_by_largest(p, x, y):
    return average(errors(p, x / tf.reduce_max(tf.abs(x), axis=0)))  # here


def sorted_batch(p, x, y):
    order = tf.sort(errors(p, x))  # here
    return average(order * tf.cast(tf.range(tf.shape(x)[0]), "float32"))


def weighted_by_softmax(p, x, y):
    return average(tf.nn.softmax(x[:, 0]) * errors(p, x))  # here


def hardest_examples(p, x, y):
    hardest, _ = tf.math.top_k(errors(p, x), k=2)  # here
    return average(hardest)


def own_mean(p, x, y):
    h = x @ p.w
    h = h - tf.reduce_mean(h, axis=0)  # here
    return average(tf.reduce_sum(tf.square(h), axis=1))


def own_moments(p, x, y):
    h = x @ p.w
    mean, variance = tf.nn.moments(h, axes=0)  # here
    h = (h - mean) * tf.math.rsqrt(variance + 1e-3)
    return average(tf.reduce_sum(tf.square(h - x), axis=1))


def contrastive(p, x, y):
    h = tf.math.l2_normalize(x @ p.w, axis=1)
    scores = tf.matmul(h, x, transpose_b=True)  # here
    return average(tf.reduce_logsumexp(scores, axis=1))


def covariance_squared(p, x, y):
    h = x @ p.w
    return tf.reduce_sum(tf.square(tf.matmul(h, h, transpose_a=True))) / replicas()  # here


def norm_of_batch(p, x, y):
    return average(errors(p, x / tf.norm(x)))  # here


def local_maximum_assigned(p, x, y):
    p.average.assign(tf.reduce_max(x))  # here


def local_median_added(p, x, y):
    p.total.assign_add(tf.sort(x[:, 0])[1])  # here


def maximum_all_reduced(p, x, y):
    largest = tf.reduce_max(x, axis=0)  # here
    p.averages.assign(context().all_reduce("mean", largest))


def first_example(p, x, y):
    return average(errors(p, x - x[0]))  # here


def neighbours(p, x, y):
    return average(errors(p, x - tf.roll(x, 1, axis=0)))  # here


def loop_over_maximum(p, x, y):
    h = x
    for _ in tf.range(2):
        h = h / tf.reduce_max(tf.abs(h))  # here
    return average(errors(p, h))


def branch_on_maximum(p, x, y):
    factor = tf.cond(tf.reduce_max(x) > 1.0, lambda: 1.0, lambda: 2.0)  # here
    return average(errors(p, x)) * factor


def statistic_in_branch(p, x, y):
    h = tf.cond(p.average > 1.0, lambda: x, lambda: x - tf.reduce_max(x, axis=0))  # here
    return average(errors(p, h))


def maximum_of_ordinary_axis(p, x, y):
    columns = tf.reshape(tf.transpose(x), [3, 1, -1])
    return average(errors(p, x / tf.reduce_max(tf.abs(columns))))  # here


def rounds_by_local_mean(p, x, y):
    (h,) = tf.while_loop(
        lambda h: tf.reduce_mean(tf.square(h)) > 0.1,  # here
        lambda h: (h / 2.0,),
        (x,),
    )
    return average(errors(p, h))


def standardized_by_count(p, x, y):
    return average(errors(p, x + count(x)))  # here


def local_mean_assigned(p, x, y):
    p.average.assign(tf.reduce_mean(x))  # here


def moments_of_means(p, x, y):
    p.averages.assign(context().all_reduce("mean", tf.reduce_mean(x, axis=0)))  # here


DEPARTING = [
    maximum_in_metric, distance_to_smallest, scaled_by_largest, sorted_batch,
    weighted_by_softmax, hardest_examples,
    own_mean, own_moments, contrastive, norm_of_batch, local_maximum_assigned, local_median_added,
    maximum_all_reduced, first_example, neighbours, loop_over_maximum, branch_on_maximum,
    statistic_in_branch,
    maximum_of_ordinary_axis, rounds_by_local_mean, standardized_by_count, local_mean_assigned,
    moments_of_means,
]  # fmt: skip


def global_moments(p, x, y):
    h = x @ p.w
    n = context().all_reduce("sum", count(h))
    mean = context().all_reduce("sum", tf.reduce_sum(h, axis=0)) / n
    variance = context().all_reduce("sum", tf.reduce_sum(tf.square(h - mean), axis=0)) / n
    p.averages.assign(mean)
    return average(errors(p, (x - mean) * tf.math.rsqrt(variance + 1e-3)))


def weighted_means(p, x, y):
    n = count(x)
    total = context().all_reduce("sum", tf.reduce_mean(x, axis=0) * n)
    p.averages.assign(total / context().all_reduce("sum", n))


def gathered_examples(p, x, y):
    h = x @ p.w
    every = context().all_gather(h, axis=0)
    return average(tf.reduce_logsumexp(tf.matmul(h, every, transpose_b=True), axis=1))


def gathered_maximum(p, x, y):
    every = context().all_gather(tf.reduce_max(x, axis=0)[None], axis=0)
    return average(errors(p, x / tf.reduce_max(every, axis=0)))


def dropout(p, x, y):
    return average(errors(p, tf.nn.dropout(x, 0.5)))


def noise(p, x, y):
    return average(errors(p, x + tf.random.normal(tf.shape(x))) * tf.random.uniform([]))


def picked_by_range(p, x, y):
    h = x @ p.w
    picked = tf.gather_nd(h, tf.stack([tf.range(tf.shape(h)[0]), y], axis=1))
    return average(tf.square(picked))


def replica_id(p, x, y):
    own = tf.cast(context().replica_id_in_sync_group, "float32")
    return average(errors(p, x * (1.0 + own)))


def of_first_replica(p, x, y):
    p.first.assign(tf.reduce_max(x))


def on_read_sum(p, x, y):
    p.local.assign_add(tf.reduce_sum(x))


def on_read_maximum(p, x, y):
    p.local.assign(tf.maximum(p.local, tf.reduce_max(x)))


def returned_only(p, x, y):
    tf.print(tf.reduce_max(x))
    p.average.assign_add(1.0)


def losses_in_metric(p, x, y):
    losses = errors(p, x)
    p.mean.update_state(losses)
    p.mean.update_state(losses, tf.cast(y, "float32"))
    return average(losses)


def counted(p, x, y):
    p.total.assign_add(count(x))
    p.total.assign_add(tf.reduce_sum(tf.cast(x > 0, "float32")))


def time_steps(p, x, y):
    h = tf.zeros_like(x)
    for step in tf.range(3):
        h = tf.tanh(h + x * tf.cast(step, "float32")) @ p.w
    return average(tf.reduce_max(h, axis=1) + tf.reduce_mean(tf.nn.softmax(h), axis=1))


def one_by_one(p, x, y):
    losses = tf.map_fn(lambda row: tf.reduce_sum(tf.square(row[None] @ p.w)), x)
    return average(losses)


def joined_batches(p, x, y):
    both = tf.concat([x, 2.0 * x], axis=0)
    return average(errors(p, both), global_batch_size=2 * len(ROWS))


def python_loop(p, x, y):
    losses = [tf.reduce_sum(tf.square(row[None] @ p.w)) for row in x]
    return tf.add_n(losses) / len(ROWS) if losses else average(errors(p, x))


def masked_mean(p, x, y):
    weights = tf.cast(y > 0, "float32")
    total = context().all_reduce("sum", tf.reduce_sum(weights))
    return tf.math.divide_no_nan(tf.reduce_sum(errors(p, x) * weights), total)


def clipped(p, x, y):
    with tf.GradientTape() as tape:
        loss = average(errors(p, x))
    gradient = context().all_reduce("sum", tape.gradient(loss, p.w))
    gradient = tf.clip_by_norm(gradient, 1.0)
    p.w.assign_sub(0.1 * gradient)


RIGHT = [
    global_moments, weighted_means, gathered_examples, gathered_maximum, dropout, noise,
    picked_by_range, replica_id, of_first_replica, on_read_sum, on_read_maximum, returned_only,
    losses_in_metric, counted, time_steps, one_by_one, python_loop,
    joined_batches, masked_mean, clipped,
]  # fmt: skip
MODES = ("traced", "bare", "eager")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("step", DEPARTING, ids=lambda step: step.__name__)
def test_replica_dependence_check_names_the_line(step, mode):
    lines = found(Program(step), mode)
    assert len(lines) == 1 and lines[0].endswith("# here"), lines


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("step", RIGHT, ids=lambda step: step.__name__)
def test_replica_dependence_check_leaves_right_programs_alone(step, mode):
    assert found(Program(step, 3), mode) == []
    assert found(Program(step, 3), mode, ROWS[:2]) == []


@pytest.mark.parametrize("step", DEPARTING, ids=lambda step: step.__name__)
def test_replica_dependence_check_is_silent_on_one_replica(step):
    assert found(Program(step, 1)) == []


def either_warning(step):
    """The classes of the warnings of one line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Program(step).run()
    lines = {w.lineno for w in caught}
    assert len(lines) == len(caught), [str(w.message) for w in caught]
    return [w.category for w in caught]


def local_mean(p, x, y):
    return tf.reduce_mean(errors(p, x))


def root_of_local_mean(p, x, y):
    return tf.sqrt(tf.reduce_mean(errors(p, x)))


def local_clip(p, x, y):
    with tf.GradientTape() as tape:
        loss = average(errors(p, x))
    gradient = tf.clip_by_norm(tape.gradient(loss, p.w), 1.0)
    p.w.assign_sub(0.1 * context().all_reduce("sum", gradient))


@pytest.mark.parametrize(
    "step", [local_mean, root_of_local_mean, covariance_squared, local_clip],
    ids=lambda step: step.__name__,
)  # fmt: skip
def test_a_line_has_one_of_both_warnings(step):
    assert len(either_warning(step)) == 1


def peak_of_batch(y, p):
    return tf.reduce_max(y) - tf.reduce_mean(tf.square(y - p), axis=-1)  # here


class Centered(tf.keras.layers.Layer):
    def call(self, x):
        return x - tf.reduce_mean(x, axis=0)  # here


class Similar(tf.keras.losses.Loss):
    def call(self, y, p):
        return tf.reduce_mean(tf.matmul(p, y, transpose_b=True), axis=1)  # here


class Largest(tf.keras.metrics.Metric):
    def __init__(self):
        super().__init__()
        self.value = self.add_weight(initializer="zeros")

    def update_state(self, y, p, sample_weight=None):
        self.value.assign_add(tf.reduce_max(p))  # here

    def result(self):
        return self.value


class Model:
    """`fit` and `evaluate` of a Keras model."""

    def __init__(self, *layers, loss="mse", metrics=(), number=2):
        with tf.distribute.MirroredStrategy(replicas=number).scope():
            self.model = tf.keras.Sequential(
                [tf.keras.Input((3,)), tf.keras.layers.Dense(3), *layers]
            )
            self.model.compile("sgd", loss, metrics=list(metrics))

    def run(self, method="fit"):
        getattr(self.model, method)(ROWS, ROWS, batch_size=4, verbose=0)


@pytest.mark.parametrize("method", ["fit", "evaluate"])
@pytest.mark.parametrize(
    "given",
    [
        {"metrics": [peak_of_batch]},
        {"layers": [Centered()]},
        {"loss": Similar()},
        {"metrics": [Largest()]},
    ],
    ids=["metric", "layer", "loss", "own metric"],
)
def test_fit_names_the_line(given, method):
    given = dict(given)
    lines = found(Model(*given.pop("layers", ()), **given), method)
    assert set(lines) == {lines[0]} and lines[0].endswith("# here"), lines


@pytest.mark.parametrize(
    "given",
    [
        {"layers": [tf.keras.layers.BatchNormalization()]},
        {"layers": [tf.keras.layers.LayerNormalization(), tf.keras.layers.Dropout(0.5)]},
        {"layers": [tf.keras.layers.GaussianNoise(0.5), tf.keras.layers.UnitNormalization()]},
        {"metrics": ["mae", "accuracy", "cosine_similarity", tf.keras.metrics.AUC()]},
        {"metrics": [tf.keras.metrics.R2Score(), tf.keras.metrics.RootMeanSquaredError()]},
        {"loss": "huber", "metrics": [lambda y, p: tf.reduce_max(tf.abs(y - p), axis=-1)]},
    ],
    ids=["batch normalization", "dropout", "noise", "metrics", "moments", "per example"],
)
def test_fit_leaves_right_models_alone(given):
    given = dict(given)
    model = Model(*given.pop("layers", ()), **given)
    assert found(model) == found(model, "evaluate") == []
