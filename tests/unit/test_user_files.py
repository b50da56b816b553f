"""Files of installed libraries are told from the program's, wherever the libraries are."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

from samegrad._base.user_files import is_user_file

PROGRAM = """
import numpy as np
import samegrad as tf

model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, use_bias=False)])
model.compile(tf.keras.optimizers.SGD(0.1, gradient_accumulation_steps=2), "mse")
x = np.ones((4, 1), np.float32)
model.fit(x, x, batch_size=2, verbose=0)
import keras

print(keras.__file__)
"""


@pytest.mark.parametrize(
    "name",
    [
        "/usr/lib/python3/dist-packages/numpy/core.py",
        "/opt/other/lib/python3.11/site-packages/keras/src/ops/core.py",
        pathlib.__file__,
        "<frozen importlib>",
    ],
)
def test_file_of_a_library_is_no_user_file(name: str) -> None:
    assert not is_user_file(name)


def test_keras_outside_of_site_packages_is_not_rewritten(tmp_path: pathlib.Path) -> None:
    """AutoGraph would read the lines of Keras's file, which are not those of the patched code."""
    spec = importlib.util.find_spec("keras")
    assert spec is not None and spec.origin is not None
    (tmp_path / "keras").symlink_to(pathlib.Path(spec.origin).parent)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith(str(tmp_path))
