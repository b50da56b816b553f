"""Programs for TPUs, and the older names of strategies' methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import samegrad as tf

RESOLVER = tf.distribute.cluster_resolver.TPUClusterResolver
FALLBACKS = {
    "resolver in try": """
try:
    tpu = tf.distribute.cluster_resolver.TPUClusterResolver()
    tf.config.experimental_connect_to_cluster(tpu)
    tf.tpu.experimental.initialize_tpu_system(tpu)
    strategy = tf.distribute.TPUStrategy(tpu)
except ValueError:
    strategy = tf.distribute.MirroredStrategy()
""",
    "resolver first": """
try:
    tpu = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="")
except ValueError:
    tpu = None
if tpu:
    tf.config.experimental_connect_to_cluster(tpu)
    tf.tpu.experimental.initialize_tpu_system(tpu)
    strategy = tf.distribute.experimental.TPUStrategy(tpu)
else:
    strategy = tf.distribute.get_strategy()
""",
    "one call": """
try:
    tpu = tf.distribute.cluster_resolver.TPUClusterResolver.connect()
    strategy = tf.distribute.experimental.TPUStrategy(tpu)
except ValueError:
    strategy = tf.distribute.MirroredStrategy()
""",
    "a machine with a TPU": """
try:
    tpu = tf.distribute.cluster_resolver.TPUClusterResolver.connect(tpu="local")
    strategy = tf.distribute.TPUStrategy(tpu)
except tf.errors.NotFoundError:
    strategy = tf.distribute.MirroredStrategy()
""",
    "system first": """
try:
    tf.tpu.experimental.initialize_tpu_system()
    strategy = tf.distribute.TPUStrategy()
except ValueError:
    strategy = tf.distribute.MirroredStrategy()
""",
    "kind of the strategy": """
strategy = tf.distribute.MirroredStrategy()
if isinstance(strategy, (tf.distribute.TPUStrategy, tf.distribute.experimental.TPUStrategy)):
    strategy = None
""",
    "devices": """
if tf.config.list_logical_devices("TPU"):
    strategy = tf.distribute.TPUStrategy()
else:
    strategy = tf.distribute.MirroredStrategy()
""",
}


@pytest.mark.parametrize("name", FALLBACKS)
def test_program_for_tpus_falls_back(name: str) -> None:
    names: dict[str, Any] = {"tf": tf}
    exec(FALLBACKS[name], names)
    strategy = names["strategy"]
    with strategy.scope():
        v = tf.Variable(1.0)
    total = strategy.reduce("SUM", strategy.run(lambda: tf.multiply(v, 2.0)), axis=None)
    assert float(total) == 2.0


NEEDS_TPU: dict[str, Callable[..., Any]] = {
    "TPUClusterResolver": RESOLVER,
    "TPUClusterResolver.connect": RESOLVER.connect,
    "TPUStrategy": tf.distribute.TPUStrategy,
    "experimental.TPUStrategy": tf.distribute.experimental.TPUStrategy,
    "initialize_tpu_system": tf.tpu.experimental.initialize_tpu_system,
    "shutdown_tpu_system": tf.tpu.experimental.shutdown_tpu_system,
}


@pytest.mark.parametrize("name", NEEDS_TPU)
def test_call_that_needs_tpu_names_the_strategy_of_this_machine(name: str) -> None:
    op_name = name.removeprefix("experimental.")
    remedy = r"use samegrad\.distribute\.MirroredStrategy\(replicas=8\)\.$"
    words = rf"^\[{op_name}\] Please provide a TPU Name to connect to: got None .*{remedy}"
    with pytest.raises(ValueError, match=words):
        NEEDS_TPU[name]()
    words = rf"^\[{op_name}\] TPUs not found in the cluster: got 'local'; {remedy}"
    with pytest.raises(tf.errors.NotFoundError, match=words):
        NEEDS_TPU[name]("local")


def test_connection_to_cluster_is_that_of_the_mpi_job() -> None:
    resolver = tf.distribute.cluster_resolver.MPIClusterResolver(0, ("a", "b"))
    tf.config.experimental_connect_to_cluster(resolver)
    spec = tf.distribute.cluster_resolver.ClusterSpec({"worker": ["a:1", "b:1"]})
    for other in (spec, 3):
        with pytest.raises(ValueError, match=r"start the processes with mpiexec"):
            tf.config.experimental_connect_to_cluster(other)


def test_names_of_tpus_that_are_missing_name_the_strategy_of_this_machine() -> None:
    for module, name in ((tf.tpu, "XLAOptions"), (tf.tpu.experimental, "embedding")):
        with pytest.raises(AttributeError, match=r"MirroredStrategy\(replicas=8\)"):
            getattr(module, name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("experimental_run_v2", "it is Strategy.run"),
        ("experimental_make_numpy_dataset", "make a data.Dataset with from_tensor_slices"),
        ("make_dataset_iterator", "write iter(strategy.experimental_distribute_dataset(dataset))"),
        ("make_input_fn_iterator",
         "write iter(strategy.distribute_datasets_from_function(dataset_fn))"),
        ("unwrap", "it is Strategy.experimental_local_results"),
        ("colocate_vars_with", "replicas share a variable, and nothing is placed: leave it out"),
        ("update_config_proto", "there are no sessions to configure: see config.threading"),
    ],
)  # fmt: skip
def test_older_method_of_strategy_names_its_replacement(name: str, words: str) -> None:
    for strategy in (tf.distribute.MirroredStrategy(replicas=2), tf.distribute.get_strategy()):
        assert not hasattr(strategy, name)
        with pytest.raises(AttributeError) as raised:
            getattr(strategy, name)
        kind = type(strategy).__name__
        assert str(raised.value) == f"{kind!r} object has no attribute {name!r}: {words}."


def test_misspelled_method_of_strategy_is_an_attribute_error_with_its_name() -> None:
    with pytest.raises(AttributeError, match="^'MirroredStrategy' object has no attribute") as e:
        tf.distribute.MirroredStrategy().rum  # type: ignore[attr-defined]  # noqa: B018
    assert e.value.name == "rum"


def test_experimental_run_of_a_batch_names_run() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with pytest.raises(TypeError, match=r"or call strategy\.run\(fn, args=\.\.\.\)\.$"):
        strategy.experimental_run(lambda x: x, (1,))


def test_reduce_without_axis_reduces_over_replicas_alone() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    rows = tf.data.Dataset.from_tensors([[0.0, 0.0], [1.0, 2.0]])
    (batch,) = strategy.experimental_distribute_dataset(rows)
    values = strategy.run(lambda x: tf.reduce_sum(x, axis=0), args=(batch,))
    assert strategy.reduce("MEAN", values, axis=None).numpy().tolist() == [0.5, 1.0]
    assert strategy.reduce("SUM", values, None).numpy().tolist() == [1.0, 2.0]
