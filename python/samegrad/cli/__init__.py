"""The command `samegrad`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from samegrad.cli._options import FashionMnistOptions, add_arguments

__all__ = ["main"]

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
        The exit code: 0 done, 2 bad input, 130 stopped by Ctrl-C.

    Raises:
        SystemExit: After `--help`, and with code 2 after a wrong argument.

    Example:
        >>> main(["fashion-mnist", "--data-dir", "/nowhere"])  # doctest: +SKIP
        2
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = FashionMnistOptions(**_parse(given), arguments=tuple(given))
    try:
        # Imported only now, so that help and wrong arguments answer at once.
        from samegrad.cli import fashion_mnist
        from samegrad.cli._progress import CommandError
        from samegrad.keras.datasets._idx import IdxError
        from samegrad.train import CorruptCheckpointError

        try:
            return fashion_mnist.run(options)
        except (CommandError, OSError, IdxError, CorruptCheckpointError) as error:
            print(f"samegrad: error: {_in_one_line(error)}", file=sys.stderr)
            return _EXIT_BAD_INPUT
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED


def _in_one_line(error: Exception) -> str:
    """The message; the system's own ones say the path and the way out only here."""
    text = str(error)
    if isinstance(error, OSError) and error.filename is not None:
        text = f"[samegrad] cannot use {error.filename}: {error.strerror}. Give another path."
    return " ".join(text.split())


def _parse(arguments: Sequence[str]) -> dict[str, Any]:
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
    options: dict[str, Any] = vars(parser.parse_args(arguments))
    del options["command"]
    return options
