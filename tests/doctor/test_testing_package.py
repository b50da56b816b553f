"""samegrad.testing comes without the engine; its plugin costs nothing where it is not used."""

from __future__ import annotations

import argparse
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import samegrad as tf
from samegrad.cli.doctor import add_options
from samegrad.testing import diagnose
from samegrad.testing.adapters import samegrad_step


def modules_after(code: str) -> set[str]:
    show = f"import sys; {code}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_engine_is_not_loaded() -> None:
    loaded = modules_after("import samegrad.testing, samegrad.testing.adapters")
    assert "samegrad._core" not in loaded and "numpy" in loaded
    assert not {"torch", "jax", "tensorflow"} & loaded


def test_the_plugin_loads_nothing_but_pytest() -> None:
    loaded = modules_after("import samegrad._pytest_plugin")
    assert not {"numpy", "samegrad._core", "samegrad.testing"} & loaded


PLUGIN_TEST = """
import numpy as np
import pytest

@pytest.mark.samegrad_replicas(1, 3)
def test_marked(samegrad_replica_count, samegrad_replica_split):
    shares = samegrad_replica_split((np.arange(10),), samegrad_replica_count)
    assert len(shares) == samegrad_replica_count
    assert np.concatenate([share[0] for share in shares]).tolist() == list(range(10))

def test_unmarked(samegrad_replica_count):
    assert samegrad_replica_count in (1, 2, 3, 8)

def test_sizes(samegrad_replica_split):
    assert [len(s) for s in samegrad_replica_split(np.arange(5), [5, 0])] == [5, 0]
    with pytest.raises(ValueError, match="sum to the 5 examples"):
        samegrad_replica_split(np.arange(5), [1, 1])
"""


