"""The command line `samegrad`."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from samegrad._base.launchers import launched
from samegrad.cli._options import (
    FashionMnistOptions,
    TranslateOptions,
    WganGpOptions,
    add_arguments,
    add_gan_arguments,
    add_translate_arguments,
)
from samegrad.cli._parser import EXIT_BAD_INPUT, Parser, with_option

__all__ = ["main"]

_OPTIONS: dict[str, Any] = {
    "fashion-mnist": FashionMnistOptions,
    "translate": TranslateOptions,
    "wgan-gp": WganGpOptions,
}
_EXIT_INTERRUPTED = 130  # as shells report SIGINT


class _Version(argparse.Action):
    """Prints the version; the engine is loaded only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        version = importlib.import_module("samegrad").__version__
        parser._print_message(f"samegrad {version}\n", sys.stdout)
        parser.exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. In an MPI job only rank 0 prints.

    Args:
        arguments: The arguments after `samegrad`; None takes those of the shell.

    Returns:
        The exit code: 0 done, 1 missing names (port-check) or a wrong step (doctor), 2 bad input,
        130 stopped by Ctrl-C, 143 stopped by SIGTERM. A program of `run` exits as it does alone.

    Raises:
        SystemExit: After `--help` and `--version`, and with code 2 after a wrong argument.

    Example:
        >>> main(["fashion-mnist", "--data-dir", "/nowhere"])  # doctest: +SKIP
        2
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    command, options, flags = _parse(given)
    try:
        done = _run(command, options, flags, given)
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED
    return done() if callable(done) else done


def _run(
    command: str, options: dict[str, Any], flags: dict[str, str], given: Sequence[str]
) -> int | Callable[[], int]:
    """Run a command; return its exit code, or a program that runs outside of it."""
    # Imported only now: help and wrong arguments answer at once, and the doctor needs no engine.
    from samegrad.cli._errors import CommandError

    module = importlib.import_module(f"samegrad.cli.{command.replace('-', '_')}")
    trains, runs_program = command in _OPTIONS, hasattr(module, "RUNS_IN_JOBS")
    asked = {"options": _OPTIONS[command](**options, arguments=tuple(given))} if trains else options
    try:
        with contextlib.nullcontext() if runs_program else _rank_0_prints():
            done: int | Callable[[], int] = module.run(**asked)
        return done
    except (CommandError, OSError, *getattr(module, "BAD_INPUT", ())) as error:
        message = with_option(_in_one_line(error), flags, options)
        if trains or runs_program:  # the other ranks of an MPI job would wait for this one
            _fail_job(message)
        elif launched().rank == 0:
            _print_error(message)
        return EXIT_BAD_INPUT


@contextlib.contextmanager
def _rank_0_prints() -> Iterator[None]:
    """Discard the output of the other ranks of an MPI job, which is the same."""
    if launched().rank == 0:
        yield
        return
    with (
        open(os.devnull, "w") as nothing,
        contextlib.redirect_stdout(nothing),
        contextlib.redirect_stderr(nothing),
    ):
        yield


def _print_error(message: str) -> None:
    print(f"samegrad: error: {message}", file=sys.stderr, flush=True)


def _fail_job(message: str) -> None:
    """Print an error once for all ranks that fail with it, and end the job."""
    job: Any = importlib.import_module("samegrad.distribute._job")
    rank = launched().rank
    if rank == 0:
        _print_error(message)
    elif not job.failed_elsewhere(message):
        _print_error(f"rank {rank}: {message}")
    job.end_all(message, EXIT_BAD_INPUT)


def _in_one_line(error: Exception) -> str:
    """Return the message of an error; those of the system get the path and a remedy."""
    text = str(error)
    if isinstance(error, OSError) and str(error.strerror).startswith("["):
        text = str(error.strerror)  # ours, without the number
    elif isinstance(error, OSError) and error.filename is not None:
        text = f"[samegrad] cannot use {error.filename}: {error.strerror}. Give another path."
    return " ".join(text.split())


