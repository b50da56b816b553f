"""What is loaded when: the root at once, the engine with the first name, each package by itself."""

import subprocess
import sys

import pytest

EXTRAS = {"keras", "optree", "matplotlib", "ml_dtypes", "pooch", "tqdm"}


def printed(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_root_loads_nothing():
    loaded = set(printed("import sys, samegrad; print(*sys.modules)"))
    assert not {"numpy", "samegrad._api", "samegrad._core"} & loaded and not EXTRAS & loaded


def test_the_public_names_load_no_extras():
    loaded = set(printed("import sys, samegrad as tf; tf.Tensor; print(*sys.modules)"))
    assert {"numpy", "samegrad._api", "samegrad._core"} <= loaded and not EXTRAS & loaded
    assert not [name for name in loaded if name.startswith("samegrad._keras")]


@pytest.mark.parametrize(
    "program",
    [
        "from samegrad import random; print(random.normal((2,)).shape)",
        "from samegrad import nn; print(nn.compute_average_loss([1.0, 3.0]).numpy())",
        "from samegrad import nn; print(nn.scale_regularization_loss([1.0, 1.0]).numpy())",
        "from samegrad import distribute; print(distribute.get_strategy().num_replicas_in_sync)",
        "from samegrad.distribute import get_replica_context as c; print(c().all_reduce('sum', 2))",
        "from samegrad import autograph; print(autograph.to_graph(lambda x: 1 if x else 2)(0))",
        "from samegrad import data; print(*data.Dataset.range(4).map(lambda x: x + 1).batch(2))",
        "from samegrad import linalg; print(linalg.norm([3.0, 4.0]).numpy())",
        "from samegrad import math; print(math.unsorted_segment_mean([1.0], [0], 1).numpy())",
        "from samegrad import image; print(image.resize([[[1.0]]], (2, 2)).shape)",
        "from samegrad import convert; print(convert.to_torch)",
        "from samegrad import config; print(config.list_logical_devices())",
        "from samegrad import train; print(train.Checkpoint)",
        "from samegrad import nest; print(nest.flatten([1]))",
        "from samegrad import debugging; debugging.disable_check_numerics(); print(1)",
        "from samegrad import testing; print(testing.CATALOGUE[0].name)",
    ],
)  # fmt: skip
def test_a_package_works_by_itself(program):
    assert printed(program)


@pytest.mark.parametrize("value", ["'a'", "[[1], [2, 3]]", "object()"])
def test_wrong_arguments_are_named_with_and_without_the_engine(value):
    """What is a tensor says the engine where it is loaded, and NumPy elsewhere."""
    rule = "from samegrad._surface.argument_rules import _is_tensor as rule"
    asked = f"print(rule({value}), rule([1.0]), 'samegrad._core' in sys.modules)"
    engine = "import samegrad._tensor.tensor"
    assert printed(f"import sys; {rule}; {asked}") == ["False", "True", "False"]
    assert printed(f"import sys; {engine}; {rule}; {asked}") == ["False", "True", "True"]
