"""The pictures of the docs are those of the recorded runs."""

from __future__ import annotations

import pathlib
import re

import pytest

pytest.importorskip("matplotlib")
import pictures


def words(file: pathlib.Path) -> list[str]:
    return sorted(re.findall(r"<!-- (.*?) -->", file.read_text("utf-8"))) + sorted(
        re.findall(r">([^<>\n]+)</(?:text|tspan)>", file.read_text("utf-8"))
    )


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_picture_is_that_of_its_data(name: str, tmp_path: pathlib.Path) -> None:
    pictures.draw(name, tmp_path / "drawn.svg")
    committed = pictures.FOLDER / f"{name}.svg"
    assert words(committed), "the text of a picture is text"
    assert words(committed) == words(tmp_path / "drawn.svg"), (
        f"{committed.name}: run python tests/benchmarks/pictures.py"
    )
    assert committed.stat().st_size < 64_000


def test_recorded_runs_have_one_fingerprint_and_no_difference() -> None:
    runs = pictures.result(pictures.RECORDED)["curves"]["samegrad"]
    assert list(runs) == ["1", "2", "3", "8"]
    assert len({run["fingerprint"] for run in runs.values()}) == 1
    assert not any(any(run["difference"]) for run in runs.values())


def test_every_picture_is_on_a_page() -> None:
    root = pictures.FOLDER.parents[1]
    pages = [root / "README.md", *(root / "docs").rglob("*.md")]
    shown = "".join(page.read_text("utf-8") for page in pages)
    assert not [name for name in pictures.PICTURES if f"pictures/{name}.svg" not in shown]
