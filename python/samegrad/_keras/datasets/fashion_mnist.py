"""Fashion-MNIST: 28x28 grey images of ten kinds of clothing (Xiao, Rasul, Vollgraf 2017)."""

from __future__ import annotations

import os
from pathlib import Path

from samegrad._keras.datasets import _locate
from samegrad._keras.datasets._idx import IdxFile
from samegrad._surface.boundary import guard

__all__ = ["CLASS_NAMES", "load_data"]

CLASS_NAMES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)

# The MD5 sums are those that the authors publish beside the files.
_DATASET = _locate.IdxDataset(
    name="fashion-mnist",
    files=(
        IdxFile(
            "train-images-idx3-ubyte",
            (60000, 28, 28),
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        ),
        IdxFile(
            "train-labels-idx1-ubyte",
            (60000,),
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "md5:25c81989df183df01b3e8a0aad5dffbe",
        ),
        IdxFile(
            "t10k-images-idx3-ubyte",
            (10000, 28, 28),
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "md5:bef4ecab320f06d8554ea6380940ec79",
        ),
        IdxFile(
            "t10k-labels-idx1-ubyte",
            (10000,),
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
            "md5:bb300cfdad3c16e7a12a480ee83cd310",
        ),
    ),
    mirrors=(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    ),
    system_folders=(Path("/usr/share/datasets/fashion-mnist"),),
    install_hint="on Debian or Ubuntu run `apt install dataset-fashion-mnist`",
)


def load_data(path: str | os.PathLike[str] | None = None) -> _locate.Arrays:
    """Load Fashion-MNIST; the hash of every file is checked.

    `path` is searched only, if given. Otherwise the folder named by `SAMEGRAD_DATA_DIR`, the user's
    cache, and `/usr/share/datasets/fashion-mnist` (Debian's package dataset-fashion-mnist) are
    searched. At last the files (31 MB) are downloaded into the cache with a progress bar.

    Args:
        path: Folder with the four IDX files, plain or `.gz`, itself or in a subfolder
            `fashion-mnist`.

    Returns:
        `((x_train, y_train), (x_test, y_test))`: uint8 arrays of shapes (60000, 28, 28),
        (60000,), (10000, 28, 28), (10000,); grey values 0 to 255, labels 0 to 9.

    Raises:
        FileNotFoundError: No copy was found or downloaded; the message names the ways.
        ValueError: A file is truncated or altered.

    Example:
        >>> from samegrad.keras.datasets import fashion_mnist
        >>> (x_train, y_train), _ = fashion_mnist.load_data()
        >>> fashion_mnist.CLASS_NAMES[y_train[0]]
        'Ankle boot'
    """
    return _locate.load(_DATASET, path)


guard(__name__)
