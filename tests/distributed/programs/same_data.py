"""`same_data.py FOLDER`: ranks distribute datasets that are the same, or differ in one thing.

Says of each dataset whether it was accepted, and else the error.
"""

import pathlib
import sys
import warnings

import numpy as np

import samegrad as tf

folder = pathlib.Path(sys.argv[1])
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    tf.distribute.MirroredStrategy(replicas=2)
    tf.distribute.MirroredStrategy()
sys.stdout.write(f"warnings: {[str(warning.message) for warning in told]}\n")
strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank = strategy.cluster_resolver.task_id
Dataset, Policy = tf.data.Dataset, tf.data.experimental.AutoShardPolicy
own = folder / str(rank)
own.mkdir()
(folder / "all").mkdir(exist_ok=True)
for number in range(3):
    (folder / "all" / f"{number}.txt").write_text("line\n" * 4)
    (own / f"{number}.txt").write_text("line\n" * 4)
    (own / f"{number}.long").write_text("line\n" * (4 + rank * (number == 2)))
rows = np.arange(24.0, dtype=np.float32).reshape(12, 2)
large = np.zeros(3 << 26, np.uint8)  # of which a sample is read
numbers = Dataset.range(12)


def with_policy(data, policy):
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = policy
    return data.with_options(options)


def generated():
    for n in range(4):
        yield np.float32(n + rank)


def after_a_draw():
    """A shuffle without a seed of its own, after rank 1 has drawn something."""
    tf.random.set_seed(1)
    if rank:
        tf.random.uniform([1])
    return numbers.shuffle(12).batch(4)


def with_seed(seed):
    tf.random.set_seed(seed)
    return numbers.shuffle(12).batch(4)


class Mapping:
    """A function whose address and state are those of its process."""

    def __init__(self):
        self.rank = rank

    def __call__(self, x):
        return x


slices = Dataset.from_tensor_slices
DIFFERENT = {
    "values of an array": lambda: slices(rows + rank).batch(4),
    "shape of an array": lambda: slices(np.ones([12 + 4 * rank, 2], np.float32)).batch(4),
    "dtype of an array": lambda: slices(rows.astype("float64" if rank else "float32")).batch(4),
    "one of two arrays": lambda: slices((rows, rows[:, 0] * (1 + rank))).batch(4),
    "a large array": lambda: slices(large + np.uint8(rank)).batch(4),
    "strings": lambda: slices([f"{n + rank}" for n in range(12)]).map(tf.strings.length).batch(4),
    "seed of shuffle": lambda: numbers.shuffle(12, seed=rank).batch(4),
    "buffer of shuffle": lambda: numbers.shuffle(4 + rank, seed=1).batch(4),
    "process's seed": lambda: with_seed(rank),
    "draws before": after_a_draw,
    "order": lambda: (
        numbers.shuffle(12, seed=1).repeat(2).batch(4)
        if rank
        else numbers.repeat(2).shuffle(12, seed=1).batch(4)
    ),
    "shard": lambda: numbers.shard(2, rank).batch(4),
    "take": lambda: numbers.take(8 + rank).batch(4),
    "size of a batch": lambda: numbers.batch(4 + rank),
    "one transformation more": lambda: numbers.skip(2).batch(4) if rank else numbers.batch(4),
    "sizes of files": lambda: (
        tf.data.TextLineDataset([str(own / f"{n}.long") for n in range(3)])
        .map(tf.strings.length)
        .batch(4)
    ),
    "names of files": lambda: (
        Dataset.list_files([str(own / "0.txt"), str(own / f"{1 + rank}.txt")], shuffle=False)
        .map(tf.strings.length)
        .batch(2)
    ),
}
SAME = {
    "arrays": lambda: slices({"x": rows, "y": rows[:, 0]}).shuffle(12, seed=1).batch(4),
    "no seed": lambda: with_seed(3),
    "functions": lambda: numbers.map(lambda x: x * 2 if rank else x + 0).batch(4),
    "objects": lambda: numbers.map(Mapping()).filter(lambda x: x >= 0).batch(4),
    "caches and prefetching": lambda: numbers.map(lambda x: x).batch(4)
    if rank
    else numbers.cache().map(lambda x: x, num_parallel_calls=2).cache().batch(4).prefetch(3),
    "files in folders of their own": lambda: tf.data.TextLineDataset(
        [str(own / f"{n}.txt") for n in range(3)]
    ).map(tf.strings.length).batch(4),
    "cache in files of their own": lambda: numbers.cache(str(own / "cache")).batch(4),
    "generators": lambda: Dataset.from_generator(
        generated, output_signature=tf.TensorSpec([], tf.float32)
    ).take(3 + rank).batch(2),
    "policy OFF": lambda: with_policy(numbers.shard(2, rank).batch(4), Policy.OFF),
    "policy FILE": lambda: with_policy(
        tf.data.TextLineDataset([str(folder / "all" / f"{n}.txt") for n in range(2)])
        .map(tf.strings.length).batch(4),
        Policy.FILE,
    ),
    "ragged rows": lambda: slices(tf.ragged.constant([[1], [2, 3]] * 3)).padded_batch(2),
    "windows": lambda: numbers.window(3).flat_map(lambda w: w.batch(3)),
}  # fmt: skip
for name, make in {**DIFFERENT, **SAME}.items():
    try:
        strategy.experimental_distribute_dataset(make())
    except ValueError as error:
        sys.stdout.write(f"{name}: {error}\n")
    else:
        sys.stdout.write(f"{name}: accepted\n")


def iterate(name, data):
    """Rank 0 has looked at the dataset before, which makes this an epoch later there."""
    shared = strategy.experimental_distribute_dataset(data)
    if rank == 0:
        iter(shared)
    try:
        next(iter(shared))
    except ValueError as error:
        sys.stdout.write(f"{name}: {error}\n")
    else:
        sys.stdout.write(f"{name}: accepted\n")


iterate("epoch of a shuffled dataset", numbers.shuffle(12, seed=1).batch(4))
iterate("epoch of a dataset in its order", numbers.batch(4))
strategy.distribute_datasets_from_function(lambda context: numbers.take(4 + rank).batch(2))
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input([2]), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")


def fit(name, x, seed=1, **options):
    tf.keras.utils.set_random_seed(1)
    np.random.seed(seed)
    try:
        model.fit(x, batch_size=4 if "y" in options else None, verbose=0, **options)
    except ValueError as error:
        sys.stdout.write(f"{name}: {error}\n")
    else:
        sys.stdout.write(f"{name}: accepted\n")


rows_of_two = slices((rows, rows[:, 0]))
pairs = [(rows[n : n + 4] + rank, rows[n : n + 4, 0]) for n in (0, 4, 8)]
fit("arrays of fit", rows + rank, y=rows[:, 0])
fit("order of fit", rows, 1 + rank, y=rows[:, 0])
fit("the same arrays of fit", rows, y=rows[:, 0], validation_split=0.5)
fit("arrays of fit in their order", rows, 1 + rank, y=rows[:, 0], shuffle=False)
fit("dataset of fit", rows_of_two.take(8 + 4 * rank).batch(4))
fit("the same dataset of fit", rows_of_two.batch(4))
fit("generator of fit", (pair for pair in pairs))
