"""Processes share memory where there is enough of it."""

from pathlib import Path

from samegrad.distribute._job import _has_room


def test_a_rank_that_finds_too_little_shared_memory_says_so(tmp_path: Path) -> None:
    assert _has_room(4096, str(tmp_path))
    assert not _has_room(1 << 62, str(tmp_path))


def test_an_mpi_may_have_shared_memory_elsewhere(tmp_path: Path) -> None:
    assert _has_room(4096, str(tmp_path / "not there"))
