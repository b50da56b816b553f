"""Every row of the catalogue, as several frameworks write it: the right name comes first."""

from __future__ import annotations

import functools

import catalogue_ddp
import catalogue_jax
import catalogue_samegrad
import pytest
from steps import WEIGHTS, X, Y

from samegrad.testing import CATALOGUE, diagnose
from samegrad.testing.adapters import ddp_step, ddp_workers, samegrad_step, tensorflow_step

OPTIONS = {
    "PLAIN": {"max_examples": 10},
    "MICRO": {"max_examples": 12, "replicas": (1, 2, 3), "micro_batches": (1, 2, 3)},
    "WEIGHTED": {"max_examples": 10, "weights": WEIGHTS},
    "WEIGHTED_MICRO": {"max_examples": 12, "weights": WEIGHTS, "micro_batches": (1, 2)},
    "EMPTY": {"max_examples": 10, "empty_shard": True},
}
TABLES = list(OPTIONS)


def rows(module):
    return [
        pytest.param(table, name, id=name)
        for table in TABLES
        for name in getattr(module, table, ())
    ]


def judged(step, table, **more):
    batch = (X, Y, WEIGHTS) if table.startswith("WEIGHTED") else (X, Y)
    return diagnose(step, batch, **{**OPTIONS[table], **more})


def is_named(found, name) -> None:
    assert found.cause is not None and found.cause.name == name, str(found)


@pytest.fixture(scope="module")
def _processes():
    pytest.importorskip("torch", reason="PyTorch is not installed")
    with ddp_workers():
        yield


@pytest.mark.parametrize(("table", "name"), rows(catalogue_ddp))
@pytest.mark.usefixtures("_processes")
def test_a_mistake_in_distributed_data_parallel_is_named(table, name) -> None:
    step = ddp_step(functools.partial(catalogue_ddp.build, table, name), whole_shard=True)
    is_named(judged(step, table), name)


@pytest.mark.parametrize("table", ["PLAIN", "MICRO"])
@pytest.mark.usefixtures("_processes")
def test_the_right_program_of_distributed_data_parallel_is_right(table) -> None:
    step = ddp_step(functools.partial(catalogue_ddp.build, table, None), whole_shard=True)
    assert judged(step, table).correct


@pytest.mark.parametrize(("table", "name"), rows(catalogue_jax))
def test_a_mistake_in_jax_is_named(table, name) -> None:
    pytest.importorskip("jax", reason="JAX is not installed")
    is_named(judged(catalogue_jax.step_of(getattr(catalogue_jax, table)[name]), table), name)


@pytest.mark.parametrize("table", ["PLAIN", "MICRO"])
def test_the_right_program_of_jax_is_right(table) -> None:
    pytest.importorskip("jax", reason="JAX is not installed")
    assert judged(catalogue_jax.step_of(catalogue_jax.right), table).correct


@pytest.mark.parametrize(("table", "name"), rows(catalogue_samegrad))
def test_a_mistake_in_samegrad_is_named(table, name) -> None:
    program = getattr(catalogue_samegrad, table)[name]
    more = {"micro_batches": (1, 2)} if table == "MICRO" else {}
    is_named(judged(samegrad_step(catalogue_samegrad.build_of(program)), table, **more), name)


@pytest.mark.parametrize("table", ["PLAIN", "MICRO"])
def test_the_right_program_of_samegrad_is_right(table) -> None:
    step = samegrad_step(catalogue_samegrad.build_of(catalogue_samegrad.RIGHT))
    more = {"micro_batches": (1, 2)} if table == "MICRO" else {}
    assert judged(step, table, **more).correct


def tensorflow_program(scale, reduce):
    """A step of TensorFlow: scale(tensorflow, losses, replicas), gradients joined by `reduce`."""

    def build():
        import tensorflow

        variables = [tensorflow.Variable(leaf) for leaf in catalogue_jax.START]

        def step(x, y):
            context = tensorflow.distribute.get_replica_context()
            with tensorflow.GradientTape() as tape:
                output = tensorflow.tanh(x @ variables[0]) @ variables[1]
                own = tensorflow.reduce_sum((output - y) ** 2, axis=1)
                loss = scale(tensorflow, own, context.num_replicas_in_sync)
            for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
                variable.assign_sub(0.01 * context.all_reduce(reduce, gradient))

        return step, variables

    return build


@pytest.mark.parametrize(
    ("name", "scale", "reduce"),
    [
        ("mean per replica, then sum", lambda t, own, _: t.reduce_mean(own), "SUM"),
        ("mean of the replicas' means", lambda t, own, _: t.nn.compute_average_loss(own), "SUM"),
        ("mean per replica, then divided by the replicas twice",
         lambda t, own, count: t.reduce_mean(own) / count, "MEAN"),
    ],
)  # fmt: skip
def test_a_mistake_in_tensorflow_is_named(name, scale, reduce) -> None:
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    step = tensorflow_step(tensorflow_program(scale, reduce), 3)
    is_named(diagnose(step, (X, Y), max_examples=7), name)


def test_every_row_has_two_implementations_beside_numpys() -> None:
    modules = (catalogue_ddp, catalogue_jax, catalogue_samegrad)
    known = [row.id for module in modules for row in rows(module)]
    names = {row.name for row in CATALOGUE} - {"summed and not divided"}  # a convention
    assert not {name for name in names if known.count(name) < 2}
