"""A command of `samegrad` as a rank of a job, on made-up data: `command.py NAME OPTIONS...`.

`fail`, as the first word, makes rank 1 find no data, before it has joined the job.
"""

import os
import sys

import numpy as np

from samegrad import cli
from samegrad.keras.datasets import fashion_mnist

words = sys.argv[1:]
fails = words[0] == "fail"
rng = np.random.default_rng(0)
images = rng.integers(0, 256, (40, 28, 28)).astype(np.uint8)
labels = rng.integers(0, 10, 40).astype(np.uint8)


def load_data(path=None):
    if fails and os.environ.get("PMI_RANK", os.environ.get("PMIX_RANK")) == "1":
        raise FileNotFoundError(2, "No such file or directory", "train-images-idx3-ubyte.gz")
    return (images, labels), (images[20:], labels[20:])


fashion_mnist.load_data = load_data
os.environ.setdefault("SAMEGRAD_MPI_TIMEOUT", "30")
sys.exit(cli.main(words[1:] if fails else words))
