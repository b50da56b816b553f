"""Values, variables, datasets, `fit` and checkpoints over several processes."""

import os

import pytest
from launch import PROGRAMS, every_mpi, run, run_alone

pytestmark = pytest.mark.parametrize("mpi", every_mpi())


def said(ended):
    assert ended.code == 0, ended.text
    return sorted(ended.out.splitlines())


@pytest.mark.parametrize("ranks", [2, 3])
def test_values_variables_and_rows_are_those_of_one_process(mpi, ranks):
    alone = said(run_alone("features.py", 4))
    assert said(run(mpi, ranks, "features.py", 4)) == sorted(alone * ranks)


def test_each_process_makes_data_for_its_own_replicas(mpi):
    lines = set(said(run(mpi, 2, "own_data.py")))
    assert lines == {
        "rows: [0, 1, 2, 3, 4, 5, 6, 7]",  # of 0 2 4 6 and 1 3 5 7
        "rows: [8, 9, 10, 11, 12]",
        "average: 0.5",
        "sum: [1.0, 1.0, 1.0]",
        "objects: [0, 10]",
        "from rank 1: 1",
        "joined: [0, 1, 1]",
        "broadcast: [1.0]",
    }


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_share_the_cores_that_they_may_use(mpi, ranks):
    """Threads of two ranks on one core would take turns in the middle of each other's loops."""
    cores = len(os.sched_getaffinity(0))
    each = max(1, cores // ranks)
    assert said(run(mpi, ranks, "threads.py", SAMEGRAD_NUM_THREADS=None)) == [str(each)] * ranks
    assert said(run(mpi, ranks, "threads.py", SAMEGRAD_NUM_THREADS=3)) == ["3"] * ranks


@pytest.mark.parametrize(("ranks", "replicas"), [(2, 6), (3, 6), (8, 8)])
@pytest.mark.parametrize("shared", [0, 1])
def test_gradients_that_are_rows_of_a_table(mpi, ranks, replicas, shared):
    """Named on one process, on several, on none; the table itself does not travel."""
    (alone,) = said(run_alone("table.py", replicas))
    found = said(run(mpi, ranks, "table.py", replicas, SAMEGRAD_MPI_SHARED=shared))
    assert found == [alone] * ranks


@pytest.mark.parametrize("ranks", [2, 4])
def test_each_process_makes_the_elements_of_its_own_replicas(mpi, ranks):
    """With the draws of one process; elements of others are not made."""
    alone = said(run_alone("mapped.py", 8))
    found = said(run(mpi, ranks, "mapped.py", 8))
    rows = [line for line in alone if not line.startswith("calls")]
    assert [line for line in found if not line.startswith("calls")] == sorted(rows * ranks)
    (of_one,) = (int(line.split()[-1]) for line in alone if line.startswith("calls"))
    calls = [int(line.split()[-1]) for line in found if line.startswith("calls")]
    # One to see what an element is, one for each batch of which a process has no row.
    assert len(calls) == ranks and max(calls) <= of_one / ranks + 8, (of_one, calls)


def test_elements_that_one_process_cannot_make_end_the_job(mpi):
    """A program that passed over them would pair batches of different numbers."""
    assert said(run_alone("own_rows.py", "error")) == [
        "['passed over: element 3 is broken', 44.0, 76.0]"
    ]
    ended = run(mpi, 2, "own_rows.py", "error", limit=90)
    assert ended.code != 0 and "76.0" not in ended.out
    assert "no batch comes after one of which a process could not make its own rows" in ended.err
    assert "got ValueError: element 3 is broken" in ended.err


def test_elements_whose_shapes_differ_between_processes(mpi):
    ended = run(mpi, 4, "own_rows.py", "shapes", limit=90)
    assert ended.code != 0
    assert "elements of one batch must have one shape and dtype: got float32 (1,)" in ended.err
    # Batches may differ from each other.
    (alone,) = said(run_alone("own_rows.py", "uniform"))
    assert said(run(mpi, 2, "own_rows.py", "uniform")) == [alone] * 2


def test_large_sums_as_bfloat16_are_alike_on_all_processes(mpi):
    """Rounded, however they travel; where one process alone says so, all are told."""
    found = [said(run(mpi, 2, "compressed.py", SAMEGRAD_MPI_SHARED=shared)) for shared in (0, 1)]
    assert found[0] == found[1] and len(set(found[0])) == 1
    assert found[0][0].endswith("True True True True")
    ended = run(mpi, 2, "compressed.py", 1)
    assert ended.code != 0
    assert "sums travel as: bfloat16 on rank 1, they are on rank 0" in ended.text


def test_fit_has_the_bits_of_one_process(mpi):
    (alone,) = said(run_alone("fit.py", 4))
    assert said(run(mpi, 2, "fit.py", 4)) == [alone] * 2


def test_a_job_goes_on_from_its_checkpoint_on_other_numbers_of_processes(mpi, tmp_path):
    (alone,) = said(run_alone("resume.py", tmp_path / "alone", 4))
    lost = run(mpi, 2, "resume.py", tmp_path / "lost", 4, 1, 3)
    assert lost.code != 0, lost.text
    lost = run(mpi, 4, "resume.py", tmp_path / "lost", 4, 0, 5)
    assert lost.code != 0, lost.text
    assert said(run(mpi, 3, "resume.py", tmp_path / "lost", 8)) == [alone] * 3


def test_messages_larger_than_mpi_counts_go_in_pieces(mpi, tmp_path):
    program = (PROGRAMS / "faults.py").read_text(encoding="utf-8")
    whole = said(run(mpi, 2, "faults.py", "none", 0, 0))
    pieces = tmp_path / "pieces.py"
    pieces.write_text(
        "from samegrad.distribute import _job\n_job.PIECE_BYTES = 1000\n" + program,
        encoding="utf-8",
    )
    assert said(run(mpi, 2, pieces, "none", 0, 0)) == whole


def test_a_full_disk_of_rank_0_is_an_error_on_all(mpi, tmp_path):
    file = tmp_path / "file"
    file.write_text("no folder")
    ended = run(mpi, 2, "resume.py", file / "below", 4)
    assert ended.code != 0
    assert "rank 0" in ended.text and "rank 1 of 2 failed after call" in ended.text
