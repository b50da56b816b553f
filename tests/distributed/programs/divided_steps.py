"""Steps of a few lines on divisions of a batch over all ranks: as one replica gives."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "contract"))

import division_calls  # noqa: F401  (adds to CASES)
import division_cases  # noqa: F401
import division_models  # noqa: F401
from divided import CASES, DIVISIONS, LAYOUTS, assert_same_bits, results

import samegrad as tf

rank, ranks = tf.distribute.mpi.rank(), tf.distribute.mpi.size()


def tell(line):
    """Write a line at once: the ranks have one output."""
    sys.stdout.write(f"rank {rank}: {line}\n")
    sys.stdout.flush()


def over_ranks(replicas):
    return tf.distribute.MultiWorkerMirroredStrategy(total_replicas=replicas)


for name, case in CASES.items():
    n = case.batches[-1]
    expected = results(case, n, "chunks", 1, "slices")
    for i, (kind, replicas) in enumerate(DIVISIONS):
        if replicas < ranks:
            continue
        found = results(case, n, kind, replicas, LAYOUTS[i % len(LAYOUTS)], over_ranks)
        try:
            for key, value in found.items():
                assert_same_bits(expected[key], value, f"{name}, {kind}, {replicas}: {key}")
        except AssertionError as error:
            tell(error)
    tf.keras.config.set_dtype_policy("float32")
tell("done")
