"""Programs keep neither models nor memory alive, and numbers that change compile nothing anew."""

import gc
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

import samegrad as tf
from samegrad import _core
from samegrad._function.function import Function
from samegrad._function.trace import TracedProgram

MILLION = (1000, 1000)  # of float32: 4 MB


@pytest.fixture
def any_scale():
    """Losses are sums here."""
    tf.config.set_loss_normalization_check("off")
    yield
    tf.config.set_loss_normalization_check("warn")


def resident():
    """The memory of the process in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def in_use():
    """What all arrays hold, but for memory that waits for the next runs."""
    return _core.live_bytes() - _core.idle_bytes()


class Model:
    """A layer of a million weights with Adam, trained once."""

    def __init__(self):
        self.weights = tf.Variable(np.zeros(MILLION, np.float32))
        self.optimizer = tf.keras.optimizers.Adam(0.1)
        self.step = tf.function(self._step)

    def _step(self, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.matmul(x, self.weights.read_value()) - 1.0))
        (gradient,) = tape.gradient(loss, [self.weights])
        self.optimizer.apply_gradients([(gradient, self.weights)])
        return loss


def train_model(strategy):
    Model().step(np.ones((3, 1000), np.float32))


def train_on_replicas(strategy):
    with strategy.scope():
        model = Model()
    x = tf.constant(np.ones((3, 1000), np.float32))
    strategy.run(model._step, args=(x,))


def call_function(strategy):
    large = np.random.default_rng(0).random(MILLION, np.float32)
    tf.function(lambda x: tf.reduce_sum(x * large + large))(tf.ones(MILLION))


def run_on_replicas(strategy):
    large = np.random.default_rng(0).random(MILLION, np.float32)
    strategy.run(lambda x: tf.reduce_sum(x * large), args=(tf.ones(MILLION),))


def run_branches(strategy):
    large = np.random.default_rng(0).random(MILLION, np.float32)

    @tf.function
    def branches(x):
        return tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * large, lambda: x + large)

    branches(tf.ones(MILLION))


KINDS = [train_model, train_on_replicas, call_function, run_on_replicas, run_branches]


@pytest.mark.parametrize("make", KINDS)
def test_two_hundred_dropped_programs_leave_the_memory_of_one(make, any_scale):
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    make(strategy)
    gc.collect()
    before, pages = in_use(), resident()
    for k in range(200 if make in (call_function, run_on_replicas) else 40):
        make(strategy)
        if k % 10 == 9:  # models are cycles of Python objects
            gc.collect()
    gc.collect()
    assert in_use() - before < 1_000_000
    assert _core.idle_bytes() < 150_000_000
    assert resident() - pages < 400_000_000


def test_a_function_that_is_dropped_frees_its_variables_at_once():
    v = tf.Variable(np.zeros(MILLION, np.float32))
    f = tf.function(lambda x, v=v: v.assign_add(x))
    f(tf.ones(MILLION))
    alive = weakref.ref(v)
    gc.collect()
    gc.disable()
    try:
        before = in_use()
        del f, v
        assert alive() is None
        assert in_use() < before - 3_900_000
    finally:
        gc.enable()


def programs(fn, args=(), numbers_change=False):
    return TracedProgram(fn, args, {}, 1, numbers_change=numbers_change)


def test_equal_programs_of_other_variables_share_what_is_compiled():
    x = tf.ones((3,))
    traced = []
    for value in (1.0, 5.0):
        v = tf.Variable(tf.fill((3,), np.float32(value)))
        traced.append((programs(lambda x, v=v: v.assign_add(x), (x,)), v))
    (first, a), (second, b) = traced
    assert first._step.compiled == second._step.compiled
    first.run(_core.Arguments((x,), {}))
    assert (float(a[0]), float(b[0])) == (2.0, 5.0)
    second.run(_core.Arguments((x,), {}))
    assert (float(a[0]), float(b[0])) == (2.0, 6.0)


def check_compiled_once_more_and_then_never(step, rates):
    """A function of an array and a number: the bits are those of a program of its own."""
    x = tf.constant([1.0, 3.0, 5.0])
    seen = {}
    for k in range(rates):

        def fn(x, rate=0.1 * k + 0.3):
            return step(x, rate)

        changing, alone = programs(fn, (x,), numbers_change=True), programs(fn, (x,))
        seen.setdefault(changing._step.compiled, []).append(k)
        arguments = _core.Arguments((x,), {})
        assert changing.run(arguments).numpy().tobytes() == alone.run(arguments).numpy().tobytes()
    assert list(seen.values()) == [[0], list(range(1, rates))]


def test_a_number_that_changes_compiles_once_more_and_then_never():
    check_compiled_once_more_and_then_never(
        lambda x, rate: tf.exp(x * rate) / 7.0 + rate * rate, 20
    )


def test_a_number_that_changes_in_branches_and_rounds_compiles_once_more_and_then_never():
    def step(x, rate):
        y = tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * rate, lambda: x - rate)
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * rate + 1.0), (0, y))[1]

    check_compiled_once_more_and_then_never(step, 6)


def test_a_learning_rate_that_changes_keeps_the_program_of_a_run(any_scale):
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        w = tf.Variable(tf.ones((5,)))

    def step(x, rate):
        total = tf.distribute.get_replica_context().all_reduce("sum", x)
        w.assign_sub(total * rate)

    expected = np.ones(5, np.float32)
    for k in range(6):
        strategy.run(step, args=(tf.ones((5,)), 0.1 * k))
        expected = expected - np.float32(2) * np.float32(0.1 * k)
        assert (w.numpy() == expected).all()


def test_large_constants_of_equal_programs_are_each_programs_own():
    results = []
    for value in (1.0, 2.0):
        large = np.full((300, 300), value, np.float32)
        program = programs(lambda x, large=large: tf.reduce_sum(x * large), (tf.ones((300, 300)),))
        results.append((program._step.compiled, program))
    (one, first), (two, second) = results
    assert one == two
    arguments = _core.Arguments((tf.ones((300, 300)),), {})
    assert float(first.run(arguments)) == 90_000.0
    assert float(second.run(arguments)) == 180_000.0


def test_a_number_that_is_not_finite_is_named_at_the_line_of_the_program_that_ran():
    x = tf.constant([1.0, 0.0])
    first = tf.function(lambda x: tf.math.log(x) * 2.0)
    second = tf.function(lambda x: tf.math.log(x) * 2.0)
    tf.debugging.enable_check_numerics()
    try:
        lines = []
        for f in (first, second):
            with pytest.raises(ArithmeticError) as caught:
                f(x)
            lines.append(str(caught.value).split('test_memory.py", line ')[1].split(",")[0])
    finally:
        tf.debugging.disable_check_numerics()
    start = test_a_number_that_is_not_finite_is_named_at_the_line_of_the_program_that_ran
    line = start.__code__.co_firstlineno
    assert lines == [str(line + 2), str(line + 3)]


def test_what_a_failing_step_printed_appears_at_once(capsys):
    @tf.function
    def step(x):
        tf.print("seen", x)
        return tf.gather(x, tf.constant([9]) + tf.cast(x[:1], "int32"))

    with pytest.raises(tf.errors.InvalidArgumentError):
        step(tf.constant([1.0, 2.0]))
    assert capsys.readouterr().err == "seen [1 2]\n"


def test_prints_of_other_threads_are_not_mixed_up(capsys):
    def show(k):
        for _ in range(200):
            tf.print(tf.constant([k, k, k]))

    threads = [threading.Thread(target=show, args=(k,)) for k in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = capsys.readouterr().err.replace("]", "]\n").split()
    assert sorted("".join(lines).replace("[", " ").replace("]", " ").split()) == sorted(
        ["111", "222", "333"] * 200
    )


def test_draws_of_many_threads_are_counted():
    state = _core.random_state()
    before = state.step, state.ordinal

    def draw():
        for _ in range(300):
            tf.random.normal((3,))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (state.step - before[0], state.ordinal - before[1]) == (1200, 1200)


def test_a_function_is_the_home_of_its_programs():
    f = tf.function(lambda x: x * 2.0)
    assert isinstance(f, Function)
    f(tf.ones((3,)))
    alive = weakref.ref(next(iter(f._programs.values())))
    gc.disable()
    try:
        del f
        assert alive() is None
    finally:
        gc.enable()


def test_a_loop_over_data_keeps_few_traces_of_numbers_that_change():
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    step = strategy._compiled(lambda x, rate: x * rate)
    for k in range(80):
        result = strategy.reduce("SUM", step(tf.ones((3,)), 0.25 * k), axis=None)
        assert float(result[2]) == 0.5 * k
    assert len(step._programs) == 64
    assert len({program._step.compiled for program in step._programs.values()}) == 1


def memory_flags(address):
    """What the system notes of the piece of memory, or None where it does not say."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, *values = line.split()
        if not name.endswith(":"):
            begin, end = (int(number, 16) for number in name.split("-"))
            inside = begin <= address < end
        elif inside and name == "VmFlags:":
            return values
    return None


def test_large_arrays_ask_for_large_pages():
    if not Path("/sys/kernel/mm/transparent_hugepage/enabled").exists():
        pytest.skip("the system has none that a program may ask for")
    array = np.from_dlpack(tf.ones([2048, 4096]) + 1.0)
    flags = memory_flags(array.ctypes.data + array.nbytes // 2)
    if flags is None:
        pytest.skip("the system does not say")
    assert "hg" in flags
    np.testing.assert_array_equal(array, 2.0)
