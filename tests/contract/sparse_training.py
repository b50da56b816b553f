"""Training of a table of which each step names a few rows, with sparse plans and dense ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad._function import trace as _trace
from samegrad.testing import assert_same_bits

ROWS, WIDTH, EXAMPLES = 900, 17, 48
SPARSE = "sparse, row by row"
ALL_ROWS = "all rows, some at a time, of a sparse gradient"
REDUCED = "reduced, row by row"


@pytest.fixture(autouse=True)
def settings_as_before() -> Iterator[None]:
    """What a test changes, ends with it."""
    yield
    tf.config.run_functions_eagerly(False)
    tf.config.threading.set_intra_op_parallelism_threads(0)
    _trace.OPTIONS.sparse_rows = True


def numbers(rows: int = ROWS, width: int = WIDTH, dtype: str = "float32") -> np.ndarray:
    """A table with everything in it that addition may change."""
    table = np.random.default_rng(0).normal(size=(rows, width)).astype(dtype)
    table[::7, 0] = -0.0
    table[3::50] = np.inf
    table[4::50] = -np.inf
    table[5::50, 1:] = np.nan
    table[6::50] = np.finfo(dtype).smallest_subnormal
    return table


def many_times(examples: int = EXAMPLES, rows: int = ROWS) -> np.ndarray:
    """Rows, some of them often, within a replica's share and over the shares."""
    rng = np.random.default_rng(1)
    often = rng.integers(0, rows, 5)
    return np.where(
        rng.random(examples) < 0.5, rng.choice(often, examples), rng.integers(0, rows, examples)
    )


Loss = Callable[[Any, Any], Any]


def squares(table: Any, ids: Any) -> Any:
    """Per example: a loss whose gradients differ by row and example."""
    rows = tf.gather(table, ids)
    finite = tf.where(tf.abs(rows) < 1e30, rows, tf.zeros_like(rows))
    cubes = finite * finite * (0.3 + tf.cast(ids, rows.dtype)[..., None] / 1000.0)
    return tf.reduce_sum(cubes, axis=list(range(1, len(cubes.shape))))


def train(
    replicas: int = 1,
    ids: np.ndarray | None = None,
    make: Callable[[], Any] = lambda: tf.keras.optimizers.SGD(0.1),
    loss: Loss = squares,
    table: np.ndarray | None = None,
    batch: int | None = None,
    steps: int = 3,
) -> tuple[list[np.ndarray], str]:
    """The table, the slots and the losses afterwards, and the plan of a step."""
    ids = many_times() if ids is None else ids
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        variable = tf.Variable(numbers() if table is None else table)
        optimizer = make()

    def step(named: Any) -> Any:
        with tf.GradientTape() as tape:
            total = tf.nn.compute_average_loss(loss(variable, named))
        optimizer.apply_gradients([(tape.gradient(total, variable), variable)])
        return total

    @tf.function
    def train_step(named: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(step, args=(named,)), axis=None)

    data = tf.data.Dataset.from_tensor_slices(ids).batch(batch or max(len(ids), 1)).repeat(steps)
    losses = []
    for named in strategy.experimental_distribute_dataset(data):
        losses.append(np.asarray(train_step(named)))
    plan = "" if tf.config.functions_run_eagerly() else str(train_step.explain(named))
    return [v.numpy() for v in [variable, *optimizer.variables]] + losses, plan


def assert_sparse_as_dense(*titles: str, **arguments: Any) -> list[np.ndarray]:
    """Has such steps, and the bits of a plan without; what they give."""
    titles = titles or (SPARSE,)
    found, plan = train(**arguments)
    assert all(title in plan for title in titles), plan
    _trace.OPTIONS.sparse_rows = False
    expected, plan = train(**arguments)
    assert not any(title in plan for title in (SPARSE, ALL_ROWS, REDUCED))
    assert_same_bits(found, expected)
    _trace.OPTIONS.sparse_rows = True
    return found
