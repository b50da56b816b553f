"""Queues between threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import samegrad as tf


def test_a_full_queue_makes_the_thread_wait_that_fills_it():
    queue = tf.queue.FIFOQueue(2, tf.int32, [[]])
    filling = threading.Thread(target=lambda: queue.enqueue_many([list(range(50))]))
    filling.start()
    found = [int(queue.dequeue()) for _ in range(50)]
    filling.join(10)
    assert not filling.is_alive() and found == list(range(50))


def test_an_empty_queue_makes_the_thread_wait_that_empties_it():
    queue, found = tf.queue.FIFOQueue(9, tf.int32, [[]]), []
    emptying = threading.Thread(target=lambda: found.extend(queue.dequeue_many(3).numpy()))
    emptying.start()
    for number in (5, 6, 7):
        queue.enqueue(number)
    emptying.join(10)
    assert not emptying.is_alive() and found == [5, 6, 7]


def test_more_elements_than_fit_are_taken_as_they_come():
    queue = tf.queue.FIFOQueue(2, tf.int32, [[]])
    filling = threading.Thread(target=lambda: queue.enqueue_many([list(range(50))]))
    filling.start()
    assert queue.dequeue_many(50).numpy().tolist() == list(range(50))
    filling.join(10)
    assert not filling.is_alive()


QUEUES = {
    "FIFOQueue": lambda: tf.queue.FIFOQueue(9, tf.int64, [[]]),
    "PaddingFIFOQueue": lambda: tf.queue.PaddingFIFOQueue(9, tf.int64, [[]]),
    "PriorityQueue": lambda: tf.queue.PriorityQueue(9, [], []),
    "RandomShuffleQueue": lambda: tf.queue.RandomShuffleQueue(9, 2, tf.int64, [[]], seed=3),
}


@pytest.mark.parametrize("name", QUEUES)
def test_elements_that_do_not_suffice_stay(name):
    queue = QUEUES[name]()
    queue.enqueue_many([np.int64([7, 7, 3])])
    queue.close()
    with pytest.raises(tf.errors.OutOfRangeError, match=r"requested 4, current size 3"):
        queue.dequeue_many(4)
    found = queue.dequeue_up_to(4).numpy().tolist()
    assert found == {"PriorityQueue": [3, 7, 7]}.get(name, [7, 7, 3]) or (
        name == "RandomShuffleQueue" and sorted(found) == [3, 7, 7]
    )


@pytest.mark.parametrize("cancel", [True, False])
def test_closing_cancels_waiting_threads_where_it_is_asked_to(cancel):
    queue, errors = tf.queue.FIFOQueue(1, tf.int32, [[]]), []
    waits = threading.Event()

    def fill():
        queue.enqueue(1)
        waits.set()
        try:
            queue.enqueue_many([[2]])
        except tf.errors.CancelledError as error:
            errors.append(str(error))

    filling = threading.Thread(target=fill)
    filling.start()
    waits.wait(10)
    while not queue.queue_ref.waiting:
        pass
    queue.close(cancel_pending_enqueues=cancel)
    if not cancel:
        assert int(queue.dequeue()) == 1
    filling.join(10)
    assert not filling.is_alive()
    assert len(errors) == cancel and int(queue.size()) == 1


def test_a_function_with_a_queue_falls_back_to_python():
    queue = tf.queue.FIFOQueue(9, tf.float32, [[]])

    @tf.function
    def through(x):
        queue.enqueue(x * 2.0)
        return queue.dequeue() + 1.0

    assert [float(through(tf.constant(float(i)))) for i in range(3)] == [1.0, 3.0, 5.0]


def test_a_queue_inside_of_run_is_an_error():
    queue = tf.queue.FIFOQueue(9, tf.float32, [[]])
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with pytest.raises(TypeError, match=r"\[FIFOQueue\] .* use it outside of the function"):
        strategy.run(lambda: queue.enqueue(1.0))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda q: q.enqueue([1, 2]), r"an element has 1 components: got 2"),
        (lambda q: q.enqueue([[1, 2]]), r"must have shape \(\): got \(2,\)"),
        (lambda q: q.enqueue({"a": 1}), r"must have names to enqueue a dictionary"),
        (lambda q: q.dequeue_many(-1), r"n must be 0 or more: got n=-1"),
        (lambda q: tf.queue.FIFOQueue(0, tf.int32), r"capacity must not be 0"),
        (lambda q: tf.queue.QueueBase.from_list(2, [q, q]), r"must lie in \[0, 2\): got 2"),
    ],
)
def test_wrong_elements_are_named(call, text):
    with pytest.raises(ValueError, match=text):
        call(tf.queue.FIFOQueue(9, tf.int32, [[]]))
