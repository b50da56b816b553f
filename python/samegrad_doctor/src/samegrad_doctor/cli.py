"""`samegrad-doctor check FILE.py::STEP`: check a step from the shell."""

from __future__ import annotations

import argparse
import importlib.util
import operator
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any

from samegrad_doctor import __version__
from samegrad_doctor._diagnose import diagnose
from samegrad_doctor._diagnosis import Diagnosis
from samegrad_doctor._layouts import StepError
from samegrad_doctor._over_processes import Job, current_job
from samegrad_doctor._words import FRAMEWORKS

EXIT_CORRECT, EXIT_WRONG, EXIT_UNJUDGED = 0, 1, 2
ABOUT = (
    "Imports a file and checks a step in it: a function that takes a list with the batch of each "
    "replica and returns the update (see samegrad_doctor.diagnose). Exit status: 0 the step is "
    "correct, 1 it is wrong, 2 it cannot be judged."
)


def add_options(doctor: argparse.ArgumentParser) -> None:
    """Add the arguments of `run` as options of a command."""
    doctor.add_argument("step", metavar="FILE.py::STEP", help="the file and the function")
    doctor.add_argument("--batch", default="batch", metavar="NAME", help="the batch [batch]")
    doctor.add_argument("--weights", metavar="NAME", help="what each example counts [1]")
    for name, default, what in (
        ("--replicas", (2, 3), "numbers to try [2 3]"),
        ("--micro-batches", (1,), "numbers to try [1]"),
        ("--max-examples", 12, "largest number of examples that run alone [12]"),
        ("--seed", 0, "of the projection of the updates [0]"),
    ):
        several = "+" if isinstance(default, tuple) else None
        doctor.add_argument(name, type=int, nargs=several, default=default, metavar="N", help=what)
    doctor.add_argument("--equal-shards", action="store_true", help="use equal shards only")
    doctor.add_argument(
        "--empty-shard", action=argparse.BooleanOptionalAction, default=None,
        help="also judge a replica without examples; --no-empty-shard never does",
    )  # fmt: skip
    doctor.add_argument(
        "--framework", choices=FRAMEWORKS, help="framework whose API the fix names [the step's]"
    )
    doctor.add_argument("--json", action="store_true", help="print JSON (see the command schema)")
    doctor.add_argument("--html", metavar="FILE", help="also write a page of HTML")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command `samegrad-doctor`.

    Args:
        arguments: The arguments after the command's name; None takes those of the shell.

    Returns:
        The exit code of `run`, or 2 where the step cannot be judged.

    Raises:
        SystemExit: After `--help`, and with code 2 after a wrong argument.
    """
    parser = argparse.ArgumentParser("samegrad-doctor", description="Check a training step.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    add_options(commands.add_parser("check", help="judge a step in a file", description=ABOUT))
    commands.add_parser("schema", help="print the JSON schema of the output of check --json")
    options = vars(parser.parse_args(arguments))
    if options.pop("command") == "schema":
        print(resources.files("samegrad_doctor").joinpath("diagnosis.schema.json").read_text())
        return EXIT_CORRECT
    try:
        return run(**options)
    except StepError as error:
        print(error, file=sys.stderr)
        return EXIT_UNJUDGED


def run(
    step: str,
    batch: str,
    weights: str | None,
    json: bool = False,
    html: str | None = None,
    **options: Any,
) -> int:
    """Print the diagnosis of a step.

    In an MPI job all processes judge the step together, and rank 0 prints.

    Args:
        step: "FILE.py::name" of a function that takes the replicas' batches and returns the update.
        batch: The name of the batch in the file, or of a function that returns it.
        weights: The name of the examples' weights in the file.
        json: Print JSON.
        html: A file for a page of HTML.
        **options: Other options of `diagnose`.

    Returns:
        0 the step is right, 1 it is not; in a job of several processes 2 it cannot be judged.

    Raises:
        StepError: The file, or something in it, cannot be used; or the step cannot be judged.
    """
    job, code = current_job(), EXIT_UNJUDGED
    try:
        found = _judged(job, step, batch, weights, **options)
        if job.rank == 0:
            print(found.to_json() if json else found, flush=True)
        if html is not None and job.rank == 0:
            try:
                Path(html).write_text(found.to_html(), encoding="utf-8")
            except OSError as error:
                said = f"got {html} ({error})"
                raise StepError(f"[doctor] --html must be a writable file: {said}.") from error
        code = EXIT_CORRECT if found.correct and not found.reported_loss_issue else EXIT_WRONG
    except StepError as error:
        if job.size == 1:
            raise
        if job.rank == 0:
            print(f"samegrad: error: {error}", file=sys.stderr, flush=True)
    # A launcher kills the others as soon as one has ended with another status than 0.
    job.met("the doctor's verdict", None)
    return code


def _judged(job: Job, step: str, batch: str, weights: str | None, **options: Any) -> Diagnosis:
    """Return the diagnosis.

    Raises:
        StepError: The step cannot be judged.
    """
    path, _, name = step.partition("::")
    if not name:
        raise StepError(f"[doctor] the step must be FILE.py::NAME: got {step!r}.")

    def read() -> tuple[Any, Any, Any]:
        module = load_module(Path(path))
        own = None if weights is None else value_in(module, weights)
        return named_in(module, name), value_in(module, batch), own

    try:
        function, data, own_weights = job.all_of("reading the step's file", read)
        return diagnose(function, data, weights=own_weights, **options)
    except SystemExit as error:  # with 0, it would say that the step is right
        raise StepError(
            f"[doctor] {step} must return or raise: it called sys.exit({error.code!r}); leave that "
            "to the program."
        ) from error


def load_module(path: Path) -> ModuleType:
    """Import a file.

    Raises:
        StepError: There is no such file, or it cannot be imported.
    """
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise StepError(f"[doctor] a Python file is needed: got {path}.")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # so that its functions can be sent to processes
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        if sys.modules.get(path.stem) is module:
            del sys.modules[path.stem]
        more = '; put what runs a program behind `if __name__ == "__main__":`'
        raise StepError(
            f"[doctor] {path} cannot be imported: {type(error).__name__}: {error}"
            f"{more if isinstance(error, SystemExit) else ''}."
        ) from error
    finally:
        sys.path.pop(0)
    return module


def named_in(module: ModuleType, name: str) -> Any:
    """Return an object of a module by its name, which may have dots.

    Raises:
        StepError: There is none of this name.
    """
    try:
        return operator.attrgetter(name)(module)
    except AttributeError:
        names = ", ".join(n for n in vars(module) if not n.startswith("_"))
        raise StepError(f"[doctor] {module.__file__} has no {name!r}: it has {names}.") from None


def value_in(module: ModuleType, name: str) -> Any:
    """Return a value of a module, or what the function of this name returns.

    Raises:
        StepError: The file has no such name, or the function raises.
    """
    thing = named_in(module, name)
    try:
        return thing() if callable(thing) else thing
    except Exception as error:
        raise StepError(
            f"[doctor] {name} of {module.__file__} must be a value, or a function that returns "
            f"it without being given anything: it raised {type(error).__name__}: {error}."
        ) from error
