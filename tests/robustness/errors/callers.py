"""Every public function that calls a user's function: how a user calls it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

import samegrad as tf

ROWS = np.ones((4, 3), np.float32)
Step = Callable[..., Any]


def _strategy() -> Any:
    return tf.distribute.MirroredStrategy(replicas=2)


def _range() -> Any:
    return tf.data.Dataset.range(4)


def _saved() -> str:
    path = tempfile.mkdtemp()
    _range().save(path)
    return path


def _gradient(f: Step) -> Any:
    """A gradient function that calls the user's."""
    x = tf.Variable(1.0)

    @tf.custom_gradient
    def square(value: Any) -> Any:
        return value * value, f

    with tf.GradientTape() as tape:
        y = square(x)
    return tape.gradient(y, x)


def _method(f: Step) -> Any:
    class Model:
        @tf.function
        def step(self, x: Any) -> Any:
            return f(x)

    return Model().step(1.0)


def _module(f: Step) -> Any:
    class Own(tf.Module):
        @tf.Module.with_name_scope
        def step(self, x: Any) -> Any:
            return f(x)

    return Own().step(1.0)


def _merge(f: Step) -> Any:
    def replica_fn() -> Any:
        return tf.distribute.get_replica_context().merge_call(lambda strategy: f(strategy))

    return _strategy().run(replica_fn)


def _update(f: Step) -> Any:
    strategy = _strategy()
    with strategy.scope():
        v = tf.Variable(1.0)

    def merged(strategy: Any) -> Any:
        return strategy.extended.update(v, f)

    return strategy.run(lambda: tf.distribute.get_replica_context().merge_call(merged))


def _distributed(f: Step) -> Any:
    data = _range().map(f).batch(2)
    return list(_strategy().experimental_distribute_dataset(data))


def _from_function(f: Step) -> Any:
    return list(_strategy().distribute_datasets_from_function(lambda _: _range().map(f).batch(2)))


def _manager(f: Step) -> Any:
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    manager = tf.train.CheckpointManager(checkpoint, tempfile.mkdtemp(), 2, init_fn=lambda: f(1))
    return manager.restore_or_initialize()


def _signed(f: Step) -> Any:
    return tf.function(f).get_concrete_function(tf.TensorSpec([], tf.float32))


def _looped(f: Step) -> Any:
    @tf.function
    def program(x: Any) -> Any:
        for _ in tf.range(3):
            if tf.reduce_sum(x) > 0.0:
                x = f(x)
        return x

    return program(tf.ones((2,)))


def _boxed(f: Step) -> Any:
    """A function that reads data, which Python runs."""

    @tf.function
    def program(data: Any) -> None:
        for x in data:
            f(x)

    return program(_range())


