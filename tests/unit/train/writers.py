"""A process that saves one checkpoint again and again: `python writers.py FOLDER VALUE COUNT`."""

from __future__ import annotations

import sys

import numpy as np

from samegrad.train import Checkpoint, CheckpointManager

SIZE = 3000


def objects(value: float) -> Checkpoint:
    return Checkpoint(a=np.full(SIZE, value), b=np.full(SIZE, value))


if __name__ == "__main__":
    folder, value, count = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    print("ready", flush=True)
    for number in range(count):
        root = objects(value + number)
        root.write(folder + "/same")
        manager = CheckpointManager(root, folder, max_to_keep=2)
        manager.save(checkpoint_number=number % 5)
