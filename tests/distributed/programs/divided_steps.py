"""Steps of a few lines on divisions of a batch over all ranks: as one replica gives."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "contract"))

import division_calls  # noqa: F401  (adds to CASES)
import division_cases  # noqa: F401
import division_models  # noqa: F401
from divided import CASES, DIVISIONS, LAYOUTS, results

import samegrad as tf
from samegrad.testing import assert_same_bits

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
        place = f"{name}, {kind}, {replicas}"
        try:
            if found:  # rows are those of each process
                same = {key: expected[key] for key in found}
                assert_same_bits({place: same}, {place: found})
        except AssertionError as error:
            tell(error)
    tf.keras.config.set_dtype_policy("float32")
tell("done")
