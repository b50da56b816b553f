"""Ranks on different processors form one job if their kernels agree in every bit."""

import pytest
from launch import every_mpi, run, run_alone

from samegrad import _core

HERE = {name.removeprefix("x86-64-"): _core.isa_fused()[name] for name in _core.isa_supported()}
FUSED = [name for name, fused in HERE.items() if fused]
OTHERS = [name for name, fused in HERE.items() if not fused]


@pytest.mark.skipif(len(FUSED) < 2, reason="this processor has one variant with fused multiply-add")
@pytest.mark.parametrize("mpi", every_mpi())
def test_ranks_with_kernels_that_agree_have_the_bits_of_one(mpi):
    alone = run_alone("kernels_of_ranks.py", FUSED[0])
    ended = run(mpi, 2, "kernels_of_ranks.py", *FUSED[:2])
    assert ended.code == 0, ended.text
    assert set(ended.out.splitlines()) == set(alone.out.splitlines())


@pytest.mark.skipif(not FUSED or not OTHERS, reason="all variants of this processor agree")
@pytest.mark.parametrize("mpi", every_mpi())
def test_ranks_with_kernels_that_round_otherwise_are_refused(mpi):
    ended = run(mpi, 2, "kernels_of_ranks.py", FUSED[0], OTHERS[0])
    assert ended.code != 0
    assert "they differ in build: fused multiply add: " in ended.text
    assert "True on rank 0" in ended.text and "False on rank 1" in ended.text
