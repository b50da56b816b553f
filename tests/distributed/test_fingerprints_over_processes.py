"""The fingerprint of a training is that of one process, and so is its checkpoint's."""

import pytest
from launch import every_mpi, run, run_alone


def lines(ended, begin):
    return {line for line in ended.out.splitlines() if line.startswith(begin)}


@pytest.mark.parametrize("mpi", every_mpi())
@pytest.mark.parametrize(("ranks", "total"), [(2, 2), (2, 3), (3, 3)])
def test_fingerprint_over_processes_is_that_of_one(mpi, ranks, total, tmp_path):
    alone = run_alone("fingerprints.py", tmp_path / "alone", 1)
    ended = run(mpi, ranks, "fingerprints.py", tmp_path / "job", total)
    assert ended.code == 0, ended.text
    assert lines(ended, "bits ") == lines(alone, "bits "), ended.text


@pytest.mark.parametrize("mpi", every_mpi())
def test_check_in_a_job_runs_its_processes_and_skips_others(mpi, tmp_path):
    ended = run(mpi, 2, "fingerprints.py", tmp_path, 2)
    assert ended.code == 0, ended.text
    (line,) = lines(ended, "divisions ")
    done = ["1x1", "2x1", "3x1", "2x2", "3x2"]
    assert line == f"divisions {'; '.join(f'{division} identical ' for division in done)}"
    ended = run(mpi, 3, "fingerprints.py", tmp_path / "three", 3)
    assert ended.code == 0, ended.text
    (line,) = lines(ended, "divisions ")
    assert line.count("identical") == 3
    assert line.count("x2 skipped this job has 3 processes") == 2
