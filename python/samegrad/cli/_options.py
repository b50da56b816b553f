"""The arguments of `samegrad fashion-mnist`."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

_T = TypeVar("_T", int, float)


@dataclass(frozen=True)
class FashionMnistOptions:
    """What was asked for; the names are those of the arguments."""

    replicas: int
    batch_size: int
    epochs: int
    learning_rate: float
    seed: int
    split: str | None
    threads: int | None
    data_dir: Path | None
    checkpoint_dir: Path
    resume: bool
    overwrite: bool
    log: Path | None
    fingerprint: bool
    plot: Path | None
    limit: int | None
    steps: int | None
    arguments: tuple[str, ...]  # as typed, for the line that says how to resume

    @property
    def global_batch_size(self) -> int:
        """Examples of all replicas in one step."""
        return self.replicas * self.batch_size


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds all arguments of the command."""
    add = parser.add_argument
    add("--replicas", type=_count, default=1, metavar="N", help="number of replicas [1]")
    add("--batch-size", type=_count, default=64, metavar="N", help="examples per replica [64]")
    add("--epochs", type=_count, default=10, metavar="N", help="times through the data [10]")
    add("--learning-rate", type=_rate, default=1e-3, metavar="X", help="of Adam [0.001]")
    add("--seed", type=_seed, default=0, metavar="N", help="of weights and data order [0]")
    add(
        "--split",
        choices=["chunks", "balanced"],
        help="how a batch is shared out: equal chunks, the last ones shorter (the default), or "
        "balanced shares, which give the bits of one replica for batches of any size",
    )
    add("--threads", type=_count, metavar="N", help="CPU threads [all cores]")
    add("--data-dir", type=Path, metavar="DIR", help="folder with the Fashion-MNIST files")
    add(
        "--checkpoint-dir",
        type=Path,
        default=Path("training_checkpoints"),
        metavar="DIR",
        help="where checkpoints go [training_checkpoints]",
    )
    _add_earlier_run(parser)
    add(
        "--log",
        type=Path,
        metavar="FILE",
        help="write the loss of every step and the figures of every epoch, a JSON object per "
        "line; equal runs write equal files",
    )
    add(
        "--fingerprint",
        action="store_true",
        help="log a 64-bit hash of the weights after every step, and print the last one",
    )
    add(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw the curves, e.g. into a .png; with --resume, earlier steps come from --log",
    )
    add("--limit", type=_count, metavar="N", help="use only the first N examples")
    add("--steps", type=_count, metavar="N", help="save and stop after N steps in all")
    parser.epilog = (
        "Ctrl-C, and SIGTERM as job schedulers send it, end the run after the step that is being "
        "done, with a checkpoint. Exit status: 0 done, 2 bad input, 130 stopped by Ctrl-C, 143 "
        "stopped by SIGTERM."
    )


def _add_earlier_run(parser: argparse.ArgumentParser) -> None:
    """What becomes of a run that is there already."""
    earlier = parser.add_mutually_exclusive_group()
    earlier.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    earlier.add_argument(
        "--overwrite",
        action="store_true",
        help="begin anew, although the folder of checkpoints or the log holds a run: its "
        "checkpoints are deleted, and its log is emptied",
    )


def _count(text: str) -> int:
    return _checked(text, int, lambda value: value >= 1, "a whole number, at least 1")


def _seed(text: str) -> int:
    return _checked(text, int, lambda value: 0 <= value < 2**63, "a whole number from 0 to 2^63-1")


def _rate(text: str) -> float:
    return _checked(text, float, lambda value: 0 < value < math.inf, "a number above 0")


def _checked(text: str, kind: type[_T], accepts: Callable[[_T], bool], rule: str) -> _T:
    try:
        value = kind(text)
        if accepts(value):
            return value
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"must be {rule}: got {text!r}")
