"""Argument parser of the commands: errors in one line, with suggestions, printed by rank 0 only."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from samegrad._base.launchers import launched

EXIT_BAD_INPUT = 2
# "[threads] must be ...", "[diagnose] seed must be ...", "got replicas=0".
_PARAMETER = re.compile(r"(?<=^\[)\w+(?=\])|(?<=\] )\w+(?= must be )|\w+(?==)")


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that suggests the nearest option, choice or command."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_BAD_INPUT, f"{self.prog}: error: {message} (see {self.prog} --help)\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        # A subparser reports its own unknown options: it knows the nearest ones.
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            options = [word.partition("=")[0] for word in unknown if word.startswith("-")]
            near = did_you_mean(options, self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{near}")
        return found, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(
                action,
                f"invalid choice: {value!r} (choose from {', '.join(names)})"
                f"{did_you_mean([str(value)], names)}",
            )

    def _print_message(self, message: str, file: Any = None) -> None:
        if launched().rank == 0:
            super()._print_message(message, file)


def did_you_mean(words: Sequence[str], known: Iterable[str]) -> str:
    """Return a hint with the nearest known name of each word; empty if there is none.

    Example:
        >>> did_you_mean(["--batchsize"], ["--batch-size", "--seed"])
        '; did you mean --batch-size?'
    """
    names = list(known)
    found = [difflib.get_close_matches(word.replace("_", "-"), names, n=1) for word in words]
    near = [match for matches in found for match in matches]
    return f"; did you mean {', '.join(near)}?" if near else ""


def _names(message: str, path: str) -> bool:
    """Tell if a message names a path, or one in it: "runs" is not "prunes" or "/my/runs"."""
    whole = rf"(?<![\w./~-]){re.escape(path)}(?![\w-]|\.\w)"
    return bool(re.search(r"\w", path) and re.search(whole, message))


def with_option(message: str, flags: dict[str, str], values: dict[str, Any]) -> str:
    """Return an error message that names the option it is about.

    The option is found by a parameter that the message names, or by its path.

    Args:
        message: The message; unchanged if it names an option, or is about none.
        flags: The option of each value, such as {"data_dir": "--data-dir"}.
        values: The values of the options.

    Example:
        >>> with_option("[threads] must be <= 4096: got 9999.", {"threads": "--threads"}, {})
        'argument --threads: [threads] must be <= 4096: got 9999.'
    """
    if set(re.findall(r"--[\w-]+", message)).intersection(flags.values()):
        return message
    about = [flags[word] for word in _PARAMETER.findall(message) if word in flags]
    paths = {str(path): name for name, path in values.items() if isinstance(path, Path)}
    about += [flags[paths[path]] for path in sorted(paths, key=len) if _names(message, path)][::-1]
    return f"argument {about[0]}: {message}" if about else message
