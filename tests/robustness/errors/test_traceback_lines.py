"""How many lines one wrong line of a training step shows: a script, a notebook, pytest."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

MOST = 15
PROGRAM = """\
import numpy as np
import samegrad as tf

strategy = tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
    optimizer = tf.keras.optimizers.SGD(0.1)
losses = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")


def replica_step(x, y):
    with tf.GradientTape() as tape:
        per_example = losses(y, model(x, training=True))
        loss = tf.nn.compute_average_loss(per_example, global_batch_size="8")
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


@tf.function
def train_step(x, y):
    per_replica = strategy.run(replica_step, args=(x, y))
    return strategy.reduce("SUM", per_replica, axis=None)


def batches():
    x, y = np.zeros((8, 3), np.float32), np.zeros(8, np.int32)
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
    return strategy.experimental_distribute_dataset(data)


def user_map(n):
    return tf.reshape(n, "x")
"""
STEP = "for x, y in batches():\n    train_step(x, y)\n"
FIT = """\
class Model(tf.keras.Model):
    def call(self, x):
        return x

    def train_step(self, data):
        return {"loss": tf.nn.compute_average_loss(data[0][:, 0], global_batch_size="8")}


own = Model()
own.compile("sgd")
own.fit(np.zeros((8, 3)), np.zeros(8), verbose=0)
"""
MAP = "for n in tf.data.Dataset.range(3).map(user_map).prefetch(2):\n    print(n)\n"
CASES = {"step": STEP, "fit": FIT, "map": MAP}
CELLS = """\
import re, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor")
shell.run_cell(open(sys.argv[1]).read(), store_history=True)
shell.run_cell(open(sys.argv[2]).read(), store_history=True)
"""
INNERMOST = {"step": "replica_step", "fit": "train_step", "map": "user_map"}


def run(*command: str, folder: Path, status: int | None = 1) -> str:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(folder)])}
    environment |= {"IPYTHONDIR": str(folder / "ipython"), "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip
    assert status is None or done.returncode == status, done.stderr
    return done.stdout + done.stderr


def check(text: str, case: str) -> None:
    lines = text.rstrip("\n").splitlines()
    assert len(lines) <= MOST, text
    assert INNERMOST[case] in text and "raceback (most recent call last)" in text
    own = [line for line in lines if re.search(r"[/\\](samegrad|keras)[/\\]", line)]
    assert not own, text
    assert "direct cause" not in text and "During handling" not in text


@pytest.mark.parametrize("case", CASES)
def test_script_shows_few_lines(case: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM + CASES[case])
    check(run("program.py", folder=tmp_path), case)


@pytest.mark.parametrize("case", CASES)
def test_notebook_shows_few_lines(case: str, tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text(PROGRAM)
    (tmp_path / "second.py").write_text(CASES[case])
    (tmp_path / "cells.py").write_text(CELLS)
    text = run("cells.py", "first.py", "second.py", folder=tmp_path, status=0)
    check(re.sub(r"\x1b\[[\d;]*m", "", text), case)
    assert "Cell In[2]" in text


@pytest.mark.parametrize("case", CASES)
def test_pytest_shows_few_lines(case: str, tmp_path: Path) -> None:
    body = "".join(f"    {line}\n" if line else "\n" for line in CASES[case].splitlines())
    (tmp_path / "test_program.py").write_text(f"{PROGRAM}\n\ndef test_training():\n{body}")
    text = run("-m", "pytest", "-q", "-p", "no:cacheprovider", folder=tmp_path)
    report = text.partition(" test_training ")[2].partition("\n")[2].partition("\n====")[0]
    check("Traceback (most recent call last)\n" + report, case)


@pytest.mark.parametrize("mode", ["Plain", "Verbose"])
def test_notebook_in_another_mode_is_left_to_ipython(mode: str, tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text(f"%xmode {mode}\n{PROGRAM}")
    (tmp_path / "second.py").write_text(STEP)
    (tmp_path / "cells.py").write_text(CELLS)
    text = run("cells.py", "first.py", "second.py", folder=tmp_path, status=0)
    assert "replica_step" in text and "boundary.py" not in text
    assert (len(text.splitlines()) > 30) == (mode == "Verbose")


@pytest.mark.parametrize("case", CASES)
def test_kernel_of_a_notebook_shows_few_lines(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbformat = pytest.importorskip("nbformat", reason="installed with nbclient")
    nbclient = pytest.importorskip("nbclient", reason="runs the cells")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    cells = [nbformat.v4.new_code_cell(text) for text in (PROGRAM, CASES[case])]
    book = nbformat.v4.new_notebook(cells=cells)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(
        book, timeout=300, kernel_name="python3", allow_errors=True, resources=resources
    ).execute()
    (error,) = [o for o in book.cells[1].outputs if o.output_type == "error"]
    text = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(error.traceback))
    check(text, case)
    assert "Cell In[2], line" in text
