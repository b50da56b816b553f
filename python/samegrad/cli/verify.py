"""`samegrad verify FILE.py::make`: check the bits of a training from the shell."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from samegrad.cli._errors import CommandError
from samegrad.testing._invariance import check
from samegrad.testing._joined import join, met
from samegrad.testing._program_file import load_module, named_in, value_in

EXIT_INVARIANT, EXIT_DIFFERENT = 0, 1
ABOUT = (
    "Imports a file, trains what a function in it makes on several numbers of replicas, threads "
    "and processes, and compares all arrays after each step, bit by bit (see "
    "samegrad.testing.assert_replica_invariant). Exit status: 0 all are identical, 1 some differ "
    "or fail, 2 the program cannot be trained."
)
BAD_INPUT = (ValueError,)


def add_options(verify: argparse.ArgumentParser) -> None:
    """Add the arguments of `run` as options of a command."""
    verify.add_argument("make", metavar="FILE.py::MAKE", help="the file and the function")
    verify.add_argument("--data", default="data", metavar="NAME", help="the data [data]")
    for name, default in (("replicas", (1, 2, 3, 8)), ("threads", (1, 2)), ("processes", (1, 2))):
        shown = " ".join(map(str, default))
        verify.add_argument(
            f"--{name}", type=int, nargs="+", default=default, metavar="N", help=f"to try [{shown}]"
        )
    verify.add_argument("--steps", type=int, default=5, metavar="N", help="training steps [5]")
    verify.add_argument(
        "--batch-size", type=int, metavar="N", help="of global batches [two fifths of the examples]"
    )
    verify.add_argument("--seed", type=int, default=0, metavar="N", help="of each run [0]")
    verify.add_argument("--json", action="store_true", help="print JSON")


def run(
    make: str,
    data: str = "data",
    replicas: Sequence[int] = (1, 2, 3, 8),
    threads: Sequence[int] = (1, 2),
    processes: Sequence[int] = (1, 2),
    steps: int = 5,
    batch_size: int | None = None,
    seed: int = 0,
    json: bool = False,
) -> int:
    """Print the report of `assert_replica_invariant`.

    In an MPI job all processes train together, and the first one prints.

    Args:
        make: "FILE.py::name" of the function.
        data: Name of the data in the file, or of a function that returns them.
        replicas: Numbers of replicas.
        threads: Numbers of threads of each process.
        processes: Numbers of processes.
        steps: The number of training steps.
        batch_size: Number of examples of a global batch.
        seed: The random seed of each run.
        json: Print JSON.

    Returns:
        0 all are identical, 1 some differ or fail.

    Raises:
        CommandError: The program raises.
        ValueError: The file, or an object in it, cannot be used, or a number is below 1.
    """
    path, _, name = make.partition("::")
    if not name:
        raise CommandError(f"[verify] the program must be FILE.py::NAME: got {make!r}.")
    module = load_module(Path(path), "verify")
    function, values = named_in(module, name, "verify"), value_in(module, data, "verify")
    try:
        join()
        found = check(function, values, replicas, threads, processes, steps, batch_size, seed)
    except BAD_INPUT:
        raise
    except (Exception, SystemExit) as error:
        raise CommandError(
            f"[verify] {make} must train: it raised {type(error).__name__}: {error}; run it on one "
            "replica to see where."
        ) from error
    print(found.to_json() if json else found, flush=True)
    # A launcher kills the others as soon as one has ended with another status than 0.
    met("the report of verify", None)
    return EXIT_INVARIANT if found.invariant else EXIT_DIFFERENT
