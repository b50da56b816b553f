"""What launchers' variables say, and that all who ask are told the same."""

import os
import subprocess
import sys
import types

import pytest

from samegrad import _pytest_plugin
from samegrad._base.launchers import Launch, launched, may_be_launched
from samegrad.testing import _joined

NAMES = ("OMPI_COMM_WORLD", "PMI", "SLURM", "PMIX_RANK")


@pytest.fixture
def say(monkeypatch):
    for name in list(os.environ):
        if name.startswith(NAMES):
            monkeypatch.delenv(name)

    def set_all(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return set_all


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, Launch()),
        ({"OMPI_COMM_WORLD_SIZE": ""}, Launch()),
        ({"PMI_SIZE": "two"}, Launch()),
        ({"PMI_SIZE": "3", "PMI_RANK": "2"}, Launch(3, 2, "mpirun")),
        ({"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1"}, Launch(2, 1, "srun")),
        # srun has started two that each start one more by mpirun.
        (
            {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1", "OMPI_COMM_WORLD_SIZE": "1",
             "OMPI_COMM_WORLD_RANK": "0"},
            Launch(1, 0, "Open MPI's mpirun"),
        ),
    ],
)  # fmt: skip
def test_the_innermost_launcher_is_asked(say, monkeypatch, variables, expected):
    say(**variables)
    assert launched() == expected
    joins = []
    engine = types.SimpleNamespace(join=lambda: joins.append(1))
    monkeypatch.setattr(_joined.importlib, "import_module", lambda name: engine)
    _joined.join()
    assert len(joins) == (expected.size > 1)
    manager = types.SimpleNamespace(
        register=lambda plugin, name: joins.append(2), get_plugin=lambda name: None
    )
    config = types.SimpleNamespace(
        addinivalue_line=lambda *words: None, option=None, pluginmanager=manager
    )
    _pytest_plugin.pytest_configure(config)
    assert (2 in joins) == (expected.size > 1)


def test_signs_without_a_number(say):
    assert not may_be_launched()
    say(PMIX_RANK="0")
    assert may_be_launched() and launched() == Launch()


def test_a_job_begins_mpi_that_samegrad_info_has_imported():
    program = (
        "import samegrad as tf\n"
        "from samegrad.cli import info\n"
        "info.run(json=False)\n"
        "print(tf.distribute.MultiWorkerMirroredStrategy(replicas=2).num_replicas_in_sync)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stdout.endswith("\n2\n"), done.stderr
