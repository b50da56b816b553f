"""The table beside this file names every test here."""

from __future__ import annotations

from pathlib import Path

from .behaviours import table


def test_the_table_is_that_of_the_tests() -> None:
    found = (Path(__file__).parent / "BEHAVIOURS.md").read_text(encoding="utf-8")
    assert found == table(), (
        "refresh it: python tests/contract/parity/behaviours.py > "
        "tests/contract/parity/BEHAVIOURS.md"
    )