# By the name that the public surface has for it, or that and what is special about it.
CALLERS: dict[str, Callable[[Step], Any]] = {
    "function": lambda f: tf.function(f)(1.0),
    "function.of a method": _method,
    "function.get_concrete_function": _signed,
    "function.explain": lambda f: tf.function(f).explain(1.0),
    "function.with control flow": _looped,
    "function.with data": _boxed,
    "function.in another": lambda f: tf.function(lambda x: tf.function(f)(x))(1.0),
    "distribute.Strategy.run": lambda f: _strategy().run(f, args=(1.0,)),
    "distribute.Strategy.run in a function": lambda f: tf.function(
        lambda: _strategy().run(f, args=(1.0,))
    )(),
    "distribute.Strategy.explain": lambda f: _strategy().explain(f, args=(1.0,)),
    "distribute.Strategy.experimental_run": lambda f: _strategy().experimental_run(
        f, iter(_strategy().experimental_distribute_dataset(_range().batch(2)))
    ),
    "distribute.Strategy.experimental_distribute_values_from_function": lambda f: (
        _strategy().experimental_distribute_values_from_function(f)
    ),
    "distribute.Strategy.distribute_datasets_from_function": _from_function,
    "distribute.Strategy.experimental_distribute_datasets_from_function": lambda f: list(
        _strategy().experimental_distribute_datasets_from_function(
            lambda _: _range().map(f).batch(2)
        )
    ),
    "distribute.Strategy.experimental_distribute_dataset": _distributed,
    "distribute.ReplicaContext.merge_call": _merge,
    "distribute.StrategyExtended.call_for_each_replica": lambda f: (
        _strategy().extended.call_for_each_replica(f, args=(1.0,))
    ),
    "distribute.StrategyExtended.update": _update,
    "Module.with_name_scope": _module,
    "testing.assert_replica_invariant": lambda f: tf.testing.assert_replica_invariant(
        lambda: (f, [1.0]), ROWS, (1,), (1,), (1,), 1
    ),
    "autograph.experimental.do_not_convert": lambda f: tf.autograph.experimental.do_not_convert(f)(
        1.0
    ),
    "autograph.to_graph": lambda f: tf.autograph.to_graph(f)(1.0),
    "case": lambda f: tf.case([(tf.constant(True), lambda: f(1.0))], default=lambda: 1.0),
    "cond": lambda f: tf.cond(tf.constant(True), lambda: f(1.0), lambda: 1.0),
    "cond in a function": lambda f: tf.function(
        lambda x: tf.cond(x > 0.0, lambda: f(x), lambda: x)
    )(tf.constant(1.0)),
    "switch_case": lambda f: tf.switch_case(tf.constant(0), [lambda: f(1.0)]),
    "custom_gradient": lambda f: tf.custom_gradient(f)(1.0),
    "custom_gradient.its gradient": _gradient,
    "recompute_grad": lambda f: tf.recompute_grad(f)(1.0),
    "foldl": lambda f: tf.foldl(lambda a, x: f(x), ROWS),
    "foldr": lambda f: tf.foldr(lambda a, x: f(x), ROWS),
    "map_fn": lambda f: tf.map_fn(f, ROWS),
    "map_fn in a function": lambda f: tf.function(lambda x: tf.map_fn(f, x))(ROWS),
    "scan": lambda f: tf.scan(lambda a, x: f(x), ROWS),
    "vectorized_map": lambda f: tf.vectorized_map(f, ROWS),
    "while_loop": lambda f: tf.while_loop(lambda i: i < 3, lambda i: f(i), [tf.constant(0)]),
    "while_loop.its condition": lambda f: tf.while_loop(f, lambda i: i + 1, [tf.constant(0)]),
    "nest.map_structure": lambda f: tf.nest.map_structure(f, [1.0]),
    "numpy_function": lambda f: tf.numpy_function(f, [1.0], tf.float32),
    "py_function": lambda f: tf.py_function(f, [1.0], tf.float32),
    "py_function in a function": lambda f: tf.function(
        lambda x: tf.py_function(f, [x], tf.float32)
    )(tf.constant(1.0)),
    "ragged.map_flat_values": lambda f: tf.ragged.map_flat_values(
        f, tf.ragged.constant([[1.0], [2.0, 3.0]])
    ),
    "sparse.map_values": lambda f: tf.sparse.map_values(
        f, tf.SparseTensor([[0, 1]], [2.0], [2, 3])
    ),
    "test.compute_gradient": lambda f: tf.test.compute_gradient(f, [[1.0, 2.0]]),
    "train.CheckpointManager": _manager,
    "data.Dataset.apply": lambda f: _range().apply(f),
    "data.Dataset.bucket_by_sequence_length": lambda f: list(
        _range().map(lambda n: tf.fill([n], n)).bucket_by_sequence_length(f, [2], [2, 2])
    ),
    "data.Dataset.filter": lambda f: list(_range().filter(f)),
    "data.Dataset.flat_map": lambda f: list(_range().flat_map(f)),
    "data.Dataset.from_generator": lambda f: list(
        tf.data.Dataset.from_generator(
            lambda: (f(n) for n in range(3)), output_signature=tf.TensorSpec([], tf.int32)
        )
    ),
    "data.Dataset.group_by_window": lambda f: list(
        _range().group_by_window(f, lambda _, rows: rows.batch(2), 2)
    ),
    "data.Dataset.interleave": lambda f: list(_range().interleave(f)),
    "data.Dataset.load": lambda f: list(tf.data.Dataset.load(_saved(), reader_func=f)),
    "data.Dataset.map": lambda f: list(_range().map(f)),
    "data.Dataset.map in threads": lambda f: list(
        _range().map(f, num_parallel_calls=4).batch(2).prefetch(2)
    ),
    "data.Dataset.map of batches": lambda f: list(_range().batch(2).map(f).as_numpy_iterator()),
    "data.Dataset.map.get_next": lambda f: iter(_range().map(f)).get_next(),
    "data.Dataset.reduce": lambda f: _range().reduce(0, lambda a, x: f(x)),
    "data.Dataset.rejection_resample": lambda f: list(_range().rejection_resample(f, [0.5, 0.5])),
    "data.Dataset.save": lambda f: _range().save(tempfile.mkdtemp(), shard_func=f),
    "data.Dataset.scan": lambda f: list(_range().scan(0, lambda a, x: f(x))),
    "data.Dataset.take_while": lambda f: list(_range().take_while(f)),
    "data.experimental.bucket_by_sequence_length": lambda f: list(
        _range()
        .map(lambda n: tf.fill([n], n))
        .apply(tf.data.experimental.bucket_by_sequence_length(f, [2], [2, 2]))
    ),
    "data.experimental.group_by_window": lambda f: list(
        _range().apply(tf.data.experimental.group_by_window(f, lambda _, rows: rows.batch(2), 2))
    ),
    "data.experimental.load": lambda f: list(tf.data.experimental.load(_saved(), reader_func=f)),
    "data.experimental.map_and_batch": lambda f: list(
        _range().apply(tf.data.experimental.map_and_batch(f, 2))
    ),
    "data.experimental.parallel_interleave": lambda f: list(
        _range().apply(tf.data.experimental.parallel_interleave(f, 2))
    ),
    "data.experimental.rejection_resample": lambda f: list(
        _range().apply(tf.data.experimental.rejection_resample(f, [0.5, 0.5]))
    ),
    "grad_pass_through": lambda f: tf.grad_pass_through(f)(tf.constant(1.0)),
    "nn.experimental.general_dropout": lambda f: tf.nn.experimental.general_dropout(
        tf.ones([2]), 0.5, lambda shape, dtype: f(1.0)
    ),
    "train.CheckpointOptions": lambda f: tf.train.Checkpoint(v=tf.Variable(1.0)).write(
        tempfile.mkdtemp() + "/ckpt",
        tf.train.CheckpointOptions(experimental_write_callbacks=[lambda path: f(1.0)]),
    ),
    "data.experimental.save": lambda f: tf.data.experimental.save(
        _range(), tempfile.mkdtemp(), shard_func=f
    ),
    "data.experimental.scan": lambda f: list(
        _range().apply(tf.data.experimental.scan(0, lambda a, x: f(x)))
    ),
    "data.experimental.take_while": lambda f: list(
        _range().apply(tf.data.experimental.take_while(f))
    ),
}


