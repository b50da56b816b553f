"""Some random ranks are killed at random moments; `soak.py` does it as often as one likes."""

import pytest
from launch import every_mpi
from soak import Soak


@pytest.mark.parametrize("mpi", every_mpi())
def test_jobs_that_lose_ranks_end_in_time_and_go_on_to_the_same_bits(mpi):
    told = Soak(mpi, seed=3, steps=12).run(3)
    assert told.kills == 3
    assert told.ends >= 1
