"""Members of generated kinds whose verdicts were false: "correct", or not decided."""

from __future__ import annotations

import pytest
from generated_steps import case_of, verdict

MEMBERS = [
    ("pos_weight", 2, True), ("pos_weight", 2, False), ("chunked", 0, True),
    ("objects", 1, True), ("objects", 1, False),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "number", "wrong"), MEMBERS)
def test_members_of_a_kind_have_true_verdicts(kind: str, number: int, wrong: bool) -> None:
    said, text = verdict(case_of(kind, number, wrong))
    assert said == ("wrong" if wrong else "correct"), text
