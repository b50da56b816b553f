"""Small programs give the same values as plain Python and as steps, for several inputs."""

import numpy as np
import pytest
from autograph_programs import PROGRAMS

import samegrad as tf


def numbers(structure):
    """The leaves as NumPy's numbers."""
    if isinstance(structure, dict):
        return [number for key in structure for number in numbers(structure[key])]
    if isinstance(structure, list | tuple):
        return [number for part in structure for number in numbers(part)]
    return [np.asarray(structure).astype("float64")]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_step_gives_what_python_gives(program):
    step = tf.function(program)
    for x in (-3.0, 0.0, 1.0, 4.0):
        for n in (0, 1, 3, 5):
            expected = program(tf.constant(x), tf.constant(n))
            given = step(tf.constant(x), tf.constant(n))
            np.testing.assert_allclose(
                np.concatenate([v.reshape(-1) for v in numbers(given)]),
                np.concatenate([v.reshape(-1) for v in numbers(expected)]),
                rtol=1e-6,
                err_msg=f"x={x} n={n}",
            )


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_python_numbers_keep_pythons_control_flow(program):
    """Rewritten code does with numbers what the original does."""
    plain = program(tf.constant(2.0), 3)
    rewritten = tf.autograph.to_graph(program)(tf.constant(2.0), 3)
    np.testing.assert_equal(
        [v.tolist() for v in numbers(rewritten)], [v.tolist() for v in numbers(plain)]
    )
