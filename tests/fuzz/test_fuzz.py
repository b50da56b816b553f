"""A short run of the fuzzer with fixed seeds; the long ones are `python tests/fuzz/run.py`."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from fuzz import interpret
from fuzz.compare import check, plan_modes
from fuzz.faults import FAULTS
from fuzz.generate import generate
from fuzz.plant import ROOT
from fuzz.processes import Workers
from fuzz.program import direction, input_data, variable_data
from fuzz.shrink import retyped
from fuzz.source import text
from fuzz.worker import Mode

SMALL, LARGE, FORCED = range(40), range(40, 46), range(46, 90)


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    made = Workers()
    yield made
    made.close()


@pytest.mark.parametrize("seed", [*SMALL, *LARGE])
def test_random_programs_give_the_numbers_of_the_interpreter(seed: int, workers: Workers) -> None:
    program = generate(seed, large=seed in LARGE)
    found, _ = check(program, workers, plan_modes(program, random.Random(seed)))
    assert not found, f"{found[0]}\n\n{text(program)}"


@pytest.mark.parametrize("seed", FORCED)
def test_random_programs_with_all_thresholds_forced_to_one(seed: int, workers: Workers) -> None:
    program = generate(seed)
    wanted = {name: [Mode("run", program.shares)] for name in ("usual", "ones")}
    found, outcomes = check(program, workers, wanted)
    assert not found, f"{found[0]}\n\n{text(program)}"
    assert all(outcome.steps or outcome.error for outcome in outcomes.values())


def test_functions_of_datasets_have_the_bits_of_python(workers: Workers) -> None:
    programs = 0
    for seed in range(90, 114):
        program = generate(seed)
        whole = (sum(program.shares),)
        modes = [Mode("mapped", whole), Mode("mapped by Python", whole)]
        found, outcomes = check(program, workers, {"usual": modes})
        assert not found, f"{found[0]}\n\n{text(program)}"
        programs += outcomes["usual", modes[0]].programs
    assert programs > 10


def test_a_seed_is_a_program() -> None:
    for seed in range(50):
        assert generate(seed) == generate(seed)
        assert retyped(generate(seed)), seed


def test_a_program_is_text_that_runs() -> None:
    for mode in ("run", "eager"):
        exec(compile(text(generate(3), mode), "<program>", "exec"), {})


def test_derivatives_of_the_interpreter_agree_with_differences() -> None:
    """Its dual numbers against differences of its values, first and second order."""
    checked = 0
    for seed in range(60):
        program = generate(seed)
        program.second = True
        xs = [x.astype(np.float64) if x.dtype.kind == "f" else x for x in input_data(program, 0)]
        ws = [w.astype(np.float64) for w in variable_data(program)]
        ds = tuple([d.astype(np.float64) for d in direction(program, k)] for k in (0, 1))

        def at(t: float, p=program, x=xs, w=ws, d=ds) -> interpret.Share:  # type: ignore[no-untyped-def]
            moved = [a + t * b for a, b in zip(w, d[1], strict=True)]
            return interpret.interpret(p, x, moved, d, max(len(x[0]), 1), 1, {})

        here, step = at(0.0), 1e-5
        slope = (at(step).first - at(-step).first) / (2 * step)
        other = (at(step / 2).first - at(-step / 2).first) / step
        if np.isfinite(slope) and abs(slope - other) < 1e-4 * (1 + abs(slope)):  # no kink between
            assert abs(slope - here.second) < 1e-3 * (1 + abs(slope)), seed
            checked += 1
    assert checked > 30


def test_faults_have_names_and_places_of_their_own() -> None:
    assert len(FAULTS) >= 30
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    for fault in FAULTS:
        text_there = (ROOT / fault.file).read_text()
        assert text_there.count(fault.old) == 1, f"{fault.name}: does not apply to {fault.file}"
