"""`gradients` and `hessians` of functions: what they refuse, and replicas."""

import pytest

import samegrad as tf


def test_constants_are_refused_as_sources():
    @tf.function
    def slope():
        x = tf.constant([1.0, 2.0])
        return tf.gradients(x * x, x)

    with pytest.raises(ValueError, match=r"^\[gradients\].*got a constant of shape \(2,\)"):
        slope()


def test_eager_code_and_stopped_gradients_are_refused():
    x = tf.constant(1.0)
    for function in (tf.gradients, tf.hessians):
        with pytest.raises(RuntimeError, match="use a GradientTape, or call it inside"):
            function(x, x)
    with pytest.raises(ValueError, match="use samegrad.stop_gradient"):
        tf.function(lambda x: tf.gradients(x, x, stop_gradients=[x]))(x)


def test_replicas_have_gradients_of_their_examples():
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    data = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0, 4.0]).batch(4)
    (batch,) = strategy.experimental_distribute_dataset(data)
    (found,) = strategy.run(lambda x: tf.gradients(x * x, x), (batch,))
    parts = strategy.experimental_local_results(found)
    assert [part.numpy().tolist() for part in parts] == [[2.0, 4.0], [6.0, 8.0]]


def test_functions_of_values_fall_back_to_python():
    bits = tf.function(lambda x: tf.bitcast(x * 2.0, tf.int32) + 1)
    assert bits(tf.constant([0.5])).numpy().tolist() == [1065353217]
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with pytest.raises(RuntimeError, match=r"^\[bitcast\] Python computes it from values"):
        strategy.run(lambda x: tf.bitcast(x, tf.int32), (tf.constant([1.0]),))


def test_generators_are_split_before_run():
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        generator = tf.random.Generator.from_seed(1)
    with pytest.raises(RuntimeError, match=r"^\[Generator.split\] replicas share the variables"):
        strategy.run(lambda: [g.normal([1]) for g in generator.split(2)])