def run_pytest(folder: Path, *arguments: str) -> str:
    package = os.pathsep.join([str(Path(tf.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": package, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *arguments, str(folder)],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout


PLUGIN = ("-p", "samegrad._pytest_plugin")


def run_with_the_plugin(folder: Path, program: str) -> str:
    (folder / "test_it.py").write_text(program)
    return run_pytest(folder, *PLUGIN)


OWN_NAMES = """
import pytest

@pytest.fixture
def replica_split():
    return 7

@pytest.mark.parametrize("replica_count, replicas", [(5, 1)])
def test_names_of_the_user(replica_count, replicas, replica_split):
    assert (replica_count, replicas, replica_split) == (5, 1, 7)
"""


def test_plugin_leaves_names_of_users_alone(tmp_path: Path) -> None:
    assert "1 passed" in run_with_the_plugin(tmp_path, OWN_NAMES)


@pytest.mark.parametrize(
    ("option", "pattern"),
    [("--markers", r"^@pytest\.mark\.(\w+)"), ("--fixtures", r"^(\w+)(?: \[\w+ scope\])? -- ")],
)
def test_plugin_prefixes_all_its_names(tmp_path: Path, option: str, pattern: str) -> None:
    def names(*arguments: str) -> set[str]:
        return set(re.findall(pattern, run_pytest(tmp_path, option, *arguments), re.MULTILINE))

    added = names(*PLUGIN) - names()
    assert added and all(name.startswith("samegrad_") for name in added)


def test_marks_and_fixtures_of_the_plugin(tmp_path: Path) -> None:
    assert "7 passed" in run_with_the_plugin(tmp_path, PLUGIN_TEST)


_DRAWS = np.random.default_rng(9)
START = (_DRAWS.normal(size=(6, 4)), _DRAWS.normal(size=(4, 1)))


def build(scale):
    """A small model whose loss is scaled by a function of the per-example losses."""

    def make():
        w = tf.Variable(START[0])
        v = tf.Variable(START[1])
        optimizer = tf.keras.optimizers.SGD(np.float64(0.01))

        def step(x, y):
            with tf.GradientTape() as tape:
                prediction = tf.matmul(tf.tanh(tf.matmul(x, w)), v)
                losses = tf.reduce_sum(tf.square(prediction - y), axis=1)
                loss = scale(losses)
            gradients = tape.gradient(loss, [w, v])
            optimizer.apply_gradients(zip(gradients, [w, v], strict=True))
            return loss

        return step, [w, v]

    return make


RNG = np.random.default_rng(3)
BATCH = (RNG.normal(size=(12, 6)), RNG.normal(size=(12, 1)))


@pytest.mark.parametrize(
    ("scale", "name"),
    [
        (tf.nn.compute_average_loss, None),
        (lambda losses: tf.reduce_mean(losses), "mean per replica, then sum"),
        (lambda losses: tf.reduce_sum(losses) / 64.0, None),
    ],
)
def test_a_strategys_step_is_judged(scale, name) -> None:
    found = diagnose(samegrad_step(build(scale)), BATCH, max_examples=9)
    assert (found.cause and found.cause.name) == name, str(found)
    assert (found.reported_loss_issue is None) == (name is None)


def test_jaxs_mean_over_devices_is_wrong_for_uneven_shares() -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    from samegrad.testing.adapters import jax_step

    def mean_loss(w, batch):
        return ((jax.numpy.tanh(batch[0] @ w[0]) @ w[1] - batch[1]) ** 2).mean()

    gradient, start = jax.jit(jax.grad(mean_loss)), [jax.numpy.asarray(w) for w in START]

    def pmean(parts):
        return jax.tree_util.tree_map(lambda *g: sum(g) / len(g), *parts)

    found = diagnose(jax_step(gradient, start, pmean), BATCH, max_examples=8)
    assert found.cause.name == "mean of the replicas' means"

    def psum(parts):
        return jax.tree_util.tree_map(lambda *g: sum(g), *parts)

    found = diagnose(jax_step(gradient, start, psum), BATCH, max_examples=8)
    assert found.cause.name == "mean per replica, then sum"


def test_tensorflows_local_average_is_wrong_for_uneven_shares() -> None:
    tensorflow = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    from samegrad.testing.adapters import tensorflow_step

    def build():
        variables = [tensorflow.Variable(w) for w in START]

        def step(x, y):
            with tensorflow.GradientTape() as tape:
                prediction = tensorflow.tanh(x @ variables[0]) @ variables[1]
                losses = tensorflow.reduce_sum((prediction - y) ** 2, axis=1)
                loss = tensorflow.nn.compute_average_loss(losses)
            gradients = tape.gradient(loss, variables)
            context = tensorflow.distribute.get_replica_context()
            for variable, gradient in zip(variables, gradients, strict=True):
                variable.assign_sub(0.01 * context.all_reduce("SUM", gradient))
            return loss

        return step, variables

    found = diagnose(tensorflow_step(build, 3), BATCH, max_examples=8)
    assert found.cause.name == "mean of the replicas' means", str(found)


def test_pytorchs_mean_over_replicas_is_wrong_for_uneven_shares() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from samegrad.testing.adapters import torch_step

    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1)
    ).double()

    def mean_loss(network, batch):
        return torch.nn.functional.mse_loss(network(batch[0]), batch[1])

    found = diagnose(torch_step(model, mean_loss), BATCH)
    assert found.cause.name == "mean of the replicas' means"
    assert found.reported_loss_issue is None  # a loss for backward is not a report
    found = diagnose(torch_step(model, mean_loss, reported=True), BATCH)
    assert found.reported_loss_issue and "mean of the replicas' means" in found.reported_loss_issue
    found = diagnose(torch_step(model, mean_loss, reduce="sum"), BATCH)
    assert found.cause.name == "mean per replica, then sum"


def test_the_command_does_without_the_engine(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("batch = ()")
    code = f"from samegrad.cli import main; main(['doctor', {str(tmp_path / 'a.py')!r} + '::b'])"
    assert "samegrad._core" not in modules_after(code)


def test_modules_of_the_package_are_there_without_an_import() -> None:
    show = "import samegrad as tf; print(tf.testing.adapters.torch_step.__name__)"
    done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "torch_step"


def test_the_command_has_every_option_of_the_function() -> None:
    parser = argparse.ArgumentParser()
    add_options(parser)
    options = set(vars(parser.parse_args(["a.py::step"])))
    assert set(inspect.signature(diagnose).parameters) <= options
