"""Callbacks of `fit` over processes: rank 0 writes and speaks, all decide alike."""

import re

import pytest
from launch import every_mpi, run, run_alone

pytestmark = pytest.mark.parametrize("mpi", every_mpi())
PROGRAM = "fit_callbacks.py"


def lines(ended, word):
    assert ended.code == 0, ended.text
    return [line for line in ended.out.splitlines() if line.startswith(word)]


def test_files_and_lines_are_those_of_one_process(mpi, tmp_path):
    alone, spread = tmp_path / "alone", tmp_path / "spread"
    alone.mkdir(), spread.mkdir()
    one = run_alone(PROGRAM, alone)
    two = run(mpi, 2, PROGRAM, spread)
    for word in ("END", "HISTORY"):  # EarlyStopping and ReduceLROnPlateau decide alike
        assert lines(two, word) == lines(one, word) * 2
    assert "stopped 1" in lines(one, "END")[0] and "rate 1e-06" in lines(one, "END")[0]
    for said in ("Epoch 1/12", "saving model to", "ReduceLROnPlateau reducing", "early stopping"):
        assert two.out.count(said) == one.out.count(said) > 0, said
    assert len(re.findall(r"^3/3 - ", two.out, re.M)) == len(lines(one, "3/3 - "))
    assert (spread / "log.csv").read_bytes() == (alone / "log.csv").read_bytes()
    assert sorted(p.name for p in spread.iterdir()) == sorted(p.name for p in alone.iterdir())
    assert not (spread / "backup").exists()
    events = [len(list(path.rglob("*tfevents*"))) for path in (alone, spread)]
    assert events[0] == events[1]
    (other,) = [line for line in lines(two, "WRITTEN") if line.startswith("WRITTEN 1")]
    assert other == "WRITTEN 1: []"


def test_classes_derived_from_callbacks_run_on_all_ranks(mpi, tmp_path):
    alone, spread = tmp_path / "alone", tmp_path / "spread"
    alone.mkdir(), spread.mkdir()
    one = run_alone(PROGRAM, alone, "derived")
    two = run(mpi, 2, PROGRAM, spread, "derived")
    for word in ("END", "BEST"):
        assert lines(two, word) == lines(one, word) * 2
    assert "WRITTEN 1: []" in lines(two, "WRITTEN")
    assert two.out.count("saving model to") == one.out.count("saving model to")
    assert (spread / "derived.csv").read_bytes() == (alone / "derived.csv").read_bytes()
    assert (spread / "derived.weights.h5").exists()


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_killed_fit_goes_on_with_the_same_bits(mpi, tmp_path, ranks):
    alone, lost = tmp_path / "alone", tmp_path / "lost"
    alone.mkdir(), lost.mkdir()
    expected = lines(run_alone(PROGRAM, alone), "END")[0]
    killed = run(mpi, 2, PROGRAM, lost, "kill")
    assert killed.code != 0 and (lost / "backup").exists()
    resumed = lines(run(mpi, ranks, PROGRAM, lost), "END")
    assert len(resumed) == ranks and len(set(resumed)) == 1
    # Of the epochs it has made the last ones.
    assert resumed[0].partition(" until ")[2] == expected.partition(" until ")[2]
    assert resumed[0] != expected
    assert not (lost / "backup").exists()


def test_who_stops_stops_all(mpi, tmp_path):
    found = lines(run(mpi, 2, PROGRAM, tmp_path, "stop"), "END")
    assert len(found) == 2 and len(set(found)) == 1
    assert found[0].startswith("END epochs 3 until 2 ") and found[0].endswith("stopped 1")


def test_who_stops_within_an_epoch_does_so_on_all(mpi, tmp_path):
    alone, spread = tmp_path / "alone", tmp_path / "spread"
    alone.mkdir(), spread.mkdir()
    one = lines(run_alone(PROGRAM, alone, "leave"), "END")
    assert lines(run(mpi, 2, PROGRAM, spread, "leave"), "END") == one * 2
    assert one[0].startswith("END epochs 3 until 2 ")  # of three batches each
    last = lines(run(mpi, 2, PROGRAM, tmp_path, "leave last"), "END")  # the epoch ends there
    assert len(set(last)) == 1 and last[0].startswith("END epochs 1 until 0 ")
    ended = run(mpi, 2, PROGRAM, tmp_path, "leave alone", limit=90)
    assert ended.code != 0
    assert "[fit] within an epoch stop_training must be set after the same batch" in ended.err
    assert "got it on rank 1, while others went on; set it in on_epoch_end" in ended.err
    assert "stop_training within an epoch of fit on rank 1" in ended.err  # as rank 0 is told


def test_backups_that_not_all_see(mpi, tmp_path):
    first = run(mpi, 2, PROGRAM, tmp_path, "apart")
    assert first.code == 0, first.text
    ended = run(mpi, 2, PROGRAM, tmp_path, "apart", limit=90)
    assert ended.code != 0
    assert "[BackupAndRestore] all processes must find the same backup: got backup-" in ended.err
    assert "none on rank 1; let backup_dir be a folder that all of them see" in ended.err
