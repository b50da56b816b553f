"""The modes of the checks of traced programs: of the process, and of a block."""

import contextlib
import warnings

import numpy as np
import pytest
from test_replica_dependence_check import (
    ROWS,
    Program,
    local_mean,
    local_mean_assigned,
    own_mean,
    scaled_by_largest,
)

import samegrad as tf
from samegrad._autodiff.program_check import ProgramCheck
from samegrad.errors import ReplicaDependenceError, ReplicaDependenceWarning


def test_replica_dependence_check_raises_before_anything_runs():
    program = Program(scaled_by_largest)
    before = program.w.numpy()
    rule = r"py:\d+: \[replica dependence\] reduce_max of"
    with (
        tf.config.replica_dependence_check("error"),
        pytest.raises(ReplicaDependenceError, match=rule),
    ):
        program.run()
    np.testing.assert_array_equal(program.w, before)


def test_averaged_mean_of_equal_batches_is_a_warning_at_most():
    with tf.config.replica_dependence_check("error"):
        with pytest.warns(ReplicaDependenceWarning, match="right while all replicas"):
            Program(local_mean_assigned).run(rows=ROWS[:4])
        with pytest.raises(ReplicaDependenceError, match=r"shares of 6 \+ 5"):
            Program(local_mean_assigned).run()


CHECKS = ["loss_normalization_check", "replica_dependence_check"]


@pytest.mark.parametrize("name", CHECKS)
def test_check_mode_ends_with_the_block(name):
    change, read = getattr(tf.config, name), getattr(tf.config, f"get_{name}")
    others = [getattr(tf.config, f"get_{other}") for other in CHECKS if other != name]
    with change("error"):
        with contextlib.suppress(KeyError), change("off"):
            assert read() == "off"
            raise KeyError
        assert read() == "error" and [other() for other in others] == ["warn"]
    assert read() == "warn"


@pytest.mark.parametrize("name", CHECKS)
def test_check_mode_of_the_process_gives_way_to_that_of_the_block(name):
    set_mode, read = getattr(tf.config, f"set_{name}"), getattr(tf.config, f"get_{name}")
    try:
        with getattr(tf.config, name)("off"):
            set_mode("error")
            assert read() == "off"
        assert read() == "error"
    finally:
        set_mode("warn")


@pytest.mark.parametrize("name", CHECKS)
def test_check_rejects_unknown_modes(name):
    for call in (getattr(tf.config, name), getattr(tf.config, f"set_{name}")):
        with pytest.raises(ValueError, match="mode is one of 'warn', 'error', 'off': got 'loud'"):
            call("loud")


def test_check_warns_once_for_each_line_of_each_file():
    check = ProgramCheck("some_check", UserWarning, ValueError)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for line in ("a.py:3", "b.py:3", "a.py:4", "a.py:3", "b.py:3", ""):
            for batch in (8, 6):
                check.report(line, f"[rule] words of {batch} examples", "[rule]")
    assert [(w.filename, w.lineno) for w in caught] == [
        ("a.py", 3), ("b.py", 3), ("a.py", 4), ("<unknown>", 1)
    ]  # fmt: skip


def test_checks_are_off_in_the_block():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with tf.config.replica_dependence_check("off"):
            Program(own_mean).run()
        with tf.config.loss_normalization_check("off"):
            Program(local_mean).run()
