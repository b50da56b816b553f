"""Mistakes of the user: each an exception that says who, which rule, the values, the remedy."""

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import samegrad as tf
from samegrad import keras

NEITHER = "neither a Python number nor the condition"


def sparse_loss(labels, classes=3):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
    return loss(np.array(labels), np.zeros((len(labels), classes), "float32"))


def image(*shape):
    return np.zeros(shape, "float32")


def variable(*values):
    return tf.Variable(np.float32(values))


WRONG = {
    "shapes that do not broadcast": (
        lambda: tf.constant([1.0, 2.0]) + tf.constant([1.0, 2.0, 3.0]),
        ValueError, r"\[add\].*\(2,\).*\(3,\)",
    ),
    "two dtypes": (
        lambda: tf.constant([1.0]) + tf.constant([1]),
        TypeError, r"\[add\].*float32 and int32.*samegrad\.cast",
    ),
    "inner sizes of a product": (
        lambda: tf.matmul(tf.ones((1, 2)), tf.ones((1, 2))),
        ValueError, r"\[matmul\] inner dimensions must match: got \(1, 2\) and \(1, 2\)",
    ),
    "channels of an image": (
        lambda: keras.Sequential([keras.layers.Conv2D(4, 3, input_shape=(8, 8, 3))])(
            image(2, 8, 8, 1)
        ),
        ValueError, r"expected axis -1 .* value 3, .* shape \(2, 8, 8, 1\)",
    ),
    "an image smaller than the window": (
        lambda: keras.layers.Conv2D(4, 3)(image(2, 2, 2, 1)),
        ValueError, r"size would be zero or negative.*\(2, 2, 2, 1\)",
    ),
    "axes of an image": (
        lambda: keras.layers.MaxPooling2D()(image(2, 2)),
        ValueError, r"expected ndim=4, found ndim=2.*\(2, 2\)",
    ),
    "features of a dense layer": (
        lambda: keras.Sequential([keras.layers.Dense(4, input_shape=(8,))])(image(2, 7)),
        ValueError, r"expected axis -1 .* value 8, .* shape \(2, 7\)",
    ),
    "units": (lambda: keras.layers.Dense(0), ValueError, r"positive integer.*units=0"),
    "an activation": (
        lambda: keras.layers.Dense(3, activation="rel"), ValueError, r"interpret activation.*: rel",
    ),
    "a dropout rate": (lambda: keras.layers.Dropout(1.5), ValueError, r"rate=1\.5"),
    "a learning rate": (
        lambda: keras.optimizers.SGD("fast"), ValueError, r"learning_rate.*fast",
    ),
    "a label above the classes": (
        lambda: sparse_loss([0, 5]),
        tf.errors.InvalidArgumentError, r"labels must be class numbers in \[0, 3\): got 5",
    ),
    "a label below 0": (
        lambda: sparse_loss([0, -1]),
        tf.errors.InvalidArgumentError, r"labels must be class numbers in \[0, 3\): got -1",
    ),
    "labels of another shape": (
        lambda: keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")(
            np.array([0, 1, 2]), image(2, 3)
        ),
        ValueError, r"\(3,\).*\(2, 3\)|\(2, 3\).*\(3,\)",
    ),
    "an index outside": (
        lambda: tf.gather(tf.zeros((3,)), [3]),
        tf.errors.InvalidArgumentError, r"\[gather\].*3",
    ),
    "the shape of an assignment": (
        lambda: variable(1, 2).assign([1.0]), ValueError, r"shape \(2,\): got .*\(1,\)",
    ),
    "the dtype of an assignment": (
        lambda: variable(1, 2).assign(tf.constant([1, 2])), TypeError, r"float32.*int32",
    ),
    "no replica": (
        lambda: tf.distribute.MirroredStrategy(replicas=0),
        ValueError, r"at least one replica .*replicas=0",
    ),
    "fewer replicas than none": (
        lambda: tf.distribute.MirroredStrategy(replicas=-1), ValueError, r"replicas=-1",
    ),
    "half a replica": (
        lambda: tf.distribute.MirroredStrategy(replicas=1.5), TypeError, r"integer: got float 1\.5",
    ),
    "a device that is not there": (
        lambda: tf.distribute.MirroredStrategy(["XPU:0"]),
        ValueError, r"a CPU, GPU or TPU such as '/gpu:0': got 'XPU:0'.*replicas=8",
    ),
    "a device twice": (
        lambda: tf.distribute.MirroredStrategy(["CPU:0", "/cpu:0"]), ValueError, "named once",
    ),
    "a split": (
        lambda: tf.distribute.MirroredStrategy(replicas=2, split="balanced"),
        TypeError, r"unexpected keyword argument 'split'",
    ),
    "a reduction": (
        lambda: tf.distribute.MirroredStrategy(replicas=2).reduce("MAX", 1.0, axis=None),
        ValueError, r"SUM and MEAN: got 'MAX'",
    ),
    "a dataset that is not batched": (
        lambda: iter(
            tf.distribute.MirroredStrategy(replicas=2).experimental_distribute_dataset(
                tf.data.Dataset.range(4)
            )
        ),
        ValueError, r"call \.batch\(global_batch_size\) first",
    ),
    "a batch of nothing": (
        lambda: tf.data.Dataset.range(4).batch(0), ValueError, r"at least 1: got 0",
    ),
    "threads": (
        lambda: tf.config.threading.set_intra_op_parallelism_threads(-1), ValueError, r"got -1",
    ),
    "more memory than there is": (
        lambda: tf.zeros((10**7, 10**7)), MemoryError, r"no memory for \d+ bytes.*smaller",
    ),
    "more memory than can be counted": (
        lambda: tf.zeros((2**40, 2**40)), MemoryError, "larger than any memory",
    ),
    "a negative size": (lambda: tf.zeros((-1,)), ValueError, r"\[zeros\].*\(-1,\)"),
    "no gradient at all": (
        lambda: keras.optimizers.SGD(0.1).apply_gradients([(None, variable(1))]),
        ValueError, r"No gradients provided for any variable",
    ),
    "a gradient of another shape": (
        lambda: keras.optimizers.SGD(0.1).apply_gradients([(tf.ones((2,)), tf.Variable(1.0))]),
        ValueError, r"\(2,\) for Variable.* of shape \(\)",
    ),
    "a checkpoint that is not there": (
        lambda: tf.train.Checkpoint(v=variable(1)).restore("no-such-folder/ckpt-1"),
        FileNotFoundError, r"no-such-folder/ckpt-1.*latest_checkpoint",
    ),
    "a traced value as a number": (
        lambda: tf.function(lambda x: float(x), autograph=False)(np.float32(1)), TypeError, NEITHER,
    ),
    "a traced value as an array": (
        lambda: tf.function(lambda x: x.numpy())(np.float32(1)), TypeError, NEITHER,
    ),
    "text in a variable": (
        lambda: tf.Variable(["a", "b"]), TypeError, r"hold numbers.*got strings \['a', .*tf.lookup",
    ),
    "a new axis outside of the result": (
        lambda: tf.expand_dims(tf.zeros([12, 3]), 5), tf.errors.InvalidArgumentError,
        r"\[expand_dims\] axis must lie in \[-3, 3\): got 5",
    ),
    "a bool as an index": (
        lambda: tf.range(5)[True], TypeError, r"\[Tensor.__getitem__\] an index.* got bool True",
    ),
    "a bool in a tuple of indices": (
        lambda: tf.zeros([2, 2])[0, np.True_], TypeError, r"an index.* got bool np.True_; .*mask",
    ),
    "a bool as a bound": (
        lambda: tf.range(5)[: tf.constant(True)], TypeError, r"slice are integers: got bool",
    ),
    "a bool as an index of a size": (
        lambda: tf.function(lambda x: tf.shape(x)[True])([[1.0]]), TypeError, r"an index.*got bool",
    ),
    "a bool as an index of a variable": (
        lambda: variable(1, 2)[True].assign(3.0), TypeError, r"\[Variable.__getitem__\].*got bool",
    ),
    "a bool as an index of strings": (
        lambda: tf.constant(["a"])[True], TypeError, r"an index is an integer.*got bool True",
    ),
    "sparse inputs of a model": (
        lambda: keras.Input([4], sparse=True), ValueError, r"\[Input\].*sparse=True.*to_dense",
    ),
    "ragged inputs of a model": (
        lambda: keras.Input([None], ragged=True), ValueError, r"\[Input\].*ragged=True.*to_tensor",
    ),
    "a ragged tensor in a signature": (
        lambda: tf.function(input_signature=[tf.RaggedTensorSpec([None, None])])(abs)(1.0),
        TypeError, r"TensorSpec for each tensor: got RaggedTensorSpec\(shape=",
    ),
    "a replica's value as a condition": (
        lambda: tf.distribute.MirroredStrategy(replicas=2).run(
            lambda: 1 if tf.constant(1.0) > 0 else 2
        ),
        TypeError, r"not in a bare strategy.run.*samegrad.cond, samegrad.while_loop.*where",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_explained(mistake):
    call, kind, words = WRONG[mistake]
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize(
    ("module", "name", "words"),
    [
        ("samegrad", "Varable", "did you mean 'Variable'"),
        ("samegrad", "Dense", "it is samegrad.keras.layers.Dense"),
        ("samegrad.keras.layers", "Dens", "did you mean 'Dense'"),
        ("samegrad.distribute", "MirrorStrategy", "did you mean 'MirroredStrategy'"),
        ("samegrad", "placeholder", "use a function's arguments"),
        ("samegrad.nn", "zzzz", "see dir"),
    ],
)
def test_an_unknown_name_leads_to_the_nearest(module, name, words):
    import importlib

    with pytest.raises(AttributeError, match=words):
        getattr(importlib.import_module(module), name)


def test_a_value_that_leaves_its_function_is_refused():
    kept = []
    tf.function(lambda x: kept.append(x))(np.float32(1))
    with pytest.raises(RuntimeError, match="return it from that function"):
        _ = kept[0] + 1.0


def test_a_tape_gives_gradients_once():
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x)
    with pytest.raises(RuntimeError, match="persistent=True"):
        tape.gradient(y, x)


