"""The arguments of the command, and how it says what is wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from samegrad import cli
from samegrad.cli._options import FashionMnistOptions

EVERYTHING = """
--replicas 8 --batch-size 32 --epochs 2 --learning-rate 0.01 --seed 9 --threads 2 --split balanced
--data-dir d --checkpoint-dir c --resume --log l.jsonl --fingerprint --plot p.png --limit 100
--steps 7
"""


def parse(*arguments: str) -> FashionMnistOptions:
    _, options = cli._parse(["fashion-mnist", *arguments])
    return FashionMnistOptions(**options, arguments=arguments)


def test_defaults_are_those_of_the_tutorial():
    options = parse()
    assert (options.replicas, options.batch_size, options.epochs) == (1, 64, 10)
    assert options.learning_rate == 1e-3
    assert options.checkpoint_dir == Path("training_checkpoints")
    assert (options.threads, options.limit, options.steps, options.log) == (None,) * 4
    assert not options.resume
    assert not options.fingerprint


def test_all_arguments():
    options = parse(*EVERYTHING.split())
    assert options.global_batch_size == 256
    assert (options.epochs, options.learning_rate, options.seed) == (2, 0.01, 9)
    assert (options.threads, options.split, options.limit, options.steps) == (2, "balanced", 100, 7)
    assert (options.data_dir, options.checkpoint_dir) == (Path("d"), Path("c"))
    assert (options.log, options.plot) == (Path("l.jsonl"), Path("p.png"))
    assert options.resume
    assert options.fingerprint


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--replicas", "0"], "argument --replicas: must be a whole number, at least 1: got '0'"),
        (["--batch-size", "-3"], "argument --batch-size: must be .*: got '-3'"),
        (["--epochs", "two"], "argument --epochs: must be .*: got 'two'"),
        (["--threads", "1.5"], "argument --threads: must be .*: got '1.5'"),
        (["--learning-rate", "0"], "argument --learning-rate: must be a number above 0: got '0'"),
        (["--learning-rate", "nan"], "argument --learning-rate: must be .*: got 'nan'"),
        (["--seed", "-1"], "argument --seed: must be .*: got '-1'"),
        (["--split", "odd"], "argument --split: invalid choice: 'odd'"),
        (["--epochs", "0"], "argument --epochs: must be .*: got '0'"),
        (["--epochs"], "argument --epochs: expected one argument"),
        (["--learning-rate", "1e400"], "argument --learning-rate: must be .*: got '1e400'"),
        (["--seed", str(2**63)], "argument --seed: must be .*: got '9223372036854775808'"),
        (["--limit", "0"], "argument --limit: must be .*: got '0'"),
        (["--steps", "-1"], "argument --steps: must be .*: got '-1'"),
        (["--replicas="], "argument --replicas: must be .*: got ''"),
        (["--log"], "argument --log: expected one argument"),
        (["--plot"], "argument --plot: expected one argument"),
        (["--data-dir"], "argument --data-dir: expected one argument"),
        (["--checkpoint-dir"], "argument --checkpoint-dir: expected one argument"),
        (["--resume=yes"], "argument --resume: ignored explicit argument 'yes'"),
        (["--fingerprint=1"], "argument --fingerprint: ignored explicit argument '1'"),
        (["--replic", "2"], "unrecognized arguments: --replic 2"),
        (["--nothing"], "unrecognized arguments: --nothing"),
    ],
)
def test_wrong_arguments_end_in_one_line(capsys, arguments, message):
    with pytest.raises(SystemExit) as ended:
        cli.main(["fashion-mnist", *arguments])
    assert ended.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert re.search(message, lines[0])


def test_no_command_and_an_unknown_one(capsys):
    for arguments in ([], ["paint"]):
        with pytest.raises(SystemExit) as ended:
            cli.main(arguments)
        assert ended.value.code == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_help(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["fashion-mnist", "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    for name in vars(parse()):
        if name != "arguments":
            assert f"--{name.replace('_', '-')}" in text


def test_python_m_samegrad_is_the_same():
    done = subprocess.run(
        [sys.executable, "-m", "samegrad", "fashion-mnist", "--replicas", "0"],
        capture_output=True,
        text=True,
        env=dict(os.environ),
    )
    assert done.returncode == 2
    assert done.stderr.startswith("samegrad fashion-mnist: error: argument --replicas")
