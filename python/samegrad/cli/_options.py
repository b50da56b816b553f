"""Options of the training commands."""

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
    """Options of the command, by the names of its arguments."""

    replicas: int
    batch_size: int
    epochs: int
    learning_rate: float
    seed: int
    threads: int | None
    data_dir: Path | None
    checkpoint_dir: Path
    save_every: int
    resume: bool
    overwrite: bool
    log: Path | None
    fingerprint: bool
    plot: Path | None
    limit: int | None
    steps: int | None
    arguments: tuple[str, ...]  # as typed, for resume_command()

    @property
    def global_batch_size(self) -> int:
        """Return the number of examples of all replicas in one step."""
        return self.replicas * self.batch_size


@dataclass(frozen=True)
class WganGpOptions:
    """Options of the command, by the names of its arguments."""

    replicas: int
    batch_size: int
    iterations: int
    n_critic: int
    lipschitz: str
    penalty_weight: float
    clip: float
    learning_rate: float | None
    schedule: str
    width: int
    seed: int
    threads: int | None
    data_dir: Path | None
    checkpoint_dir: Path
    save_every: int
    resume: bool
    overwrite: bool
    log: Path | None
    fingerprint: bool
    plot: Path | None
    grid: Path | None
    classifier: Path | None
    quality_every: int
    limit: int | None
    steps: int | None
    arguments: tuple[str, ...]

    @property
    def global_batch_size(self) -> int:
        """Return the number of examples of all replicas in one step."""
        return self.replicas * self.batch_size

    @property
    def rate(self) -> float:
        """Return the initial learning rate."""
        usual = 5e-4 if self.lipschitz == "gp" else 2e-4
        return usual if self.learning_rate is None else self.learning_rate


@dataclass(frozen=True)
class TranslateOptions:
    """Options of the command, by the names of its arguments."""

    pairs: Path | None
    packages: tuple[str, ...]
    language: str
    replicas: int
    batch_tokens: int
    accumulate_tokens: int | None
    epochs: int
    normalization: str
    smoothing: float
    layers: int
    width: int
    heads: int
    dropout: float
    vocabulary: int
    max_length: int
    held_out: float
    rate_factor: float
    warm_up: int
    clip_norm: float
    beams: int
    average_checkpoints: int | None
    mixed_bfloat16: bool
    seed: int
    threads: int | None
    checkpoint_dir: Path
    resume: bool
    overwrite: bool
    log: Path | None
    fingerprint: bool
    limit: int | None
    steps: int | None
    arguments: tuple[str, ...]
    bleu: bool = False  # True if sacrebleu is installed

    @property
    def global_batch_tokens(self) -> int:
        """Return the maximum number of tokens of all replicas in one step."""
        return self.replicas * self.batch_tokens


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `samegrad fashion-mnist`."""
    add = parser.add_argument
    _add_replicas(parser, 64)
    add("--epochs", type=_count, default=10, metavar="N", help="times through the data [10]")
    add("--learning-rate", type=_rate, default=1e-3, metavar="X", help="of Adam [0.001]")
    _add_determinants(parser)
    _add_files(parser, "training_checkpoints")
    _add_save_every(parser, 2, "epochs")
    add(
        "--log",
        type=Path,
        metavar="FILE",
        help="write the loss of every step and the results of every epoch, one JSON object per "
        "line; equal runs write equal files",
    )
    _add_plot(parser, "steps")
    add("--limit", type=_count, metavar="N", help="use only the first N examples")
    add("--steps", type=_count, metavar="N", help="save and stop after N steps in all")
    parser.epilog = _ENDS.format("step")


def add_gan_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `samegrad wgan-gp`."""
    add = parser.add_argument
    _add_replicas(parser, 32)
    add("--iterations", type=_count, default=2000, metavar="N",
        help="updates of the generator [2000]")  # fmt: skip
    _add_losses(parser)
    add(
        "--learning-rate",
        type=_rate,
        metavar="X",
        help="of both optimizers, Adam [0.0005] or, with --lipschitz clip, RMSprop [0.0002]; may "
        "change after --resume",
    )
    add(
        "--schedule",
        choices=["constant", "linear", "cosine"],
        default="cosine",
        help="decay of the learning rate to a hundredth over the iterations [cosine]",
    )
    add("--width", type=_count, default=32, metavar="N",
        help="channels of the models' outer convolutions [32]")  # fmt: skip
    _add_determinants(parser)
    _add_files(parser, "wgan_checkpoints")
    _add_save_every(parser, 500, "iterations")
    add(
        "--log",
        type=Path,
        metavar="FILE",
        help="write the results of every iteration, one JSON object per line; equal runs write "
        "equal files",
    )
    _add_plot(parser, "iterations")
    add("--grid", type=Path, metavar="FILE", help="draw 64 generated images, e.g. into a .png")
    add(
        "--classifier",
        type=Path,
        metavar="DIR",
        help="checkpoints of `samegrad fashion-mnist`: print how confident its network is",
    )
    add("--quality-every", type=_count, default=500, metavar="N",
        help="evaluate the images every N iterations [500]")  # fmt: skip
    add("--limit", type=_count, metavar="N", help="use only the first N images")
    add("--steps", type=_count, metavar="N", help="save and stop after N iterations in all")
    parser.epilog = _ENDS.format("iteration")


