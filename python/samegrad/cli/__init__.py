"""The command `samegrad`."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from samegrad.cli._options import (
    FashionMnistOptions,
    TranslateOptions,
    WganGpOptions,
    add_arguments,
    add_gan_arguments,
    add_translate_arguments,
)

__all__ = ["main"]

_OPTIONS: dict[str, Any] = {
    "fashion-mnist": FashionMnistOptions,
    "translate": TranslateOptions,
    "wgan-gp": WganGpOptions,
}
_EXIT_BAD_INPUT = 2
_EXIT_INTERRUPTED = 130  # what shells expect after SIGINT


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(_EXIT_BAD_INPUT, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        arguments: What follows the command's name; by default what the shell gave.

    Returns:
        The exit code: 0 done, 1 names are missing (port-check) or the step is wrong (doctor), 2 bad
        input, 130 stopped by Ctrl-C, 143 stopped by SIGTERM.

    Raises:
        SystemExit: After `--help`, and with code 2 after a wrong argument.

    Example:
        >>> main(["fashion-mnist", "--data-dir", "/nowhere"])  # doctest: +SKIP
        2
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    command, options = _parse(given)
    try:
        return _run(command, options, given)
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED


def _run(command: str, options: dict[str, Any], given: Sequence[str]) -> int:
    # Imported only now, so that help and wrong arguments answer at once, and the doctor does
    # without the engine.
    from samegrad.cli._errors import CommandError

    module = importlib.import_module(f"samegrad.cli.{command.replace('-', '_')}")
    if command in _OPTIONS:
        options = {"options": _OPTIONS[command](**options, arguments=tuple(given))}
    try:
        code: int = module.run(**options)
        return code
    except (CommandError, OSError, *getattr(module, "BAD_INPUT", ())) as error:
        message = _in_one_line(error)
        print(f"samegrad: error: {message}", file=sys.stderr, flush=True)
        if command in _OPTIONS:  # the others of an MPI job would wait for this process
            importlib.import_module("samegrad.distribute._job").end_all(message, _EXIT_BAD_INPUT)
        return _EXIT_BAD_INPUT


def _in_one_line(error: Exception) -> str:
    """The message; the system's own ones say the path and the way out only here."""
    text = str(error)
    if isinstance(error, OSError) and str(error.strerror).startswith("["):
        text = str(error.strerror)  # ours, without the number
    elif isinstance(error, OSError) and error.filename is not None:
        text = f"[samegrad] cannot use {error.filename}: {error.strerror}. Give another path."
    return " ".join(text.split())


def _parse(arguments: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The command's name and its options."""
    parser = _Parser(prog="samegrad", description="One model, any number of replicas, same bits.")
    commands = parser.add_subparsers(
        metavar="COMMAND", dest="command", required=True, parser_class=_Parser
    )
    add_arguments(
        commands.add_parser(
            "fashion-mnist",
            allow_abbrev=False,  # the line that says how to resume knows whole names
            help="train the tutorial's CNN on Fashion-MNIST",
            description="Trains a small CNN on Fashion-MNIST over any number of replicas, saves a "
            "checkpoint every 2 epochs, and evaluates the last one without a strategy.",
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
    _add_doctor(commands)
    options: dict[str, Any] = vars(parser.parse_args(arguments))
    return options.pop("command"), options


def _add_doctor(commands: Any) -> None:
    """The options of `samegrad doctor`."""
    from samegrad.cli.doctor import ABOUT, add_options

    add_options(
        commands.add_parser(
            "doctor",
            help="say whether a training step scales its loss right, and which mistake it makes",
            description=ABOUT,
        )
    )
