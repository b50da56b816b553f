"""A traced tensor where a size or an axis should be: Python runs it, and replicas refuse it."""

import numpy as np
import pytest

import samegrad as tf

CALLS = {
    "range": (lambda n, x: tf.range(n), "start"),
    "range of two": (lambda n, x: tf.range(0, n, 2), "limit"),
    "zeros": (lambda n, x: tf.zeros([n]), "shape"),
    "zeros of a tensor": (lambda n, x: tf.zeros(n), "shape"),
    "ones": (lambda n, x: tf.ones([n, 2]), "shape"),
    "fill": (lambda n, x: tf.fill([n], 1.0), "dims"),
    "linspace": (lambda n, x: tf.linspace(0.0, 1.0, n), "num"),
    "reshape": (lambda n, x: tf.reshape(x, [n, -1]), "shape"),
    "eye": (lambda n, x: tf.eye(n), "num_rows"),
    "one_hot": (lambda n, x: tf.one_hot([1], n), "depth"),
    "tile": (lambda n, x: tf.tile(x, [n]), "multiples"),
    "repeat": (lambda n, x: tf.repeat(x, n), "repeats"),
    "split": (lambda n, x: tf.split(x, n), "num_or_size_splits"),
    "unstack": (lambda n, x: tf.unstack(x, n), "num"),
    "top_k": (lambda n, x: tf.math.top_k(x, n), "k"),
    "slice": (lambda n, x: x[:n], "key"),
    "normal": (lambda n, x: tf.random.normal([n]), "shape"),
    "uniform": (lambda n, x: tf.random.uniform([n]), "shape"),
    "sequence_mask": (lambda n, x: tf.sequence_mask([1, 2], n), "maxlen"),
    "reduce_sum": (lambda n, x: tf.reduce_sum(x, axis=n), "axis"),
    "argmax": (lambda n, x: tf.argmax(x, axis=n), "axis"),
    "expand_dims": (lambda n, x: tf.expand_dims(x, n), "axis"),
    "concat": (lambda n, x: tf.concat([x, x], n), "axis"),
    "pad": (lambda n, x: tf.pad(x, [[0, n]]), "paddings"),
    "broadcast_to": (lambda n, x: tf.broadcast_to(x, [n, 4]), "shape"),
    "gather": (lambda n, x: tf.gather(x, [0], axis=n), "axis"),
    "bincount": (lambda n, x: tf.math.bincount([1, 2], minlength=n), "minlength"),
    "unsorted_segment_sum": (
        lambda n, x: tf.math.unsorted_segment_sum(x, [0, 1, 0, 1], n), "num_segments",
    ),
    "resize": (lambda n, x: tf.image.resize(tf.ones((1, 4, 4, 1)), [n, n]), "size"),
    "band_part": (lambda n, x: tf.linalg.band_part(tf.ones((4, 4)), n, 0), "num_lower"),
    "TensorArray": (lambda n, x: tf.TensorArray(tf.float32, n).stack(), "size"),
}  # fmt: skip
OF_AN_AXIS = ("reduce_sum", "argmax", "expand_dims", "concat", "gather")


@pytest.mark.parametrize("name", CALLS)
def test_traced_size_in_run_is_refused_by_the_name_of_its_argument(name):
    call, argument = CALLS[name]
    two = tf.distribute.MirroredStrategy(replicas=2)
    with pytest.raises((TypeError, ValueError)) as error:
        two.run(call, args=(tf.constant(2), tf.ones(4)))
    text = str(error.value)
    rule, _, rest = text.partition(": got ")
    assert f" {argument} must " in rule and "traced>" in rest and "x.shape[0]" in rest, text
    assert "has no value yet" not in text


@pytest.mark.parametrize("name", CALLS)
def test_traced_size_in_a_function_falls_back_to_python(name):
    call, _ = CALLS[name]
    n = tf.constant(0 if name in OF_AN_AXIS else 2)
    x = tf.range(4.0)

    def outcome(function):
        tf.random.set_seed(1)
        try:
            return [np.asarray(part).tolist() for part in tf.nest.flatten(function(n, x))]
        except ValueError as error:
            return type(error), str(error)

    step = tf.function(call, autograph=False)
    assert outcome(step) == outcome(call)
    (reason,) = step.explain(n, x).reasons
    assert reason.text.startswith("Python runs the function: [") and reason.file
