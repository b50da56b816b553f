"""What processes of one machine share: memory where there is enough of it, and cores."""

from pathlib import Path

import pytest

from samegrad.distribute import _job
from samegrad.distribute._job import _has_room, _share_of


def test_a_rank_that_finds_too_little_shared_memory_says_so(tmp_path: Path) -> None:
    assert _has_room(4096, str(tmp_path))
    assert not _has_room(1 << 62, str(tmp_path))


def test_an_mpi_may_have_shared_memory_elsewhere(tmp_path: Path) -> None:
    assert _has_room(4096, str(tmp_path / "not there"))


def test_the_first_rank_tells_what_too_little_shared_memory_leads_to(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for rank in (1, 0):
        _job._tell_of_little_room(rank, "it takes longer")
    told = capsys.readouterr().err
    assert told.count("/dev/shm has too little room: it takes longer. Remove") == 1


def test_cores_are_divided_by_those_who_may_use_them() -> None:
    assert _share_of({0, 1}, [{0, 1}]) == 2
    assert _share_of({0, 1}, [{0, 1}, {0, 1}]) == 1
    assert _share_of({0, 1}, [{0, 1}] * 4) == 1  # of less than one
    assert _share_of(set(range(12)), [set(range(12))] * 3) == 4
    assert _share_of({0, 1, 2}, [{0, 1, 2}, {3, 4, 5}]) == 3  # a launcher has bound them
    assert _share_of({0, 1, 2, 3}, [{0, 1, 2, 3}, {2, 3}]) == 3