def add_translate_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `samegrad translate`."""
    add = parser.add_argument
    _add_sentences(parser)
    add("--replicas", type=_count, default=1, metavar="N", help="number of replicas [1]")
    add("--batch-tokens", type=_count, default=512, metavar="N",
        help="tokens per replica and batch, padding included [512]")  # fmt: skip
    add("--accumulate-tokens", type=_count, metavar="N",
        help="accumulate the gradients of batches up to N tokens [one batch]")  # fmt: skip
    add("--epochs", type=_count, default=30, metavar="N", help="times through the data [30]")
    add(
        "--normalization",
        choices=["tokens", "sentences"],
        default="tokens",
        help="unit of the loss: the mean over tokens of all replicas (default) or over sentences",
    )
    _add_transformer(parser)
    _add_determinants(parser)
    _add_checkpoints(parser, "translate_checkpoints")
    add(
        "--log",
        type=Path,
        metavar="FILE",
        help="write the loss of every step and the results of every epoch, one JSON object per "
        "line; equal runs write equal files",
    )
    _add_fingerprint(parser)
    add("--limit", type=_count, metavar="N", help="use only the first N pairs")
    add("--steps", type=_count, metavar="N", help="save and stop after N steps in all")
    parser.epilog = _ENDS.format("step")


def _add_sentences(parser: argparse.ArgumentParser) -> None:
    """Add the options of the data."""
    add = parser.add_argument
    add(
        "--pairs",
        type=Path,
        metavar="FILE.tsv",
        help="UTF-8 file with lines of source, tab, target [messages of installed packages]",
    )
    add("--packages", nargs="+", default=("django",), metavar="NAME",
        help="packages whose messages are used without --pairs [django]")  # fmt: skip
    add("--language", default="fr", metavar="NAME", help="of their translations [fr]")
    add("--vocabulary", type=_count, default=1000, metavar="N",
        help="number of subwords of both languages [1000]")  # fmt: skip
    add("--max-length", type=_count, default=64, metavar="N",
        help="leave out pairs of N or more tokens [64]")  # fmt: skip
    add("--held-out", type=_share, default=0.05, metavar="X",
        help="fraction of the pairs that are held out [0.05]")  # fmt: skip


def _add_transformer(parser: argparse.ArgumentParser) -> None:
    """Add the options of the model and its training."""
    add = parser.add_argument
    add("--layers", type=_count, default=2, metavar="N", help="of encoder and decoder [2]")
    add("--width", type=_count, default=128, metavar="N", help="of the model [128]")
    add("--heads", type=_count, default=4, metavar="N", help="of each attention [4]")
    add("--dropout", type=_below_1, default=0.1, metavar="X", help="rate [0.1]")
    add("--smoothing", type=_below_1, default=0.1, metavar="X", help="of the labels [0.1]")
    add("--rate-factor", type=_rate, default=0.7, metavar="X",
        help="factor of the learning rates of the schedule [0.7]")  # fmt: skip
    add("--warm-up", type=_count, default=150, metavar="N",
        help="steps until the largest learning rate [150]")  # fmt: skip
    add("--clip-norm", type=_rate, default=1.0, metavar="X",
        help="maximum global norm of the gradients [1]")  # fmt: skip
    add("--beams", type=_count, default=1, metavar="N",
        help="width of the beam search [1]")  # fmt: skip
    add(
        "--average-checkpoints",
        type=_count,
        metavar="K",
        help="at the end, average the weights of the last K epochs, evaluate the averaged model, "
        "translate with it, and save it as `averaged` next to the checkpoints",
    )
    add(
        "--mixed-bfloat16",
        action="store_true",
        help="compute layers in bfloat16, with weights in float32. The kernels compute in float32 "
        "and round to bfloat16, which is not faster",
    )


def _add_losses(parser: argparse.ArgumentParser) -> None:
    """Add the options of the critic's training."""
    add = parser.add_argument
    add("--n-critic", type=_count, default=2, metavar="N",
        help="updates of the critic for each of the generator [2]")  # fmt: skip
    add(
        "--lipschitz",
        choices=["gp", "clip"],
        default="gp",
        help="1-Lipschitz constraint of the critic: a gradient penalty (gp, default) or clipped "
        "weights (clip)",
    )
    add("--lambda", dest="penalty_weight", type=_weight, default=10.0, metavar="X",
        help="weight of the penalty [10]; may change after --resume")  # fmt: skip
    add("--clip", type=_rate, default=0.03, metavar="X",
        help="bound of the weights with --lipschitz clip [0.03]")  # fmt: skip


