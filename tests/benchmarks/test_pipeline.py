"""The benchmark of images from files: its arithmetic, and one short run of samegrad's side."""

from __future__ import annotations

from pathlib import Path

import pytest
from pipeline import run, summarize, write_files


def test_factor_is_the_median_of_the_pairs() -> None:
    ours = [{"per_second": value} for value in (100.0, 20.0, 90.0)]
    theirs = [{"per_second": value} for value in (50.0, 5.0, 90.0)]
    found = summarize(ours, theirs)
    assert found == {"samegrad": 90.0, "tf.data": 50.0, "factor": 2.0, "pairs": 3}


def test_all_files_are_read_in_each_epoch(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    write_files(tmp_path, 70)
    assert len(list(tmp_path.glob("*/*.jpg"))) == len(list(tmp_path.glob("*/*.png"))) == 35
    first, second = run("samegrad", tmp_path, 2, False), run("samegrad", tmp_path, 1, False)
    assert first["images"] == second["images"] == 70 and first["per_second"] > 0
    assert 0.1 < first["mean"] < 0.6 and first["mean"] == second["mean"]


def test_training_reads_all_files_too(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    write_files(tmp_path, 70)
    trained = run("samegrad", tmp_path, 2, True)
    assert trained["images"] == 70 and trained["per_second"] > 0 and trained["in_memory"] > 0
