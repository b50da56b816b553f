"""BLEU is sacrebleu's, and says what is missing where it is not installed."""

from __future__ import annotations

import sys

import pytest

from samegrad.cli._errors import CommandError
from samegrad.cli._translate._scores import bleu

SENTENCES = ["The cat sits on the mat.", "It is raining in the city today."]


def test_without_sacrebleu_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(CommandError, match=r"pip install 'samegrad\[translate\]'"):
        bleu(SENTENCES, SENTENCES)


@pytest.mark.parametrize(("found", "wanted"), [([], []), (SENTENCES, SENTENCES[:1])])
def test_every_sentence_needs_a_reference(found: list[str], wanted: list[str]) -> None:
    with pytest.raises(ValueError, match=f"got {len(found)} and {len(wanted)}"):
        bleu(found, wanted)


def test_bleu_is_that_of_sacrebleu() -> None:
    pytest.importorskip("sacrebleu", reason="sacrebleu is not installed")
    assert bleu(SENTENCES, SENTENCES) == pytest.approx(100.0)
    other = ["The cat sat on the mat.", "It rains in the city today."]
    assert 0.0 < bleu(other, SENTENCES) < 100.0
    assert bleu(["x y", "z"], SENTENCES) < 5.0
