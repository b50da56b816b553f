"""Labels of shape (n,) against predictions of shape (n, 1), in losses and metrics."""

import warnings

import numpy as np
import pytest

import samegrad as tf

SHAPES = [((8,), (8, 1)), ((8, 1), (8,))]
BUILT_IN = ["mean_squared_error", "mean_absolute_error", "huber", "log_cosh", "poisson", "hinge"]


class Difference(tf.keras.losses.Loss):
    def call(self, y_true, y_pred):
        return tf.abs(y_true - y_pred)


def difference(y_true, y_pred):
    return tf.abs(tf.cast(y_true, "float32") - y_pred)


def squeezed(y_true, y_pred):
    return tf.abs(tf.reshape(y_true, (-1,)) - tf.reshape(y_pred, (-1,)))


def columns(y_true, y_pred):
    return tf.stack([tf.reshape(y_true, (-1,)), tf.reshape(y_pred, (-1,))], axis=1)


def messages(call, *args):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*args)
    return [str(one.message) for one in caught]


def in_step(function):
    """The call in a traced step of two replicas, whose number of examples is open."""

    def call(labels, predictions):
        strategy = tf.distribute.MirroredStrategy(replicas=2)
        with strategy.scope():
            compared = function()
        data = tf.data.Dataset.from_tensor_slices((labels, predictions)).batch(8)
        (batch,) = strategy.experimental_distribute_dataset(data)
        strategy.run(lambda y, p: (compared(y, p), 0)[1], batch)

    return call


CALLS = {
    "a class of losses": lambda: Difference(name="difference"),
    "a function as a metric": lambda: tf.keras.metrics.MeanMetricWrapper(difference),
}


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("place", ["eager", "step"])
@pytest.mark.parametrize("name", CALLS)
def test_a_broadcast_of_labels_is_named(name, place, shapes):
    labels, predictions = (np.ones(shape, "float32") for shape in shapes)
    make = CALLS[name]
    call = in_step(make) if place == "step" else make()
    with tf.config.replica_dependence_check("off"):
        (message,) = messages(call, labels, predictions)
    if place == "eager":
        assert f"got {shapes[0]} and {shapes[1]}, which broadcast to (8, 8)" in message
    assert message.startswith("[difference] labels and predictions must have one shape: got ")


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("place", ["eager", "step"])
def test_columns_of_a_metric_are_no_broadcast(place, shapes):
    def make():
        return tf.keras.metrics.MeanMetricWrapper(columns)

    labels, predictions = (np.ones(shape, "float32") for shape in shapes)
    call = in_step(make) if place == "step" else make()
    assert not messages(call, labels, predictions)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("name", BUILT_IN)
def test_losses_of_keras_squeeze_and_are_silent(name, shapes):
    arrays = [np.ones(shape, "float32") for shape in shapes]
    function = getattr(tf.keras.losses, name)
    assert not messages(tf.keras.metrics.MeanMetricWrapper(function), *arrays)
    assert not messages(tf.keras.metrics.MeanMetricWrapper(squeezed), *arrays)


def test_a_matrix_of_losses_is_silent():
    rows = np.ones((8, 8), "float32")
    assert not messages(Difference(), rows, rows) and not messages(Difference(), rows, rows[:, :1])


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_an_average_loss_of_a_matrix_names_the_broadcast(shapes):
    labels, predictions = (tf.ones(shape) for shape in shapes)
    (message,) = messages(tf.nn.compute_average_loss, tf.square(labels - predictions))
    assert "got shape (8, 8), as of labels of shape (n,) that broadcast" in message
    (message,) = messages(tf.nn.compute_average_loss, tf.ones((8, 3)))
    assert "broadcast" not in message and "average the inner axes" in message


def test_cross_entropy_of_other_shapes_is_refused():
    with pytest.raises(ValueError, match=r"labels \(8,\) and logits \(8, 1\)"):
        tf.nn.sigmoid_cross_entropy_with_logits(tf.ones((8,)), tf.ones((8, 1)))


