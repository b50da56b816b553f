"""Programs that ask for trouble end as they should, on all ranks."""

import pytest
from launch import every_mpi, run, run_alone

pytestmark = pytest.mark.parametrize("mpi", every_mpi())
IN_TIME = 90


@pytest.mark.parametrize(("ranks", "total"), [(2, 5), (7, 7), (3, 16)])
def test_several_strategies_with_empty_shares_and_variables_of_all_sizes(mpi, ranks, total):
    alone = run_alone("hostile.py", "several", total).out
    ended = run(mpi, ranks, "hostile.py", "several", total)
    assert ended.code == 0, ended.text
    assert alone.startswith("hash") and ended.out == alone * ranks


def test_a_forked_child_may_not_step_and_its_rank_goes_on(mpi):
    ended = run(mpi, 2, "hostile.py", "forked", limit=IN_TIME)
    assert ended.code == 0, ended.text
    assert ended.out.count("got a step in a forked child; run steps in the parent") == 2
    assert ended.out.count("hash") == 2


def test_ctrl_c_in_the_first_step_ends_the_job(mpi):
    ended = run(mpi, 3, "hostile.py", "interrupted", limit=IN_TIME)
    assert ended.code != 0 and "hash" not in ended.out, ended.text
    assert "KeyboardInterrupt" in ended.text
