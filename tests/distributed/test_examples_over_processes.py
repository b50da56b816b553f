"""Programs in examples/ over processes: the weights of one process, also after a kill."""

import time
from pathlib import Path

import pytest
from launch import Running, every_mpi, run

import samegrad as tf

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
pytestmark = pytest.mark.parametrize("mpi", every_mpi())


def test_bert_killed_on_two_processes_continues_on_three(mpi, tmp_path):
    program, bert = EXAMPLES / "bert_classification.py", tmp_path / "bert"
    assert run(mpi, 1, EXAMPLES / "bert_pretraining.py", "--folder", bert, "--steps", 5).code == 0
    options = ["--bert", bert, "--replicas", 4, "--steps", 12, "--save-every", 4]
    options += ["--batch-size", 16, "--length", 10, "--folder"]
    whole = run(mpi, 1, program, *options, tmp_path / "whole")
    assert whole.code == 0, whole.text
    job = Running(mpi, 2, program, *options, tmp_path / "killed")
    while tf.train.latest_checkpoint(tmp_path / "killed") is None:
        assert job.process.poll() is None, job.end().text
        time.sleep(0.01)
    job.stop()
    job.process.communicate()
    resumed = run(mpi, 3, program, *options, tmp_path / "killed")
    assert resumed.code == 0, resumed.text
    first, *others = resumed.out.splitlines()
    assert first.startswith("continue after ")
    assert others == whole.out.splitlines()[-len(others) :] and len(others) <= 9
