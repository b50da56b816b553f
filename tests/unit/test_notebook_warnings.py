"""Warnings of a notebook name its cell and line, as IPython's tracebacks do."""

import subprocess
import sys

import pytest

import samegrad._base.location as location
from samegrad._base.user_files import shown_line

SHELL = """
import sys
from IPython.core.interactiveshell import InteractiveShell
if {kernel}:
    from ipykernel.compiler import XCachingCompiler
    InteractiveShell.compiler_class = XCachingCompiler
shell = InteractiveShell.instance()
for cell in {cells!r}:
    shell.run_cell(cell, store_history=True)
"""
START = """import samegrad as tf
strategy = tf.distribute.MirroredStrategy(replicas=2)
with strategy.scope():
    w = tf.Variable([[1.0], [1.0]])
    mean = tf.VariableAggregation.MEAN
    center = tf.Variable([0.0, 0.0], trainable=False, aggregation=mean)
    optimizer = tf.keras.optimizers.SGD(0.1)
data = tf.data.Dataset.from_tensor_slices(tf.ones((8, 2))).batch(8)
(batch,) = strategy.experimental_distribute_dataset(data)
"""
MEAN = """def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
    optimizer.apply_gradients([(tape.gradient(loss, w), w)])
strategy.run(step, (batch,))"""
CENTER = """def step(x):
    center.assign(tf.math.reduce_max(x, axis=0) + tf.math.reduce_variance(x, axis=0))
strategy.run(step, (batch,))"""
# The third cell, and the lines of which one is the cause.
CELLS = {
    "LossNormalizationWarning": (MEAN, (3, 4)),
    "ReplicaDependenceWarning": (CENTER, (2,)),
    "UserWarning": ("x = 1\ntf.summary.trace_on(graph=True)", (2,)),
}


def printed(*cells, kernel=False):
    done = subprocess.run(
        [sys.executable, "-c", SHELL.format(cells=cells, kernel=kernel)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stderr + done.stdout


@pytest.mark.parametrize("kernel", [False, True], ids=["ipython", "kernel"])
@pytest.mark.parametrize("name", CELLS)
def test_a_warning_names_the_cell_and_the_line(name, kernel):
    cell, lines = CELLS[name]
    text = printed("1", START, cell, kernel=kernel)
    assert any(f"Cell In[3], line {line}: {name}" in text for line in lines), text
    assert "ipython-input" not in text


def test_an_error_of_the_check_names_the_cell():
    cell, _ = CELLS["LossNormalizationWarning"]
    text = printed("1", START, f'tf.config.set_loss_normalization_check("error")\n{cell}')
    assert ": Cell In[3], line " in text and "LossNormalizationError" in text


def test_warnings_of_scripts_are_formatted_as_ever():
    assert shown_line("train.py", 3) == "train.py:3"
    text = location._of_cell("words", UserWarning, "train.py", 3, "")
    assert text.startswith("train.py:3: UserWarning: words")


WRAPPED = """import warnings
formatted = warnings.formatwarning
warnings.formatwarning = lambda *args: "own: " + formatted(*args)
tf.summary.trace_on(graph=True)"""


def test_a_formatter_set_by_user_code_is_kept():
    cells = ["1", "import samegrad as tf\ntf.summary.trace_on(graph=True)", WRAPPED]
    text = printed(*cells)
    assert "Cell In[2], line 2: UserWarning" in text
    assert "own: Cell In[3], line 4: UserWarning" in text