# Each says that the step raised, and why; where is in the cause.
DOCTOR: dict[str, Callable[[Step], Any]] = {
    "testing.diagnose": lambda f: tf.testing.diagnose(f, ROWS),
    "testing.assert_replica_equivalent": lambda f: tf.testing.assert_replica_equivalent(f, ROWS),
}
# They do not call a function, or refuse to do so; walk calls it while it handles an OSError, and an
# iterator of checkpoints while it is iterated.
NOT_CALLERS = {
    "autograph.to_code", "data.Dataset.snapshot", "data.experimental.snapshot", "Variable",
    "random.set_global_generator", "data.Dataset.counter", "data.experimental.Counter",
    "io.gfile.walk", "train.checkpoints_iterator",
}  # fmt: skip


def compiled(loss: Any = "mse", **options: Any) -> Any:
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(0.1), loss, **options)
    return model


def _training(f: Step, strategy: Any = None) -> Any:
    class Own(tf.keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = tf.keras.layers.Dense(1)

        def call(self, x: Any) -> Any:
            return self.dense(x)

        def train_step(self, data: Any) -> Any:
            return {"loss": f(data[0])}

    with (strategy or tf.distribute.get_strategy()).scope():
        model = Own()
        model.compile("sgd")
    return model.fit(ROWS, ROWS[:, :1], batch_size=2, verbose=0)


def _callback(f: Step) -> Any:
    class Own(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            f(epoch)

    return compiled().fit(ROWS, ROWS[:, :1], verbose=0, callbacks=[Own()])


def _metric(f: Step) -> Any:
    class Own(tf.keras.metrics.Metric):
        def update_state(self, y: Any, p: Any, sample_weight: Any = None) -> None:
            f(y)

        def result(self) -> Any:
            return 0.0

    return compiled(metrics=[Own()]).fit(ROWS, ROWS[:, :1], verbose=0)


def _layer(f: Step) -> Any:
    class Own(tf.keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return f(x)

    return tf.keras.Sequential([Own()])(ROWS)


def _batches(f: Step) -> Any:
    data = tf.data.Dataset.from_tensor_slices((ROWS, ROWS[:, :1])).map(lambda x, y: (f(x), y))
    return compiled().fit(data.batch(2), verbose=0)


KERAS: dict[str, Callable[[Step], Any]] = {
    "fit with a train_step": _training,
    "fit with a train_step on replicas": lambda f: _training(f, _strategy()),
    "fit with a loss": lambda f: compiled(lambda y, p: f(y)).fit(ROWS, ROWS[:, :1], verbose=0),
    "evaluate with a loss": lambda f: compiled(lambda y, p: f(y)).evaluate(
        ROWS, ROWS[:, :1], verbose=0
    ),
    "train_on_batch with a loss": lambda f: compiled(lambda y, p: f(y)).train_on_batch(
        ROWS, ROWS[:, :1]
    ),
    "fit with a callback": _callback,
    "fit with a metric": _metric,
    "fit with a dataset": _batches,
    "a layer": _layer,
    "a layer of a function": lambda f: tf.keras.layers.Lambda(f)(ROWS),
    "an optimizer": lambda f: tf.keras.optimizers.SGD(0.1).minimize(
        lambda: f(1), [tf.Variable(1.0)]
    ),
    "ops.map": lambda f: tf.keras.ops.map(f, ROWS),
    "ops.scan": lambda f: tf.keras.ops.scan(lambda c, x: f(x), 0.0, ROWS),
    "ops.associative_scan": lambda f: tf.keras.ops.associative_scan(lambda a, b: f(a), ROWS),
    "ops.cond": lambda f: tf.keras.ops.cond(True, lambda: f(1.0), lambda: 1.0),
    "ops.switch": lambda f: tf.keras.ops.switch(0, [f], 1.0),
    "ops.while_loop": lambda f: tf.keras.ops.while_loop(lambda i: i < 3, f, (0,)),
    "ops.fori_loop": lambda f: tf.keras.ops.fori_loop(0, 3, lambda i, x: f(x), 0.0),
    "ops.vectorized_map": lambda f: tf.keras.ops.vectorized_map(f, ROWS),
    "ops.custom_gradient": lambda f: tf.keras.ops.custom_gradient(f)(tf.constant(1.0)),
    "remat": lambda f: tf.keras.remat(f)(tf.constant(1.0)),
    "a loss": lambda f: tf.keras.losses.MeanSquaredError()(ROWS, tf.keras.ops.map(f, ROWS)),
    "an initializer": lambda f: tf.keras.layers.Dense(1, kernel_initializer=lambda *a, **k: f(1))(
        ROWS
    ),
}