_ENDS = (
    "Ctrl-C and SIGTERM end the run after the current {} and save a checkpoint. Exit status: 0 "
    "done, 2 bad input, 130 stopped by Ctrl-C, 143 stopped by SIGTERM."
)


def _add_replicas(parser: argparse.ArgumentParser, batch_size: int) -> None:
    add = parser.add_argument
    add("--replicas", type=_count, default=1, metavar="N", help="number of replicas [1]")
    add("--batch-size", type=_count, default=batch_size, metavar="N",
        help=f"examples per replica [{batch_size}]")  # fmt: skip


def _add_determinants(parser: argparse.ArgumentParser) -> None:
    """Add the options that determine the results, and the number of threads."""
    add = parser.add_argument
    add("--seed", type=_seed, default=0, metavar="N", help="of weights and data order [0]")
    add("--threads", type=_count, metavar="N", help="CPU threads [all cores]")


def _add_files(parser: argparse.ArgumentParser, checkpoints: str) -> None:
    """Add the folders of data and checkpoints."""
    add = parser.add_argument
    add("--data-dir", type=Path, metavar="DIR", help="folder with the Fashion-MNIST files")
    _add_checkpoints(parser, checkpoints)


def _add_checkpoints(parser: argparse.ArgumentParser, checkpoints: str) -> None:
    add = parser.add_argument
    add(
        "--checkpoint-dir",
        type=Path,
        default=Path(checkpoints),
        metavar="DIR",
        help=f"where checkpoints go [{checkpoints}]",
    )
    _add_earlier_run(parser)


def _add_save_every(parser: argparse.ArgumentParser, default: int, unit: str) -> None:
    parser.add_argument("--save-every", type=_count, default=default, metavar="N",
                        help=f"save a checkpoint every N {unit} [{default}]")  # fmt: skip


def _add_plot(parser: argparse.ArgumentParser, steps: str) -> None:
    _add_fingerprint(parser)
    add = parser.add_argument
    add(
        "--plot",
        type=Path,
        metavar="FILE",
        help=f"draw the curves, e.g. into a .png; with --resume, earlier {steps} come from --log",
    )


def _add_fingerprint(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fingerprint",
        action="store_true",
        help="log the fingerprint of the model after every step, and print the last one",
    )


def _add_earlier_run(parser: argparse.ArgumentParser) -> None:
    """Add the options for a folder with an earlier run."""
    earlier = parser.add_mutually_exclusive_group()
    earlier.add_argument("--resume", action="store_true", help="continue from the last checkpoint")
    earlier.add_argument(
        "--overwrite",
        action="store_true",
        help="start a new run: delete the checkpoints in --checkpoint-dir, and empty the log",
    )


def _count(text: str) -> int:
    return _checked(text, int, lambda value: value >= 1, "an integer >= 1")


def _seed(text: str) -> int:
    return _checked(text, int, lambda value: 0 <= value < 2**63, "an integer from 0 to 2^63-1")


def _rate(text: str) -> float:
    return _checked(text, float, lambda value: 0 < value < math.inf, "a number > 0")


def _weight(text: str) -> float:
    return _checked(text, float, lambda value: 0 <= value < math.inf, "a number >= 0")


def _share(text: str) -> float:
    return _checked(text, float, lambda value: 0 < value < 1, "a number > 0 and < 1")


def _below_1(text: str) -> float:
    return _checked(text, float, lambda value: 0 <= value < 1, "a number >= 0 and < 1")


def _checked(text: str, kind: type[_T], accepts: Callable[[_T], bool], rule: str) -> _T:
    try:
        value = kind(text)
        if accepts(value):
            return value
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"must be {rule}: got {text!r}")
