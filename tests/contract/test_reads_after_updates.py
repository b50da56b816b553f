"""A step that looks at its new weights copies none of them."""

from __future__ import annotations

import signal

import numpy as np
import pytest

import samegrad as tf

SIZE = 512
LOOKS = {
    "an element": lambda w: w[0, 0],
    "a slice": lambda w: w[1:3, ::-2],
    "the sum": tf.reduce_sum,
    "sums of columns": lambda w: tf.reduce_sum(w, 0),
    "the mean": tf.reduce_mean,
    "the largest": tf.reduce_max,
    "the norm": tf.norm,
    "the positions of the largest": lambda w: tf.argmax(w, 1),
    "the first rows transposed": lambda w: tf.transpose(w[:3]),
    "the softmax of a row": lambda w: tf.nn.softmax(w[5]),
    "rows beside each other": lambda w: tf.concat([w[:2], w[-2:]], 0),
}


def training(look):
    """A step of Adam on weights of 1 MB that also looks at them."""
    rng = np.random.default_rng(3)
    x = tf.constant(rng.standard_normal((4, SIZE), dtype=np.float32))
    w = tf.Variable(rng.standard_normal((SIZE, SIZE), dtype=np.float32))
    optimizer = tf.keras.optimizers.Adam(0.1)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.tanh(x @ w))
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return loss, look(w)

    return step, w


@pytest.mark.parametrize("name", LOOKS)
def test_a_look_at_the_new_weights_takes_no_copy_of_them(name):
    plain, _ = training(lambda w: tf.constant(0.0))
    step, w = training(LOOKS[name])
    for _ in range(2):
        plain()
        _, seen = step()
    rows = SIZE * SIZE * 4
    more = step.explain().memory.bytes - plain.explain().memory.bytes
    assert more < 0.1 * rows
    np.testing.assert_array_equal(np.asarray(seen), np.asarray(LOOKS[name](w)))


@pytest.mark.parametrize("name", LOOKS)
def test_a_step_that_fails_after_it_leaves_the_weights_untouched(name):
    w = tf.Variable(np.ones((SIZE, SIZE), np.float32))

    @tf.function
    def step(index):
        w.assign_add(w * 2.0)
        seen = LOOKS[name](w)
        return seen, tf.gather(tf.constant([1.0, 2.0]), index)

    first, _ = step(tf.constant([1]))
    before = w.numpy()
    assert (before == 3.0).all()
    with pytest.raises(tf.errors.InvalidArgumentError, match="got 5"):
        step(tf.constant([5]))
    np.testing.assert_array_equal(w.numpy(), before)
    np.testing.assert_array_equal(np.asarray(first), np.asarray(LOOKS[name](w)))


def test_a_look_that_may_fail_sees_the_new_weights_and_fails_before_they_are_written():
    w = tf.Variable(np.arange(4, dtype=np.float32))

    @tf.function
    def step(index):
        w.assign_add(tf.ones(4))
        return tf.gather(w, index)

    assert step(tf.constant([2])).numpy() == [3.0]
    with pytest.raises(tf.errors.InvalidArgumentError):
        step(tf.constant([9]))
    np.testing.assert_array_equal(w.numpy(), [1.0, 2.0, 3.0, 4.0])


class AlarmError(Exception):
    """What the signal raises."""


def test_an_interrupted_step_leaves_the_weights_that_it_would_look_at_untouched():
    w = tf.Variable(np.ones((SIZE, SIZE), np.float32))

    @tf.function
    def step(rounds):
        w.assign_add(w * 2.0)
        (made,) = tf.while_loop(lambda i: i < rounds, lambda i: (i + 1,), (0,))
        return w[0, 0], made

    def ring(*_):
        raise AlarmError

    assert step(tf.constant(3))[0] == 3.0
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(AlarmError):
            step(tf.constant(2**31 - 1))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert (w.numpy() == 3.0).all()
    assert step(tf.constant(3))[0] == 9.0
