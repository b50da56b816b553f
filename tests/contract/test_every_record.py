"""The record of each golden program does not depend on replicas, nor do its operations."""

from __future__ import annotations

from pathlib import Path

import golden_programs
import pytest
from golden_networks import PROGRAMS

import samegrad as tf
from samegrad.testing import _run_frontier
from samegrad.train._record_file import RecordReader

DETAIL = 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_record_of_a_program_is_that_of_one_replica(name: str, tmp_path: Path) -> None:
    paths = {replicas: tmp_path / str(replicas) for replicas in (1, 2, 3)}
    for replicas, path in paths.items():
        with tf.record_run(path, DETAIL):
            golden_programs.run(name, replicas)
    for replicas in (2, 3):
        found = tf.diff_runs(paths[1], paths[replicas])
        assert found.same and found.compared == 3, str(found)
        one, other = ([*RecordReader(paths[n])][DETAIL] for n in (1, replicas))
        assert one.detail and other.detail
        differing, compared = _run_frontier.frontier(one.detail, other.detail, False)
        assert not differing, [str(operation) for operation in differing]
        assert compared > len(one.detail) // 3
