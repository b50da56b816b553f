"""The cause that `diff_runs` names, for each kind of planted difference."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_steps import ENTRIES, OPERATIONS, Write, changed, detailed, program, record, steps, write

import samegrad as tf
from samegrad import _core
from samegrad.cli import main

assert write  # a fixture


def test_diff_of_equal_runs_is_the_same(write: Write) -> None:
    found = tf.diff_runs(write("a", steps(5)), write("b", steps(5)))
    assert found.same and found.compared == 5 and found.by_step == ((),) * 5
    assert str(found) == "same: yes, 5 steps compared"


def test_diff_of_files_of_different_lengths_says_so(write: Write) -> None:
    found = tf.diff_runs(write("a", steps(5)), write("b", steps(3)))
    assert found.same and found.compared == 3
    assert "note: a has 5 steps and b has 3" in str(found)


def plant(run: list[Any], at: int, *positions: int, **changes: Any) -> list[Any]:
    """Return a run with other hashes from a step on."""
    other = copy.deepcopy(run)
    for _, one in other[at:]:
        one.hashes = [h + (n in positions) for n, h in enumerate(one.hashes)]
    return changed(other, at, **changes)


def examples(*order: int) -> list[int]:
    return [2_000 + n for n in order]


SWAPPED = [
    (0, examples(0, 5, 2, 3, 4, 1, 6, 7)),
    (1, [n + 500 for n in examples(0, 5, 2, 3, 4, 1, 6, 7)]),
]
MOVED = [(0, examples(1, 2, 3, 4, 5, 6, 7, 0)), record(2).example_hashes[1]]
CASES = {
    "weights at the start": (
        plant(steps(4), 0, 2, 3, 5, before=[(0, 9), (1, 6)]),
        0,
        "weights",
        "before step 0, 1 of 2 variables differ: dense/kernel",
    ),
    "weights and seeds": (
        plant(steps(4), 0, 2, before=[(0, 9), (1, 8)], seed=2),
        0,
        "weights",
        "before step 0, 2 of 2 variables differ: dense/kernel and dense/bias (so do the seeds, 1 "
        "and 2)",
    ),
    "assigned between two steps": (
        plant(steps(4), 2, 2, 4, 6, before=[(1, 999)]),
        2,
        "assignment",
        "dense/bias was assigned between steps 1 and 2 in b, outside of recorded steps",
    ),
    "all assigned between two steps": (
        plant(steps(4), 2, 2, 4, 6, before=[(0, 998), (1, 999)]),
        2,
        "assignment",
        "dense/kernel and dense/bias were assigned between steps 1 and 2 in b, outside of recorded "
        "steps",
    ),
    "seed of the draws": (
        plant(steps(4), 1, 2, seed=2),
        1,
        "draws",
        "the seeds are 1 and 2",
    ),
    "number of the draw": (
        plant(steps(4), 3, 2, draw=9),
        3,
        "draws",
        "step 3 draws with the numbers 3 and 9",
    ),
    "swapped examples": (
        plant(steps(4), 2, 0, 1, 2, example_hashes=SWAPPED),
        2,
        "data",
        "arguments 0 and 1: examples 1 and 5 are swapped",
    ),
    "other order": (
        plant(steps(4), 2, 0, 2, example_hashes=MOVED),
        2,
        "data",
        "argument 0: the same examples in another order, 8 of 8 moved, first 0",
    ),
    "other example": (
        plant(
            steps(4),
            2,
            0,
            2,
            example_hashes=[(0, examples(0, 1, 2, 99, 4, 5, 6, 7)), record(2).example_hashes[1]],
        ),
        2,
        "data",
        "argument 0: example 3 of 8 differs",
    ),
    "fewer examples": (
        plant(steps(4), 2, 0, 2, examples=[7]),
        2,
        "data",
        "the batch has 8 examples in a and 7 in b",
    ),
    "other result": (
        plant(steps(4), 2, 2, 4, 6),
        2,
        "result",
        "equal inputs gave other results: 1 of 1 output (output 0), 1 of 2 gradients (dense/bias), "
        "1 of 2 variables (dense/bias)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_diff_names_the_cause(write: Write, name: str) -> None:
    planted, step, cause, text = CASES[name]
    found = tf.diff_runs(write("a", steps(4)), write("b", planted))
    assert not found.same
    assert (found.step, found.cause, found.differences[0].text) == (step, cause, text)
    assert f"cause: {cause}: {text}" in str(found)
    back = tf.diff_runs(write("c", planted), write("d", steps(4)))
    assert (back.step, back.cause) == (step, cause)


def test_diff_of_another_program_names_the_first_operation(write: Write) -> None:
    other = program(
        hash=78, operations=[OPERATIONS[0], ("add", *OPERATIONS[1][1:]), *OPERATIONS[2:]]
    )
    run = plant([(other, one) for _, one in steps(3)], 0, 2)
    found = tf.diff_runs(write("a", steps(3)), write("b", run))
    assert found.cause == "program"
    assert found.differences[0].text == (
        "operation 1 is sub at train.py:31 (float32 (batch, 1)) in a and add at train.py:31 "
        "(float32 (batch, 1)) in b"
    )
    longer = program(hash=79, operations=[*OPERATIONS, ("exp", "float32 (1,)", "train.py:40")])
    run = plant([(longer, one) for _, one in steps(3)], 0, 2)
    found = tf.diff_runs(write("c", steps(3)), write("d", run))
    assert "b alone has exp at train.py:40" in found.differences[0].text


def test_diff_takes_an_assigned_slot_of_an_optimizer_for_a_cause_of_other_results(
    write: Write,
) -> None:
    made = program(variables=["dense/kernel", "dense/bias", "momentum"])
    run = [(made, one) for _, one in steps(4)]
    run[0][1].before.append((2, 7))
    assigned = changed(run, 2, before=[(2, 8)])
    a, b = write("a", run), write("b", assigned)
    assert tf.diff_runs(a, b).same  # the same value, perhaps
    found = tf.diff_runs(a, write("c", plant(assigned, 2, 5)))
    assert (found.step, found.cause) == (2, "assignment")
    assert found.differences[0].text.startswith("momentum was assigned between steps 1 and 2 in b")
    both = changed(run, 2, before=[(2, 9)])
    assert tf.diff_runs(b, write("d", both)).cause == "assignment"


def test_diff_of_another_program_with_equal_values_is_the_same(write: Write) -> None:
    other = [(program(hash=78), one) for _, one in steps(3)]
    assert tf.diff_runs(write("a", steps(3)), write("b", other)).same


def test_diff_over_replicas_skips_values_of_single_replicas(write: Write) -> None:
    entries = [
        *ENTRIES[:3],
        ("gradient", "dense/kernel", 0, "float32", "(3, 1)", "own"),
        *ENTRIES[4:],
    ]
    two = program(hash=78, replicas=2, entries=entries)
    run = plant([(two, one) for _, one in steps(3)], 0, 3)
    found = tf.diff_runs(write("a", steps(3)), write("b", run))
    assert found.same
    both = [(program(entries=entries), one) for _, one in steps(3)]
    assert tf.diff_runs(write("c", both), write("d", plant(both, 1, 3))).step == 1


def test_diff_over_replicas_names_another_program_unless_inputs_differ(write: Write) -> None:
    other = [OPERATIONS[0], ("add", *OPERATIONS[1][1:]), *OPERATIONS[2:], ("all_reduce", "", "")]
    two = program(hash=78, replicas=2, operations=other)
    run = plant([(two, one) for _, one in steps(3)], 0, 2)
    found = tf.diff_runs(write("a", steps(3)), write("b", run))
    assert found.cause == "program"
    assert found.differences[0].text == (
        "a alone has sub at train.py:31 (float32 (batch, 1)) and b alone has add at train.py:31 "
        "(float32 (batch, 1))"
    )
    found = tf.diff_runs(write("c", steps(3)), write("d", changed(run, 0, draw=5)))
    assert [one.cause for one in found.differences] == ["draws"]


def test_diff_over_replicas_names_what_depends_on_them(write: Write) -> None:
    reasons = [("mean is that of a replica's examples", "train.py:31")]
    two = program(hash=78, replicas=2, reasons=reasons)
    run = plant([(two, one) for _, one in steps(3)], 0, 2, 3, 4, 5, 6)
    found = tf.diff_runs(write("a", steps(3)), write("b", run))
    assert found.cause == "replicas"
    assert "train.py:31: mean is that of a replica's examples" in found.differences[0].text
    assert found.environment == {"replicas": (1, 2)}


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("reduction_order", 99, "reduction order"),
        ("function_version", 99, "function version"),
        ("fused", None, "fused multiply-add"),
    ],
)
def test_diff_of_other_numerics_names_them(
    write: Write, monkeypatch: pytest.MonkeyPatch, name: str, value: int | None, text: str
) -> None:
    a = write("a", steps(3))
    if value is None:
        fused = {isa: not flag for isa, flag in _core.isa_fused().items()}
        monkeypatch.setattr(_core, "isa_fused", lambda: fused)
    else:
        monkeypatch.setattr(_core, name, lambda: value)
    found = tf.diff_runs(a, write("b", plant(steps(3), 1, 2)))
    assert (found.step, found.cause) == (1, "numerics") and text in found.differences[0].text
    found = tf.diff_runs(a, write("c", steps(3)))
    assert found.same and text in found.notes[0]


def with_detail(run: list[Any], at: int, hashes: list[int] | None = None) -> list[Any]:
    other = copy.deepcopy(run)
    detailed(other[at][1], hashes)
    return other


def test_frontier_names_the_operation_and_its_occurrence(write: Write) -> None:
    a = write("a", with_detail(steps(3), 1), detail=1)
    b = write("b", with_detail(plant(steps(3), 1, 3, 5), 1, [11, 12, 13, 99]), detail=1)
    found = tf.diff_runs(a, b)
    (one,) = found.frontier
    assert str(one) == "matmul, 2nd at train.py:32 (float32 (3, 1))"
    assert (one.occurrence, one.of) == (2, 2)
    c = write("c", with_detail(plant(steps(3), 1, 3, 5), 1, [11, 98, 13, 99]), detail=1)
    assert [one.op for one in tf.diff_runs(a, c).frontier] == ["sub"]


def test_frontier_in_a_loop_names_the_first_operation(write: Write) -> None:
    def looped(run: list[Any], hashes: list[int]) -> list[Any]:
        other = with_detail(run, 1, hashes)
        made = other[1][1].operations
        made[0] = (*made[0][:4], [-1, 2], made[0][5])  # the third hands its result to the first
        return other

    a = write("a", looped(steps(3), [11, 12, 13, 14]), detail=1)
    b = write("b", looped(plant(steps(3), 1, 3, 5), [1, 2, 3, 4]), detail=1)
    assert [str(one) for one in tf.diff_runs(a, b).frontier] == [
        "matmul at train.py:30 (float32 (batch, 1))"
    ]
    c = write("c", looped(plant(steps(3), 1, 3, 5), [11, 12, 13, 4]), detail=1)
    assert [one.occurrence for one in tf.diff_runs(a, c).frontier] == [2]


def test_frontier_of_moved_lines_names_the_operation(write: Write) -> None:
    run = with_detail(plant(steps(3), 1, 3, 5), 1, [11, 98, 13, 99])
    made = run[1][1].operations
    made[:] = [(op, kind, "other.py:1", *rest) for op, kind, _, *rest in made]
    found = tf.diff_runs(write("a", with_detail(steps(3), 1), detail=1), write("b", run, detail=1))
    assert [str(one) for one in found.frontier] == ["sub at train.py:31 (float32 (batch, 1))"]
    made[:] = [("other", kind, "other.py:1", *rest) for _, kind, _, *rest in made]
    found = tf.diff_runs(write("c", with_detail(steps(3), 1), detail=1), write("d", run, detail=1))
    assert "note: the runs have no operations in common" in str(found)


def test_frontier_without_operations_tells_how_to_record_them(write: Write) -> None:
    a = write("a", with_detail(steps(3), 1), detail=1)
    found = tf.diff_runs(a, write("b", plant(steps(3), 1, 3)))
    assert not found.frontier
    assert "b without the operations of step 1" in str(found)
    assert "samegrad record --detail 1" in str(found)


def test_frontier_over_replicas_takes_the_sum_of_all(write: Write) -> None:
    one = with_detail(steps(3), 1)
    two = with_detail(plant(steps(3), 1, 3, 5), 1)
    made = two[1][1].operations
    made[2] = (*made[2][:3], "own", made[2][4], [77])
    made.append(("all_reduce", made[2][1], "", "replicated", [2], [99]))
    a = write("a", one, detail=1)
    b = write("b", [(program(hash=78, replicas=2), record) for _, record in two], detail=1)
    assert [str(one) for one in tf.diff_runs(a, b).frontier] == [
        "matmul, 1st at train.py:32 (float32 (3, 1))"
    ]
    made[-1] = (*made[-1][:5], [13])
    c = write("c", [(program(hash=78, replicas=2), record) for _, record in two], detail=1)
    assert "note: all 4 operations that can be compared agree" in str(tf.diff_runs(a, c))


def test_frontier_of_equal_operations_names_the_step_of_the_plan(write: Write) -> None:
    run = with_detail(plant(steps(3), 1, 3), 1)
    run[1][1].stored[1] = (*run[1][1].stored[1][:4], 1234)
    found = tf.diff_runs(write("a", with_detail(steps(3), 1), detail=1), write("b", run, detail=1))
    assert "note: all 4 operations that can be compared agree one by one" in str(found)
    assert "the plan differs first in loop 1: sub at train.py:31" in str(found)


def test_diff_with_saved_values_names_the_first_element(write: Write) -> None:
    run = with_detail(plant(steps(3), 1, 0, example_hashes=[]), 1)
    batch = np.ones((8, 3), np.float32)
    batch[4, 2] = np.nextafter(np.float32(1), np.float32(2))
    run[1][1].arguments[0] = [tf.constant(batch[:4]), tf.constant(batch[4:])]
    found = tf.diff_runs(write("a", with_detail(steps(3), 1), detail=1), write("b", run, detail=1))
    assert "First is argument 0[4, 2], float32, 1 unit in the last place apart" in found.values
    assert found.values in str(found)


def test_diff_prints_json_and_the_exit_status(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = write("a", steps(3)), write("b", plant(steps(3), 1, 2))
    assert main(["diff", str(a), str(a)]) == 0
    assert capsys.readouterr().out == "same: yes, 3 steps compared\n"
    assert main(["diff", str(a), str(b), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["version"], found["step"], found["cause"]) == (1, 1, "result")
    assert main(["diff", str(a), str(a) + ".none"]) == 2
    assert "No such file" in capsys.readouterr().err


def test_record_of_one_run_refuses_another(write: Write, tmp_path: Path) -> None:
    with (
        pytest.raises(tf.errors.FailedPreconditionError, match=r"^\[record_run\] one run"),
        tf.record_run(tmp_path / "inner"),
    ):
        write("outer", steps(1))
    write("after", steps(1))


def test_record_without_steps_warns(write: Write) -> None:
    with pytest.warns(UserWarning, match=r"\[record_run\] no step was recorded: runs of tf.funct"):
        write("a", [])
    with pytest.warns(UserWarning, match=r"\[record_run\] step 7 was not recorded: got 2 steps"):
        write("b", steps(2), detail=7)


def test_record_keeps_an_existing_file(write: Write) -> None:
    before = write("a", steps(2)).read_bytes()
    with pytest.raises(tf.errors.AlreadyExistsError, match=r"^\[record_run\] a record must be"):
        write("a", steps(3))
    path = write("a", steps(3), overwrite=True)
    assert path.read_bytes() != before


@pytest.mark.parametrize("detail", [-1, True, 1.0, "1"])
def test_record_refuses_a_detail_without_a_step(write: Write, detail: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"^\[record_run\] detail must"):
        write("a", steps(1), detail=detail)


def test_record_of_a_failed_block_says_so(write: Write, tmp_path: Path) -> None:
    path = write("a", steps(2))
    with (
        pytest.warns(UserWarning, match="no step was recorded"),
        tf.record_run(tmp_path / "unused"),
    ):
        pass
    with pytest.raises(KeyError), tf.record_run(tmp_path / "b"):
        raise KeyError("x")
    assert json.loads((tmp_path / "b").read_bytes().splitlines()[-1])["error"] == "KeyError"
    assert json.loads(path.read_bytes().splitlines()[-1])["error"] is None
