"""Members of generated kinds whose verdicts were false: "correct", or not decided."""

from __future__ import annotations

import pytest
from generated_steps import case_of, verdict

MEMBERS = [("pos_weight", 2), ("chunked", 0), ("objects", 1)]


@pytest.mark.parametrize(("kind", "number"), MEMBERS)
@pytest.mark.parametrize("wrong", [True, False])
def test_members_of_a_kind_have_true_verdicts(kind: str, number: int, wrong: bool) -> None:
    said, text = verdict(case_of(kind, number, wrong))
    assert said == ("wrong" if wrong else "correct"), text
