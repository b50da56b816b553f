"""Files distributed to processes: `own_files.py KIND FOLDER REPLICAS [POLICY]`.

Prints the rows of each global batch, and which files this process has opened.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

import samegrad as tf
from samegrad.distribute import mpi

kind, folder, total = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
policy = sys.argv[4] if len(sys.argv) > 4 else "FILE"
strategy = tf.distribute.MultiWorkerMirroredStrategy(total_replicas=total, timeout=60)
opened = set()


def watch(event, details):
    if event == "open" and isinstance(details[0], str | bytes):
        path = Path(details[0].decode() if isinstance(details[0], bytes) else details[0])
        if path.parent == folder:
            opened.add(path.name)


sys.addaudithook(watch)


def number(text):
    return tf.strings.to_number(text, tf.int64)


def read(path):
    return number(tf.strings.strip(tf.strings.split(tf.io.read_file(path), "\n")[0]))


def numbered(path):
    return tf.data.TextLineDataset(path).map(number)


names = sorted(str(path) for path in folder.glob("*.txt"))
records = sorted(str(path) for path in folder.glob("*.tfrecord"))
pattern = str(folder / "*.txt")
D = tf.data.Dataset
KINDS = {
    "interleave": lambda: D.list_files(pattern, shuffle=False).interleave(numbered, 2).batch(6),
    "flat_map": lambda: D.list_files(pattern, seed=3).flat_map(numbered).batch(6).prefetch(2),
    "records": lambda: tf.data.TFRecordDataset(records).map(number).batch(6),
    "map": lambda: D.from_tensor_slices((names, np.arange(len(names)))).map(
        lambda path, label: read(path) * 0 + label
    ).batch(3),
    "dropped": lambda: tf.data.TextLineDataset(names).map(number).batch(6, drop_remainder=True),
    "taken": lambda: D.from_tensor_slices(names).take(2).flat_map(numbered).batch(6),
    "cached": lambda: tf.data.TextLineDataset(names).map(number).cache(str(folder / "kept"))
    .batch(6),
    "names kept": lambda: D.from_tensor_slices(names).cache(str(folder / "names"))
    .interleave(numbered, 2).batch(6),
    "own kept": lambda: D.range(100).shard(mpi.size(), mpi.rank())
    .cache(str(folder / "own")).batch(6),
    "shuffled": lambda: D.list_files(pattern).flat_map(numbered).shuffle(100).batch(6),
    "draws": lambda: tf.data.TextLineDataset(names).map(
        lambda text: tf.random.uniform([])
    ).batch(6),
    "padded": lambda: tf.data.TextLineDataset(names).map(
        lambda text: tf.range(number(text) % 5 + 1)
    ).padded_batch(6, padded_shapes=[5]),
    "own": lambda: D.range(100).shuffle(100).shard(mpi.size(), mpi.rank()).batch(6),
    "generator": lambda: D.from_generator(lambda: iter([1]), output_types="int64").batch(6),
    "unbatched": lambda: tf.data.TextLineDataset(names).map(number),
    "other": lambda: tf.data.TextLineDataset(names[mpi.rank() :]).map(number).batch(6),
    "fewer": lambda: tf.data.TextLineDataset(names[: 5 - 4 * mpi.rank()]).map(number)
    .batch(6),
    "ends": lambda: tf.data.TextLineDataset(names).map(number).batch(6 if mpi.rank() else 1),
    "damaged": lambda: tf.data.TextLineDataset(names).map(
        lambda text: number(text if int(number(text)) != 12 else "a word")
    ).batch(2),
    "csv": lambda: tf.data.experimental.CsvDataset(names, [tf.int64]).map(lambda x: x).batch(6),
    "zipped": lambda: D.zip((D.list_files(pattern), D.range(5).map(lambda n: n)))
    .flat_map(lambda path, n: numbered(path)).batch(6),
    "joined": lambda: tf.data.TextLineDataset(names[:2]).concatenate(
        tf.data.TextLineDataset(names[2:])
    ).map(number).apply(tf.data.experimental.assert_cardinality(25)).batch(6),
    "rebatched": lambda: tf.data.TextLineDataset(names).map(number).batch(4).rebatch(6),
    "empty": lambda: tf.data.TextLineDataset(names).filter(lambda text: number(text) < 3)
    .map(number).batch(6),
    "none": lambda: tf.data.TextLineDataset(names).map(number).filter(lambda n: n < 0).batch(6),
    "small": lambda: tf.data.TextLineDataset(names).map(number).batch(2),
    "broken": lambda: tf.data.TextLineDataset(names).map(
        lambda text: tf.range(number(text) % 5 + 1)
    ).padded_batch(6),
}  # fmt: skip
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy[policy]
data = strategy.experimental_distribute_dataset(KINDS[kind]().with_options(options))


def say(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


for epoch in range(2):
    iterator = iter(data)
    for batch in iterator:
        sizes = [int(part.shape[0]) for part in strategy.experimental_local_results(batch)]
        rows = np.asarray(strategy.gather(batch, axis=0))
        total = strategy.run(lambda rows: tf.reduce_sum(tf.cast(rows, tf.float64)), args=(batch,))
        assert np.isclose(float(strategy.reduce("SUM", total, axis=None)), rows.sum())
        say(f"epoch {epoch}: {rows.tolist()}")
        say(f"sizes {mpi.rank()}: {sizes}")
    assert next(iterator, None) is None
if kind == "map":
    say(f"batches: {len(data)}")
if kind == "interleave":  # goes on from a place within an epoch
    first = iter(data)
    next(first), next(first)
    place = dict(first._checkpoint_state())
    again = iter(data)
    again._restore_state(place)
    same = np.asarray(strategy.gather(next(again), axis=0))
    assert (same == np.asarray(strategy.gather(next(first), axis=0))).all()
    with pytest.raises(ValueError, match="goes on with as many"):
        again._restore_state({**place, "processes": mpi.size() + 1})
say(f"opened {mpi.rank()}: {sorted(opened)}")