def test_a_batch_size_of_one_replica_is_named_with_that_of_all():
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    data = tf.data.Dataset.from_tensor_slices(np.ones((8, 3), "float32")).batch(8)
    (batch,) = strategy.experimental_distribute_dataset(data)

    def step(x):
        losses = tf.reduce_sum(x, axis=1)
        return tf.nn.compute_average_loss(losses, global_batch_size=4)

    (message,) = messages(strategy.run, step, (batch,))
    assert "got global_batch_size=4, the examples of one of 2 replicas, which have 8" in message


@pytest.fixture(params=[1, 2], ids=["1 replica", "2 replicas"])
def masked_model(request):
    return sequence_model(request.param, mask_zero=True)


def sequence_model(replicas, mask_zero):
    with tf.distribute.MirroredStrategy(replicas=replicas).scope():
        layers = [tf.keras.layers.Embedding(5, 3, mask_zero=mask_zero), tf.keras.layers.Dense(1)]
        model = tf.keras.Sequential(layers)
        model.compile("sgd", "mse", weighted_metrics=["mae"])
    return model


def fit(model, *shape):
    ids, labels = np.ones((16, 7), "int32"), np.ones((16, 7, 1), "float32")
    model.fit(ids, labels, sample_weight=np.ones(shape), batch_size=4, verbose=0)


WEIGHTS = [(16, 7), (16, 1), (16, 7, 1)]
UNFIT = [
    ((16,), r"pass sample_weight\[:, None\]"), ((16, 3), "one weight for each position"),
]  # fmt: skip


@pytest.mark.parametrize("shape", WEIGHTS, ids=str)
def test_weights_that_fit_a_mask_are_taken(masked_model, shape):
    fit(masked_model, *shape)


@pytest.mark.parametrize("built", [False, True], ids=["new", "built"])
@pytest.mark.parametrize(("shape", "remedy"), UNFIT)
def test_weights_that_do_not_fit_a_mask_are_named(masked_model, shape, remedy, built):
    if built:
        fit(masked_model, 16, 7)
    with pytest.raises(ValueError, match=rf"\[sample_weight\] .* \(\?, 7\).*{remedy}"):
        fit(masked_model, *shape)


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize(("shape", "remedy"), UNFIT)
def test_weights_that_do_not_fit_a_loss_are_named(replicas, shape, remedy):
    with pytest.raises(ValueError, match=rf"\[sample_weight\] .* \(\?, 7\).*{remedy}"):
        fit(sequence_model(replicas, mask_zero=False), *shape)


@pytest.mark.parametrize("shape", WEIGHTS, ids=str)
def test_weights_that_fit_a_loss_are_taken(shape):
    fit(sequence_model(2, mask_zero=False), *shape)


@pytest.mark.parametrize("shape", [(), (7,), (1, 7), (4, 1), (4, 7), (4, 7, 1)], ids=str)
def test_weights_of_a_loss_call_broadcast_as_in_numpy(shape):
    loss, ones = tf.keras.losses.MeanSquaredError(), tf.ones((4, 7, 1))
    assert float(loss(ones, 0.0 * ones, sample_weight=np.full(shape, 2.0, "float32"))) == 2.0


@pytest.mark.parametrize("loss", ["mse", difference], ids=["mse", "own"])
def test_errors_of_fit_name_the_loss_and_the_number_that_stands_for_examples(loss):
    model = tf.keras.Sequential([tf.keras.layers.Dense(2)])
    model.compile("sgd", loss)
    with pytest.raises(tf.errors.InvalidArgumentError, match="do not broadcast") as caught:
        model.fit(np.zeros((12, 3)), np.zeros((12, 4)), verbose=0)
    name = loss if isinstance(loss, str) else "difference"
    of_loss, of_keras = caught.value.__notes__
    shapes = "labels of shape (?, 4) and predictions of shape (?, 2)"
    assert of_loss == f"[{name}] called with {shapes}."
    assert "7 stands for the number of examples" in of_keras and "(7, 4)" in str(caught.value)
    lines = [entry.name for entry in caught.traceback]
    assert lines[-1] == "difference" or isinstance(loss, str)


def test_errors_of_layers_say_which_number_stands_for_examples():
    class Sum(tf.keras.layers.Layer):
        def call(self, x):
            return x + tf.zeros([5, 2])

    with pytest.raises(ValueError, match=r"\(7, 3\)") as caught:
        Sum()(tf.keras.Input([3]))
    assert any("stands for the number of examples" in note for note in caught.value.__notes__)
