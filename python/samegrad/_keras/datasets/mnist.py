"""MNIST: 28x28 grey images of handwritten digits (LeCun, Cortes, Burges 1998)."""

from __future__ import annotations

import os

from samegrad._keras.datasets import _locate
from samegrad._keras.datasets._idx import IdxFile
from samegrad._surface.boundary import guard

__all__ = ["load_data"]

_NAME = "mnist.npz"
_DATASET = _locate.IdxDataset(
    name="mnist",
    files=(
        IdxFile(
            "train-images-idx3-ubyte",
            (60000, 28, 28),
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "sha256:440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        IdxFile(
            "train-labels-idx1-ubyte",
            (60000,),
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "sha256:3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
        IdxFile(
            "t10k-images-idx3-ubyte",
            (10000, 28, 28),
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "sha256:8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        IdxFile(
            "t10k-labels-idx1-ubyte",
            (10000,),
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            "sha256:f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ),
    mirrors=(
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
    ),
)


def load_data(path: str | os.PathLike[str] | None = _NAME) -> _locate.Arrays:
    """Load MNIST; the hash of every file is checked.

    `path` is searched only, if given. Otherwise the folder named by `SAMEGRAD_DATA_DIR` and the
    user's cache are searched. At last the files (12 MB) are downloaded into the cache with a
    progress bar.

    Args:
        path: Folder with the four IDX files, plain or `.gz`, itself or in a subfolder `mnist`.
            Keras's name of its own file and None mean the usual places.

    Returns:
        `((x_train, y_train), (x_test, y_test))`: uint8 arrays of shapes (60000, 28, 28),
        (60000,), (10000, 28, 28), (10000,); grey values 0 to 255, labels 0 to 9.

    Raises:
        FileNotFoundError: No copy was found or downloaded; the message names the ways.
        ValueError: A file is truncated or altered.

    Example:
        >>> from samegrad.keras.datasets import mnist
        >>> (x_train, y_train), _ = mnist.load_data()  # doctest: +SKIP
        >>> x_train.shape  # doctest: +SKIP
        (60000, 28, 28)
    """
    return _locate.load(_DATASET, None if path == _NAME else path)


guard(__name__)
