"""The benchmark of the doctor runs at a small size; its figures are not judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from doctor_times import GOALS, main, report

pytest.importorskip("torch", reason="PyTorch is not installed")


def test_both_kinds_are_measured(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "figures.json"
    found = main(["--runs", "1", "--parameters", "2000", "--json", str(file)])
    assert set(found) == set(GOALS)
    assert all(own["steps"] > 5 and own["median_s"] > 0 for own in found.values())
    assert json.loads(file.read_text()) == found
    assert capsys.readouterr().out.strip() == report(found)


def test_too_few_parameters_are_refused(capsys: Any) -> None:
    with pytest.raises(SystemExit):
        main(["--parameters", "1"])
    assert "128 parameters at least" in capsys.readouterr().err
