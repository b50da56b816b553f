"""Tensors that a tape watches outside of any trace."""

import samegrad as tf


def test_a_watched_tensor_is_one_value_at_each_use():
    x = tf.constant([3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x + x
    assert float(tape.gradient(y, x)[0]) == 7.0


def test_what_was_computed_before_is_not_part_of_it():
    x = tf.constant([3.0])
    copy = tf.reshape(x, [1])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * copy
    assert float(tape.gradient(y, x)[0]) == 3.0


def test_a_tensor_may_be_watched_again_and_again():
    x = tf.constant([3.0])
    for factor in (2.0, 5.0):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * factor
        assert float(tape.gradient(y, x)[0]) == factor


def test_second_derivatives():
    x = tf.constant([3.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
        first = inner.gradient(y, x)
    assert float(outer.gradient(first, x)[0]) == 18.0
