"""Iterators find their place again: in a checkpoint, after a fork, at the end of the process."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import samegrad as tf

Dataset = tf.data.Dataset


def half(x):
    return tf.cast(x, tf.float32) / 2.0


def noisy(x):
    return tf.cast(x, tf.float32) + tf.random.uniform(())


PIPELINES = {
    "shuffled batches": lambda: Dataset.range(20).shuffle(20, seed=1).batch(3),
    "unseeded": lambda: Dataset.range(20).shuffle(9).batch(3),
    "endless": lambda: Dataset.range(7).shuffle(7, seed=1).repeat().batch(3).take(12),
    "endless batches": lambda: Dataset.range(7).shuffle(7).batch(3).repeat().take(12),
    "single elements": lambda: Dataset.range(12).shuffle(5, seed=2),
    "mapped": lambda: Dataset.range(20).map(noisy).shuffle(20).batch(3),
    "mapped in a thread": lambda: Dataset.range(20).batch(3).map(half, tf.data.AUTOTUNE),
    "filtered": lambda: Dataset.range(20).filter(lambda x: x % 3 > 0).shuffle(4).batch(2),
    "cached": lambda: Dataset.range(20).map(noisy).cache().shuffle(20).batch(3),
    "generated": lambda: Dataset.from_generator(
        lambda: iter(range(15)), output_signature=tf.TensorSpec((), tf.int64)
    ).batch(2).repeat(2).prefetch(2),
    "concatenated": lambda: Dataset.range(5).concatenate(Dataset.range(9)).batch(2).skip(1),
}  # fmt: skip


def rest(iterator):
    return [element.numpy().tolist() for element in iterator]


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("epoch", [0, 2])
def test_a_restored_iterator_goes_on_exactly(name, epoch):
    tf.random.set_seed(11)
    dataset = PIPELINES[name]()
    for _ in range(epoch):
        iter(dataset)
    whole = rest(iter_again(dataset))
    assert len(whole) >= 5
    for consumed in (0, 1, len(whole) - 1, len(whole)):
        iterator = iter_again(dataset)
        for _ in range(consumed):
            next(iterator)
        state = dict(iterator._checkpoint_state())
        assert state["position"] == consumed
        assert state["epoch"] == epoch
        # Another process: other draws before, another seed, a dataset in its first epoch.
        tf.random.set_seed(12)
        tf.random.uniform((3,))
        fresh = PIPELINES[name]()
        resumed = iter(fresh)
        resumed._restore_state(state)
        assert rest(resumed) == whole[consumed:]
        assert iter(fresh)._checkpoint_state()["epoch"] == epoch + 1
        tf.random.set_seed(11)


def iter_again(dataset):
    """An iterator that does not count as an epoch."""
    iterator = iter(dataset)
    dataset._epochs.next_epoch -= 1
    return iterator


def test_restoring_in_the_middle_forgets_what_was_prepared():
    dataset = Dataset.range(30).shuffle(30, seed=1).batch(2)
    iterator = iter(dataset)
    state = dict(iterator._checkpoint_state())
    first = rest(iterator)
    iterator._restore_state(state)
    assert rest(iterator) == first


def test_checkpoints_store_the_place(tmp_path):
    iterator = iter(Dataset.range(30).shuffle(30, seed=1).batch(4))
    next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).save(tmp_path / "ckpt")
    expected = rest(iterator)
    other = iter(Dataset.range(30).shuffle(30, seed=1).batch(4))
    tf.train.Checkpoint(iterator=other).restore(path)
    assert rest(other) == expected


@pytest.mark.timeout(60)  # walking would take hours
def test_far_positions_are_reached_without_walking():
    dataset = Dataset.range(1000).shuffle(1000, seed=1).batch(10).repeat()
    iterator = iter(dataset)
    iterator._restore_state({"epoch": 0, "position": 10**12, "seed": 0})
    next(iterator)
    assert iterator._checkpoint_state()["position"] == 10**12 + 1


@pytest.mark.parametrize("name", ["shuffled batches", "mapped in a thread", "generated"])
def test_a_forked_child_goes_on(name):
    iterator = iter(PIPELINES[name]())
    next(iterator)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        code = 1
        try:
            os.write(write, str(rest(iterator)).encode())
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(read, 65536).decode() == str(rest(iterator))
    os.close(read)
    os.close(write)


@pytest.mark.parametrize(
    "stages",
    [
        "batch(4)",
        "batch(4).map(lambda x: x + 1, num_parallel_calls=2)",
        "map(lambda x: x + 1).prefetch(2)",
    ],
)
@pytest.mark.parametrize("end", ["pass", "raise SystemExit(0)", "del iterator"])
def test_the_process_ends_while_threads_work(stages, end):
    program = f"""
        import samegrad as tf
        iterator = iter(tf.data.Dataset.range(100000).repeat().{stages})
        next(iterator)
        {end}
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, timeout=60
    )
    assert (run.returncode, run.stderr) == (0, b"")


def test_ctrl_c_interrupts_a_wait_and_loses_nothing():
    release = threading.Event()

    def slow():
        yield 0
        release.wait(30)
        yield 1

    dataset = Dataset.from_generator(slow, output_signature=tf.TensorSpec((), tf.int64)).prefetch(1)
    iterator = iter(dataset)
    assert int(next(iterator)) == 0
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    timer.join()
    assert iterator._checkpoint_state()["position"] == 1
    release.set()
    assert int(next(iterator)) == 1


def test_dropped_iterators_end_their_threads():
    before = threading.active_count()
    for _ in range(20):
        next(iter(Dataset.range(9).map(lambda x: x).repeat().prefetch(2)))
    gc.collect()
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_several_threads_share_an_iterator():
    iterator = iter(Dataset.range(3000).batch(1))
    first = int(next(iterator))
    seen = []

    def consume():
        seen.extend(int(element) for element in iterator)

    threads = [threading.Thread(target=consume) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted([first, *seen]) == list(range(3000))


def test_a_dataset_of_the_programs_arrays_may_be_dropped_first():
    iterator = iter(Dataset.from_tensor_slices(np.arange(1000.0)).batch(10))
    gc.collect()
    assert sum(float(b.numpy().sum()) for b in iterator) == 999 * 500


@pytest.mark.parametrize("calls", [1, 2, 8, tf.data.AUTOTUNE])
def test_functions_on_several_threads_give_the_same_elements_in_order(calls):
    def drawn(x):
        return x, tf.random.uniform([]), np.float32(float(x) ** 0.5)

    def elements(calls):
        tf.random.set_seed(3)
        data = tf.data.Dataset.range(500).shuffle(500).map(drawn, num_parallel_calls=calls)
        return [tuple(float(part) for part in element) for element in data]

    assert elements(calls) == elements(None)


def test_functions_run_side_by_side_where_there_are_cores():
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core")
    both = threading.Barrier(2)

    def meets(x):
        if int(x) < 2:  # each begins on a thread of its own, which waits for the other
            both.wait(timeout=60)
        return x

    data = tf.data.Dataset.range(64).map(meets, num_parallel_calls=2)
    assert [int(x) for x in data] == list(range(64))


def test_elements_behind_an_interrupt_are_made_again_on_several_threads():
    data = tf.data.Dataset.range(300).map(lambda x: x * 2, num_parallel_calls=2)
    iterator = iter(data)
    first = [int(next(iterator)) for _ in range(100)]
    state = dict(iterator._checkpoint_state())
    again = iter(data)
    again._restore_state(state)
    rest = [int(x) for x in again]
    assert first + rest == [2 * n for n in range(300)] and [int(x) for x in iterator] == rest