def _parse(arguments: Sequence[str]) -> tuple[str, dict[str, Any], dict[str, str]]:
    """Return the command, its options, and the flag of each option."""
    parser = Parser(prog="samegrad", description="One model, any number of replicas, same bits.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(metavar="COMMAND", dest="command", required=True)
    _add_commands(commands)
    options: dict[str, Any] = vars(parser.parse_args(arguments))
    del options["version"]
    command = options.pop("command")
    actions = commands.choices[command]._actions
    flags = {action.dest: action.option_strings[-1] for action in actions if action.option_strings}
    return command, options, flags


def _add_commands(commands: Any) -> None:
    add_arguments(
        commands.add_parser(
            "fashion-mnist",
            allow_abbrev=False,  # resume_command() knows full names only
            help="train the tutorial's CNN on Fashion-MNIST",
            description="Trains a small CNN on Fashion-MNIST over any number of replicas, saves a "
            "checkpoint every few epochs, and evaluates the last one without a strategy.",
        )
    )
    add_gan_arguments(
        commands.add_parser(
            "wgan-gp",
            allow_abbrev=False,
            help="train a Wasserstein GAN with gradient penalty on Fashion-MNIST",
            description="Trains a critic and a generator on Fashion-MNIST over any number of "
            "replicas, watches the run, says early when it goes unstable and which option to look "
            "at, and judges the images.",
        )
    )
    add_translate_arguments(
        commands.add_parser(
            "translate",
            allow_abbrev=False,
            help="train a Transformer that translates sentences",
            description="Trains a Transformer on pairs of sentences over any number of replicas, "
            "in batches of similar lengths, and translates held-out sentences after every epoch.",
        )
    )
    port_check = commands.add_parser(
        "port-check",
        help="list what a TensorFlow program uses that samegrad lacks",
        description="Reads programs without running them and lists each name of TensorFlow or "
        "Keras that samegrad lacks, and each argument that it does not take, with the nearest "
        "name or the reason. Cells of notebooks are counted from 1, cells of code only; IPython's "
        "magics are skipped. Methods of objects are not looked at. Exit status: 0 nothing is "
        "missing, 1 something is, 2 a file cannot be read.",
    )
    port_check.add_argument("paths", nargs="+", metavar="FILE", help="a .py or .ipynb file")
    _add_run(commands)
    for add in (_add_doctor, _add_verify, _add_fingerprint, _add_record, _add_diff, _add_example):
        add(commands)
    info = commands.add_parser(
        "info",
        help="print versions, CPU and MPI for a bug report",
        description="Prints the facts that a bug report needs: versions of samegrad, Python, Keras "
        "and NumPy, the versions of the reduction order and of the functions, the platform, the "
        "CPU and the instruction set in use, threads, and the MPI library.",
    )
    info.add_argument("--json", action="store_true", help="print a JSON object")


def _add_run(commands: Any) -> None:
    """Add the options of `samegrad run`."""
    run = commands.add_parser(
        "run",
        help="run a TensorFlow program as it is",
        description="Runs a program as Python does. Where it or a package that it imports says "
        "`import tensorflow`, it gets samegrad, and Keras runs on samegrad. Exit status: that of "
        "the program, 2 if it cannot be read.",
    )
    run.add_argument(
        "-m", dest="module", action="store_true", help="the program is the name of a module"
    )
    run.add_argument("program", metavar="PROGRAM.py", help="the program")
    run.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARG", help="its arguments")


def _add_verify(commands: Any) -> None:
    """Add the options of `samegrad verify`."""
    from samegrad.cli.verify import ABOUT, add_options

    add_options(
        commands.add_parser(
            "verify",
            help="check that a training has the same bits for any replicas, threads and processes",
            description=ABOUT,
        )
    )


def _add_example(commands: Any) -> None:
    """Add the options of `samegrad example`."""
    from samegrad.cli.example import ABOUT, add_options

    add_options(
        commands.add_parser("example", help="run or copy an example program", description=ABOUT)
    )


def _add_fingerprint(commands: Any) -> None:
    """Add the options of `samegrad fingerprint`."""
    fingerprint = commands.add_parser(
        "fingerprint",
        help="print a hash of all arrays of a checkpoint",
        description="Reads a checkpoint and prints the fingerprint of its arrays, which is that of "
        "the objects that were saved (see samegrad.fingerprint). Exit status: 0 printed, 2 there "
        "is no checkpoint, or it is damaged.",
    )
    fingerprint.add_argument(
        "folder", metavar="DIR", help="a checkpoint, or a folder whose latest one is read"
    )
    fingerprint.add_argument(
        "--info", action="store_true", help="also print versions, kernels and numeric policy"
    )
    fingerprint.add_argument("--json", action="store_true", help="print all of it as JSON")


def _add_record(commands: Any) -> None:
    """Add the options of `samegrad record`."""
    record = commands.add_parser(
        "record",
        help="run a program and record the hashes of all its steps",
        description="Runs a program as Python does, and writes hashes of all arguments, outputs, "
        "gradients and variables of each step to a file (see samegrad.record_run). Compare two "
        "files with samegrad diff. Exit status: that of the program, 2 if the file cannot be "
        "written.",
    )
    record.add_argument(
        "-o", "--output", metavar="FILE", help="the new file [PROGRAM.sgrec, in this folder]"
    )
    record.add_argument(
        "--detail", type=int, metavar="N", help="record step N, from 0, with all its operations"
    )
    record.add_argument("--overwrite", action="store_true", help="replace the file if it exists")
    record.add_argument("program", metavar="PROGRAM.py", help="the program")
    record.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARG", help="its arguments")


def _add_diff(commands: Any) -> None:
    """Add the options of `samegrad diff`."""
    diff = commands.add_parser(
        "diff",
        help="name the first step at which two recorded runs differ, and the cause",
        description="Compares two files of samegrad record (see samegrad.diff_runs). Exit status: "
        "0 all steps of both are equal, 1 some differ, 2 a file cannot be read.",
    )
    diff.add_argument("a", metavar="A", help="a record")
    diff.add_argument("b", metavar="B", help="another record")
    diff.add_argument("--json", action="store_true", help="print JSON")
    diff.add_argument(
        "--incomplete", action="store_true", help="accept files whose last line was cut off"
    )


def _add_doctor(commands: Any) -> None:
    """Add the options of `samegrad doctor`."""
    from samegrad.cli.doctor import ABOUT, add_options

    add_options(
        commands.add_parser(
            "doctor",
            help="check the loss normalization of a training step and name its failure mode",
            description=ABOUT,
        )
    )
