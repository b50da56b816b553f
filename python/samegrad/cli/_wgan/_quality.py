"""Metrics of generated images that need no download."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import samegrad as tf
from samegrad.cli._errors import CommandError
from samegrad.cli._wgan._steps import WHO
from samegrad.cli.fashion_mnist import create_model

Images = npt.NDArray[np.float32]
SAMPLES = 2000
_DIRECTIONS = 256
_ROWS = 500  # of images that are looked at together


def sliced_wasserstein(one: Images, other: Images, directions: int = _DIRECTIONS) -> float:
    """The mean Wasserstein-1 distance of two samples along random directions.

    Rabin et al., 2011, Wasserstein barycenter and its application to texture mixing. Along a line,
    the distance of two samples of one size is the mean difference of their sorted values.

    Args:
        one: `[n, ...]`.
        other: As many.
        directions: How many; they are the same in every call.

    Returns:
        The distance, in units of the values.

    Raises:
        ValueError: The samples are not of one size.

    Example:
        >>> x = np.zeros((4, 3), np.float32)
        >>> sliced_wasserstein(x, x)
        0.0
        >>> round(sliced_wasserstein(x, x + 1.0))  # sqrt(3) times the mean of |cos|, 1/2
        1
    """
    if one.shape != other.shape:
        raise ValueError(
            f"[sliced_wasserstein] both samples must have one shape: got {one.shape} and "
            f"{other.shape}."
        )
    rng = np.random.default_rng(0)
    lines = rng.normal(size=(int(np.prod(one.shape[1:])), directions)).astype(np.float32)
    lines /= np.linalg.norm(lines, axis=0)
    sorted_values = [np.sort(x.reshape(len(x), -1) @ lines, axis=0) for x in (one, other)]
    return float(np.abs(sorted_values[0] - sorted_values[1]).mean(dtype=np.float64))


class Classifier:
    """The network of `samegrad fashion-mnist`, as it was saved.

    Args:
        folder: Of its checkpoints.

    Raises:
        CommandError: There is none.
    """

    def __init__(self, folder: Path) -> None:
        path = tf.train.latest_checkpoint(folder)
        if path is None:
            raise CommandError(
                f"[{WHO}] --classifier must be a folder of checkpoints: got {folder} without one. "
                "Run `samegrad fashion-mnist` first, and give its --checkpoint-dir."
            )
        model = create_model()
        model.build((None, 28, 28, 1))
        try:
            tf.train.Checkpoint(model=model).restore(path).expect_partial()
        except tf.train.CorruptCheckpointError:
            raise
        except (ValueError, MemoryError) as error:
            raise CommandError(
                f"[{WHO}] --classifier must be of `samegrad fashion-mnist`: {error}"
            ) from error
        self._chances = tf.function(lambda images: tf.nn.softmax(model(images, training=False)))

    def figures(self, images: Images) -> dict[str, float]:
        """Return the confidence of the network in images `[n, 28, 28, 1]` from -1 to 1.

        Returns:
            `confidence`, the mean of the largest class probability; `entropy`, the mean entropy of
            the classes of an image, in nats; `class_entropy`, that of the classes of all images,
            at most ln 10 = 2.30, less where kinds of clothes are missing.
        """
        parts = [self._chances((part + 1) / 2).numpy() for part in _parts(images)]
        chances = np.concatenate(parts).astype(np.float64)
        return {
            "confidence": float(chances.max(axis=1).mean()),
            "entropy": float(_entropy(chances).mean()),
            "class_entropy": float(_entropy(chances.mean(axis=0))),
        }


def judge(
    steps: Any, noise: Images, test_images: Images, classifier: Classifier | None
) -> dict[str, float]:
    """The figures of a generator's images.

    Args:
        steps: A `WganSteps`.
        noise: `[n, NOISE]`.
        test_images: As many, from -1 to 1.
        classifier: None: only the distance.
    """
    images = np.concatenate([steps.images(part) for part in _parts(noise)])
    figures = {"sliced_wasserstein": sliced_wasserstein(images, test_images)}
    return figures if classifier is None else {**figures, **classifier.figures(images)}


def _parts(rows: Images) -> list[Images]:
    return [rows[start : start + _ROWS] for start in range(0, len(rows), _ROWS)]


def _entropy(chances: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = -(chances * np.log(np.maximum(chances, 1e-300))).sum(axis=-1)
    return found
