"""`samegrad doctor FILE.py::step`: the command of samegrad-doctor, on all processes of a job."""

from __future__ import annotations

import argparse
from typing import Any

from samegrad.cli._errors import CommandError
from samegrad.testing._joined import join

ABOUT = "Checks a step in a file. Exit status: 0 it is correct, 1 it is wrong, 2 it is not decided."


def add_options(doctor: argparse.ArgumentParser) -> None:
    """Add the arguments of `run`, which the package has, as options of a command."""
    try:
        from samegrad_doctor import cli
    except ImportError:
        doctor.add_argument("arguments", nargs=argparse.REMAINDER)
        return
    doctor.description = cli.ABOUT
    cli.add_options(doctor)


def run(**options: Any) -> int:
    """Print the diagnosis of a step.

    Args:
        **options: The options of `samegrad_doctor.cli.run`.

    Returns:
        0 the step is right, 1 it is wrong; in a job of several processes 2 it is not decided.

    Raises:
        CommandError: The step cannot be judged, or samegrad-doctor is not installed.
    """
    try:
        join()
        from samegrad.testing._doctor import StepError, command
    except (ImportError, RuntimeError) as error:
        raise CommandError(str(error)) from error
    try:
        return command(**options)
    except StepError as error:
        raise CommandError(str(error)) from error
