"""The arguments of the command, and how it says what is wrong."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import samegrad
from samegrad import cli
from samegrad._base.numerics import numerics
from samegrad.cli._earlier_runs import resume_command
from samegrad.cli._options import FashionMnistOptions
from samegrad.cli._parser import with_option

EVERYTHING = """
--replicas 8 --batch-size 32 --epochs 2 --learning-rate 0.01 --seed 9 --threads 2
--data-dir d --checkpoint-dir c --resume --log l.jsonl --fingerprint --plot p.png --limit 100
--steps 7 --save-every 3
"""


def parse(*arguments: str) -> FashionMnistOptions:
    _, options, _ = cli._parse(["fashion-mnist", *arguments])
    return FashionMnistOptions(**options, arguments=arguments)


def test_defaults_are_those_of_the_tutorial():
    options = parse()
    assert (options.replicas, options.batch_size, options.epochs) == (1, 64, 10)
    assert options.learning_rate == 1e-3
    assert options.checkpoint_dir == Path("training_checkpoints")
    assert options.save_every == 2
    assert (options.threads, options.limit, options.steps, options.log) == (None,) * 4
    assert not options.resume
    assert not options.fingerprint


def test_all_arguments():
    options = parse(*EVERYTHING.split())
    assert options.global_batch_size == 256
    assert (options.epochs, options.learning_rate, options.seed) == (2, 0.01, 9)
    assert (options.threads, options.limit, options.steps) == (2, 100, 7)
    assert (options.data_dir, options.checkpoint_dir) == (Path("d"), Path("c"))
    assert (options.log, options.plot) == (Path("l.jsonl"), Path("p.png"))
    assert options.save_every == 3
    assert options.resume
    assert options.fingerprint


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--replicas", "0"], "argument --replicas: must be an integer >= 1: got '0'"),
        (["--batch-size", "-3"], "argument --batch-size: must be .*: got '-3'"),
        (["--epochs", "two"], "argument --epochs: must be .*: got 'two'"),
        (["--threads", "1.5"], "argument --threads: must be .*: got '1.5'"),
        (["--learning-rate", "0"], "argument --learning-rate: must be a number > 0: got '0'"),
        (["--learning-rate", "nan"], "argument --learning-rate: must be .*: got 'nan'"),
        (["--seed", "-1"], "argument --seed: must be .*: got '-1'"),
        (["--split", "balanced"], "unrecognized arguments: --split balanced"),
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
        (["--save-every", "0"], "argument --save-every: must be an integer >= 1: got '0'"),
        (["--replic", "2"], r"unrecognized arguments: --replic 2; did you mean --replicas\?"),
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


COMMANDS = ("fashion-mnist", "wgan-gp", "translate", "port-check", "doctor", "info")


SMALL = {
    "fashion-mnist": ["--limit", "8", "--steps", "1"],
    "wgan-gp": ["--limit", "8", "--steps", "1"],
    "translate": ["--limit", "8", "--steps", "1", "--vocabulary", "200"],
}


def parser_of(command: str) -> argparse.ArgumentParser:
    commands = cli._parser.Parser().add_subparsers()
    cli._add_commands(commands)
    return commands.choices[command]


def message_of(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize("command", COMMANDS)
def test_unknown_command_names_the_nearest(capsys, command: str) -> None:
    for typed in {command[:-1], command.replace("-", "_"), command[0] + command}:
        if typed != command:
            assert f"did you mean {command}?" in message_of(capsys, typed)


@pytest.mark.parametrize("command", COMMANDS)
def test_unknown_option_names_the_nearest(capsys, command: str) -> None:
    options = [name for name in parser_of(command)._option_string_actions if name[:2] == "--"]
    given = {"port-check": ["x.py"], "doctor": ["x.py::step"]}.get(command, [])
    assert "--help" in options
    for option in options:
        typed = f"--{option[2:].replace('-', '_')}x"
        line = message_of(capsys, command, *given, typed)
        assert line.startswith(f"samegrad {command}: error: unrecognized arguments: {typed}; did")
        assert f"did you mean {option}?" in line


@pytest.mark.parametrize("command", SMALL)
def test_unusable_path_is_reported_with_its_option(capsys, tmp_path, monkeypatch, command) -> None:
    """Every option that is a path, in a folder that is a file."""
    monkeypatch.chdir(tmp_path)
    paths = {
        action.dest: action.option_strings[-1]
        for action in parser_of(command)._actions
        if action.type is Path
    }
    assert {"checkpoint_dir", "log"} <= set(paths)
    for number, option in enumerate(paths.values()):
        (tmp_path / f"file{number}").touch()
        path = str(tmp_path / f"file{number}" / "inside")
        code = cli.main([command, *SMALL[command], "--overwrite", option, path])
        (line,) = capsys.readouterr().err.splitlines()
        assert code == 2 and option in line, line


@pytest.mark.parametrize("option", ["--threads", "--replicas"])
@pytest.mark.parametrize("command", SMALL)
def test_number_beyond_the_engine_is_reported_with_its_option(
    capsys, tmp_path, monkeypatch, command, option
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main([command, *SMALL[command], option, "99999999"]) == 2
    assert f"error: argument {option}: [" in capsys.readouterr().err.splitlines()[-1]


def test_doctor_reports_invalid_numbers_with_their_option(capsys, tmp_path) -> None:
    path = tmp_path / "program.py"
    path.write_text("import numpy as np\nbatch = np.ones((9, 2))\nstep = sum")
    actions = [action for action in parser_of("doctor")._actions if action.type is int]
    assert len(actions) == 4
    for action in actions:
        option = action.option_strings[-1]
        assert cli.main(["doctor", f"{path}::step", option, "-3"]) == 2
        assert f"error: argument {option}: [diagnose] {action.dest} " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("message", "option"),
    [
        ("[threads] must lie in [0, 4096]: got 9.", "--threads"),
        ("[Strategy] at most 8 replicas: got replicas=9.", "--replicas"),
        ("[diagnose] seed must be an integer >= 0: got -1.", "--seed"),
        ("[x] cannot use /a/b/c: no such file.", "--log"),
        ("[x] /a/b/d must hold the steps of epoch 2.", "--data-dir"),
        ("[x] --plot of a run needs threads=3.", None),
        ("[x] the seed and the replicas are equal.", None),
    ],
)
def test_message_gets_the_option_that_it_is_about(message: str, option: str | None) -> None:
    names = ("threads", "replicas", "seed", "log", "data_dir", "plot")
    flags = {name: f"--{name.replace('_', '-')}" for name in names}
    values = {"log": Path("/a/b/c"), "data_dir": Path("/a/b"), "plot": None}
    wanted = message if option is None else f"argument {option}: {message}"
    assert with_option(message, flags, values) == wanted


@pytest.fixture(params=[("PMI_SIZE", "PMI_RANK"), ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID")])
def start_rank(request, monkeypatch):
    """Set the variables of a launcher with two processes."""

    def start(rank: int) -> None:
        for name, value in zip(request.param, (2, rank), strict=True):
            monkeypatch.setenv(name, str(value))

    return start


@pytest.mark.parametrize(
    "arguments",
    [["--version"], ["--help"], ["doctor", "--help"], ["fashion-mnist", "--batchsize", "3"],
     ["paint"], ["info"], ["info", "--json"], ["port-check", "/nowhere.py"]],
)  # fmt: skip
def test_rank_0_alone_prints(capsys, start_rank, arguments) -> None:
    printed = []
    for rank in (0, 1):
        start_rank(rank)
        with contextlib.suppress(SystemExit):
            cli.main(arguments)
        printed.append("".join(capsys.readouterr()))
    assert printed[0] and not printed[1]


def test_resume_command_has_the_launcher(monkeypatch) -> None:
    given = ["fashion-mnist", "--steps", "3", "--seed", "1"]
    resumed = "samegrad fashion-mnist --seed 1 --resume"
    assert resume_command(given) == resumed
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "4")
    assert resume_command(given) == f"srun -n 4 {resumed}"
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    assert resume_command(given) == f"mpiexec -n 2 {resumed}"


def test_version_is_printed(capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"samegrad {samegrad.__version__}\n"


def test_info_has_the_facts_of_a_bug_report(capsys, monkeypatch) -> None:
    monkeypatch.setenv("SAMEGRAD_LOSS_CHECK", "off")
    assert cli.main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["samegrad"] == samegrad.__version__
    assert facts["numpy"] == np.__version__ and facts["python"].startswith(sys.version.split()[0])
    assert facts["isa"] in facts["isa_supported"].split(", ")
    assert facts["threads"] >= 1 and numerics().items() <= facts.items()
    assert facts["keras"][:2] == "3." and facts["mpi"] and facts["platform"] and facts["cpu"]
    assert facts["environment"]["SAMEGRAD_LOSS_CHECK"] == "off"
    assert cli.main(["info"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0].replace(" ", "_") for line in lines] == list(facts)
    assert "SAMEGRAD_LOSS_CHECK=off" in lines[-1]


@pytest.mark.parametrize(
    ("path", "message", "named"),
    [
        ("c", "cannot read /data/train.gz: No such file or directory", False),
        (".", "cannot read /data/train.gz. Give another path.", False),
        ("data", "cannot read /data/train.gz: it ends early", False),
        ("c", "c exists and is not a folder", True),
        ("/data", "[datasets] cannot read '/data/train.gz'", True),
        ("run.csv", "cannot write run.csv.", True),
    ],
)
def test_option_is_named_where_the_message_has_its_whole_path(path, message, named):
    found = with_option(message, {"folder": "--folder"}, {"folder": Path(path)})
    assert found == (f"argument --folder: {message}" if named else message)
