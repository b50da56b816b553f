"""Large variables that the ranks of a machine have once, each updating its share of them."""

import pytest
from launch import every_mpi, run, run_alone

pytestmark = pytest.mark.parametrize("mpi", every_mpi())


def said(ended):
    assert ended.code == 0, ended.text
    return ended.out.splitlines()


def of_one_process(what):
    """Four replicas; none of its variables is anybody else's."""
    *values, where = said(run_alone("common.py", 4, what))
    assert where == "in common: False"
    return values


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("what", ["nothing", "assigned", "swapped on rank 0"])
def test_variables_in_common_have_the_values_of_one_process(mpi, ranks, what):
    """Also where they are assigned in between, and for who holds an array of earlier values."""
    expected = of_one_process(what)
    assert expected[0].split()[1] == expected[1].split()[1]  # what is held stays
    told = said(run(mpi, ranks, "common.py", 4 // ranks, what))
    assert sorted(told) == sorted([*expected, "in common: True"] * ranks)


def test_ranks_without_shared_memory_have_variables_of_their_own(mpi):
    told = said(run(mpi, 2, "common.py", 2, "nothing", SAMEGRAD_MPI_SHARED=0))
    assert sorted(told) == sorted([*of_one_process("nothing"), "in common: False"] * 2)


def test_a_forked_child_keeps_what_it_holds_and_reads_no_variable_that_goes_on_changing(mpi):
    told = said(run(mpi, 2, "common.py", 2, "forked"))
    children = [line for line in told if line.startswith("child")]
    assert len(children) == 2
    assert all("forked from one of several processes" in line for line in children)
    assert len([line for line in told if line == "in common: True"]) == 2
    first = {line for line in told if line.startswith("first")}
    assert len(first) == 1  # also what the children hold
