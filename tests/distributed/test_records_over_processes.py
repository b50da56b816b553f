"""The record of a job is that of one process."""

import pytest
from launch import every_mpi, run, run_alone

import samegrad as tf


@pytest.mark.parametrize("mpi", every_mpi())
@pytest.mark.parametrize(("ranks", "total"), [(2, 2), (2, 3), (3, 3)])
def test_record_over_processes_is_that_of_one(mpi, ranks, total, tmp_path):
    run_alone("recorded.py", tmp_path / "alone", 1)
    ended = run(mpi, ranks, "recorded.py", tmp_path / "job", total)
    assert ended.code == 0, ended.text
    found = tf.diff_runs(tmp_path / "alone", tmp_path / "job")
    assert found.same and found.compared == 9 and not found.notes, str(found)


@pytest.mark.parametrize("mpi", every_mpi())
def test_record_over_processes_has_the_operations_of_a_step(mpi, tmp_path):
    run_alone("recorded.py", tmp_path / "alone", 1, 2)
    command = ["-m", "samegrad", "record", "--detail", 2, "-o", tmp_path / "job"]
    ended = run(mpi, 2, "recorded.py", tmp_path / "inner", 2, 2)
    assert ended.code == 0, ended.text
    assert tf.diff_runs(tmp_path / "alone", tmp_path / "inner").same
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    ended = run(mpi, 2, *command, program)
    assert ended.code == 0, ended.text
    assert sorted(ended.out.split()) == ["rank0", "rank1"]  # as mpiexec python program.py prints
    assert tf.diff_runs(tmp_path / "job", tmp_path / "job").compared == 1


@pytest.mark.parametrize("mpi", every_mpi())
def test_record_that_exists_ends_all_processes(mpi, tmp_path):
    file, program = tmp_path / "job", tmp_path / "program.py"
    file.write_text("mine")
    program.write_text(PROGRAM)
    ended = run(mpi, 2, "-m", "samegrad", "record", "-o", file, program, limit=60)
    assert ended.code != 0 and "[record_run] a record must be a new file" in ended.text
    assert file.read_text() == "mine"


PROGRAM = """
import samegrad as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy(total_replicas=2)
with strategy.scope():
    w = tf.Variable([1.0, 2.0])
step = tf.function(lambda: strategy.run(lambda: w.assign_add([1.0, 1.0])))
for _ in range(1):
    step()
import sys
sys.stdout.write(f"rank{tf.distribute.mpi.rank()}\\n")
"""
