"""The command that runs and copies example programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from samegrad import cli

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
NAMES = sorted(path.stem.replace("_", "-") for path in EXAMPLES.glob("*.py"))


def test_all_examples_are_listed_with_their_purpose(capsys):
    assert cli.main(["example"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == NAMES
    assert all(line.endswith((".", "bits.")) and len(line) > 30 for line in lines)


def test_example_is_run_with_its_arguments(capfd):
    arguments, folders, modules = sys.argv, sys.path[:], set(sys.modules)
    small = ["--epochs", "1", "--depth", "10", "--growth-rate", "2"]
    assert cli.main(["example", "densenet", "--", *small]) == 0
    out = capfd.readouterr().out.splitlines()
    assert out[0].startswith("epoch 1: loss ") and out[1].startswith("weights sg1-")
    assert (sys.argv, sys.path) == (arguments, folders)
    assert "densenet" not in set(sys.modules) - modules


def test_wrong_argument_of_an_example_is_reported_by_it(capsys):
    with pytest.raises(SystemExit):
        cli.main(["example", "densenet", "--", "--depht", "4"])
    assert "densenet.py: error: unrecognized arguments: --depht 4" in capsys.readouterr().err


def test_example_that_imports_another_is_run(tmp_path):
    command = [sys.executable, "-m", "samegrad", "example", "bert-pretraining", "--"]
    done = subprocess.run(
        [*command, "--steps", "2", "--folder", "bert"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(tmp_path / "bert")) == [
        "config.json",
        "model.safetensors",
        "vocab.txt",
    ]


def test_example_is_copied_with_its_imports(tmp_path, capsys):
    assert cli.main(["example", "bert-pretraining", "--copy", str(tmp_path / "new")]) == 0
    files = ["bert_pretraining.py", "bert_classification.py"]
    assert capsys.readouterr().out.split() == [str(tmp_path / "new" / file) for file in files]
    for file in files:
        assert (tmp_path / "new" / file).read_text() == (EXAMPLES / file).read_text()
    (tmp_path / "new" / files[1]).write_text("mine")
    assert cli.main(["example", files[1][:-3].replace("_", "-"), "--copy", f"{tmp_path}/new"]) == 2
    assert "--copy overwrites no file: got " in capsys.readouterr().err
    assert (tmp_path / "new" / files[1]).read_text() == "mine"


def test_unknown_example_is_rejected_with_the_nearest_name(capsys):
    with pytest.raises(SystemExit):
        cli.main(["example", "densnet"])
    assert "did you mean densenet?" in capsys.readouterr().err
    assert cli.main(["example", "--copy", "folder"]) == 2
    assert "--copy needs the name of an example" in capsys.readouterr().err