def test_a_variable_without_gradient_is_named_in_a_warning():
    used, unused = tf.Variable(1.0), tf.Variable(2.0, name="unused")
    with tf.GradientTape() as tape:
        y = used * used
    with pytest.warns(UserWarning, match="unused"):
        keras.optimizers.SGD(0.1).apply_gradients(
            zip(tape.gradient(y, [used, unused]), [used, unused], strict=True)
        )
    assert float(used.numpy()) == pytest.approx(0.8)


@pytest.mark.parametrize("use", [lambda v: v + 1.0, lambda v: v.assign(2.0).value()])
def test_a_variable_of_another_strategy_is_refused(use):
    mine = tf.distribute.MirroredStrategy(replicas=2)
    with mine.scope():
        v = tf.Variable(1.0, name="weight")
    with pytest.raises(RuntimeError, match=r"\[weight\].*2 replicas.*of 3"):
        tf.distribute.MirroredStrategy(replicas=3).run(lambda: use(v))
    assert float(v.numpy()) == 1.0


class Training:
    """One step of a small classifier over replicas."""

    def __init__(self, replicas, optimizer=None):
        keras.utils.set_random_seed(3)
        self.strategy = tf.distribute.MirroredStrategy(replicas=replicas)
        with self.strategy.scope():
            self.model = keras.Sequential([keras.layers.Dense(3, input_shape=(4,))])
            self.optimizer = optimizer or keras.optimizers.Adam(0.1)
        self.loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
        self.step = tf.function(self.distributed)

    def replica_step(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(self.loss(y, self.model(x, training=True)))
        weights = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    def distributed(self, batch):
        return self.strategy.reduce(
            "SUM", self.strategy.run(self.replica_step, args=batch), axis=None
        )

    def train(self, x, y):
        data = tf.data.Dataset.from_tensor_slices((np.float32(x), np.int64(y))).batch(len(y))
        return float(self.step(next(iter(self.strategy.experimental_distribute_dataset(data)))))

    def state(self):
        weights = [v.numpy().tobytes() for v in self.model.variables]
        return [*weights, *(v.numpy().tobytes() for v in self.optimizer.variables)]


@pytest.mark.parametrize("replicas", [1, 2, 8])
def test_a_step_that_fails_changes_nothing(replicas):
    training = Training(replicas)
    x = np.random.default_rng(0).normal(size=(16, 4))
    good, bad = np.arange(16) % 3, np.arange(16) % 3
    bad[13] = 7
    training.train(x, good)
    before = training.state()
    with pytest.raises(tf.errors.InvalidArgumentError, match="got 7"):
        training.train(x, bad)
    assert training.state() == before
    assert np.isfinite(training.train(x, good))


@pytest.mark.parametrize("replicas", [1, 2])
def test_numbers_that_are_not_finite_stop_the_step_that_made_them(replicas):
    training = Training(replicas)
    x = np.random.default_rng(0).normal(size=(8, 4))
    labels = np.arange(8) % 3
    training.train(x, labels)
    before = training.state()
    x[5, 2] = np.nan
    tf.debugging.enable_check_numerics()
    try:
        with pytest.raises(tf.errors.NonFiniteError, match=r"\[matmul\] made NaN.*replica"):
            training.train(x, labels)
    finally:
        tf.debugging.disable_check_numerics()
    assert training.state() == before


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_fewer_examples_than_replicas_give_the_numbers_of_one(rows):
    x = np.random.default_rng(0).normal(size=(rows, 4))
    labels = np.arange(rows) % 3
    one, many = Training(1), Training(8)
    for _ in range(3):
        assert many.train(x, labels) == pytest.approx(one.train(x, labels), rel=1e-6)
    for a, b in zip(one.model.variables, many.model.variables, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


def test_a_failed_trace_leaves_no_variables_and_the_next_call_works():
    layer = keras.layers.Dense(2)
    fail = [True]

    @tf.function
    def step(x):
        if fail[0]:
            raise KeyError("the user's own")
        return layer(x)

    with pytest.raises(KeyError, match="the user's own"):
        step(image(1, 3))
    assert layer.variables == []
    fail[0] = False
    assert step(image(1, 3)).numpy().shape == (1, 2)


def test_steps_from_several_threads_take_turns():
    v = tf.Variable(0.0)
    step = tf.function(lambda x: v.assign_add(x).value())
    step(np.float32(0))
    threads = [
        threading.Thread(target=lambda: [step(np.float32(1)) for _ in range(100)])
        for _ in range(4)
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert float(v.numpy()) == 400


def run_script(text, timeout=60, **options):
    environment = dict(os.environ, **options)
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        capture_output=True, text=True, timeout=timeout, env=environment, check=False,
    )  # fmt: skip


FORK = """
    import multiprocessing, os, sys
    import numpy as np
    import samegrad as tf

    x = np.random.default_rng(0).normal(size=(256, 512)).astype("float32")
    w = tf.Variable(np.ones((512, 256), "float32"))
    step = tf.function(lambda a: tf.reduce_sum(tf.matmul(a, w)))
    expected = float(step(x))

    def child(_):
        fresh = tf.function(lambda a: tf.reduce_sum(tf.matmul(a, w)))
        return float(step(x)), float(fresh(x))

    context = multiprocessing.get_context("fork")
    with context.Pool(2) as pool:
        results = pool.map(child, range(4))
    assert all(a == expected and b == expected for a, b in results), (expected, results)
    assert float(step(x)) == expected
    print("same")
"""


def test_a_fork_after_the_first_step_works_in_parent_and_children():
    done = run_script(FORK, SAMEGRAD_NUM_THREADS="2")
    assert done.stdout == "same\n", done.stderr


@pytest.mark.parametrize("value", ["0", "two", "-1", "9999999"])
def test_a_wrong_number_of_threads_in_the_environment_is_named(value):
    done = run_script("import samegrad as tf; print(tf.sysconfig())", SAMEGRAD_NUM_THREADS=value)
    assert done.returncode == 1
    assert "SAMEGRAD_NUM_THREADS" in done.stderr.splitlines()[-1]
    assert value in done.stderr.splitlines()[-1]


def test_an_unknown_instruction_set_in_the_environment_is_named():
    done = run_script("import samegrad as tf; tf.constant(1.0) + 1.0", SAMEGRAD_ISA="v9")
    assert done.returncode == 1
    assert "SAMEGRAD_ISA" in done.stderr.splitlines()[-1]


def test_ctrl_c_ends_a_loop_inside_the_engine():
    done = run_script("""
        import os, signal, threading
        import samegrad as tf
        from samegrad import _core

        forever = tf.function(lambda: _core.traced_while(
            lambda i: i >= 0, lambda i: [i * 1], [tf.constant(0)], -1)[0])
        threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            forever()
        except KeyboardInterrupt:
            print("stopped")
        v = tf.Variable(1.0)
        print(float(tf.function(lambda: v + 1.0)()))
    """)
    assert done.stdout == "stopped\n2.0\n", done.stderr


def test_a_tensor_whose_constructor_has_not_run_is_refused_and_shown():
    empty = tf.Tensor.__new__(tf.Tensor)
    assert repr(empty) == str(empty) == "<samegrad.Tensor: not made>"
    uses = [
        lambda: empty + 1.0,
        lambda: empty.shape,
        lambda: empty.numpy(),
        lambda: tf.reduce_sum(empty),
        lambda: tf.stack([empty]),
        lambda: tf.Variable(empty),
        lambda: tf.function(tf.square)(empty),
        lambda: bool(empty),
    ]
    for use in uses:
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            use()


def test_an_index_beyond_the_examples_is_named_in_run() -> None:
    x = tf.constant(np.arange(12.0).reshape(4, 3))
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    batch = next(iter(strategy.experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices(x).batch(4)
    )))  # fmt: skip
    keys = {"x[3]": lambda x: x[3], "x[-3]": lambda x: x[-3], "x[:, 0][2]": lambda x: x[:, 0][2],
            "x[2, 1]": lambda x: x[2, 1]}  # fmt: skip
    for key, take in keys.items():
        with pytest.raises(IndexError, match=r"\[Tensor\] index must lie in \[-2, 2\) on axis 0"):
            strategy.run(take, (batch,))
        with pytest.raises(IndexError, match=r"index must lie in \[-2, 2\) on axis 0"):
            tf.function(lambda b, take=take: strategy.run(take, (b,)))(batch)
        assert key
