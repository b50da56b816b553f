"""What a strategy offers beside steps: prints lines that every process has to have alike."""

import sys

import numpy as np

import samegrad as tf

total = int(sys.argv[1])
strategy = tf.distribute.MultiWorkerMirroredStrategy(total_replicas=total)
tf.random.set_seed(3)


def say(name, value):
    sys.stdout.write(f"{name}: {np.asarray(value).tolist()}\n")


ids = strategy.experimental_distribute_values_from_function(
    lambda context: tf.constant([float(context.replica_id_in_sync_group)] * 2)
)
assert len(strategy.experimental_local_results(ids)) == len(strategy.own_replicas)
say("gather", strategy.gather(ids, axis=0))
say("sum", strategy.reduce("SUM", ids, axis=None))
say("mean over rows", strategy.reduce("MEAN", ids, axis=0))

with strategy.scope():
    counter = tf.Variable(
        1.0,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
    )
    mean = tf.Variable(
        0.0,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.MEAN,
    )


def change(x):
    context = tf.distribute.get_replica_context()
    counter.assign_add(tf.reduce_sum(x) * 0.1)
    mean.assign(tf.reduce_sum(x))
    return context.all_gather(x, axis=0), context.replica_id_in_sync_group


gathered, replica = strategy.run(change, args=(ids,))
say("all_gather", strategy.experimental_local_results(gathered)[0])
assert [int(r) for r in strategy.experimental_local_results(replica)] == list(strategy.own_replicas)
say("counter", counter)
say("mean", mean)
counter.assign(8.0)
say("assigned", counter)
# Four examples are a leaf of the sum, which begins in one process and ends in another.
(batch,) = strategy.experimental_distribute_dataset(
    tf.data.Dataset.from_tensor_slices(np.linspace(0, 1, 10, dtype=np.float32)).batch(10)
)


def count(x):
    counter.assign_add(tf.cast(tf.size(x), tf.float32) + counter * 0.5)
    return tf.distribute.get_replica_context().all_reduce("SUM", tf.reduce_sum(x / 3))


sums = strategy.experimental_local_results(strategy.run(count, args=(batch,)))
say("sum of a batch", sums[0])
say("counted", counter)
same = strategy.run(lambda: {"seven": tf.constant(7)})
assert len(strategy.experimental_local_results(same)) == len(strategy.own_replicas)
say("equal on all", strategy.reduce("MEAN", same["seven"], axis=None))

with strategy.scope():
    first = tf.Variable(
        [0.0, 0.0],
        trainable=False,
        aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
    )
    flag = tf.Variable(
        False, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA
    )
    rows = tf.Variable([2.0, 6.0, 1.0, 8.0, 3.0], aggregation=tf.VariableAggregation.MEAN)
made = []


def select(x):
    number = tf.distribute.get_replica_context().replica_id_in_sync_group
    first.assign(x / tf.reshape(tf.cast(number < 1, tf.float32), [1]) - 1.0)  # NaN, inf on others
    flag.assign(tf.equal(number, 0))
    rows.scatter_mul(tf.IndexedSlices(x + 2.0, tf.stack([number, number + 1])))
    if not made:
        made.append(tf.Variable(tf.random.normal([3])))
        made.append(tf.Variable(x + 5.0))
    return made[1] * 1.0


for name, call in (("bare", strategy.run), ("traced", tf.function(strategy.run))):
    say(f"made in run, {name}", strategy.gather(call(select, args=(ids,)), axis=0))
    say(f"of the first replica, {name}", [*first.numpy(), flag.numpy()])
    say(f"rows, {name}", rows)
    say(f"made, {name}", made[0])
say("captured", tf.function(lambda: strategy.gather(ids, axis=0))())
say("captured sum", tf.function(lambda: strategy.reduce("SUM", ids, axis=None))())

dataset = strategy.experimental_distribute_dataset(
    tf.data.Dataset.range(11).map(lambda x: x * 2).batch(4)
)
for batch in dataset:
    say("rows", strategy.gather(batch, axis=0))
    say("sum of rows", strategy.reduce("SUM", batch, axis=0))

table = tf.Variable(np.ones([50, 3], np.float32))


@tf.function
def embed(rows):
    def step(rows):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.gather(table, tf.cast(rows, tf.int32))))
        gradient = tape.gradient(loss, table)
        table.assign_sub(tf.distribute.get_replica_context().all_reduce("sum", gradient) * 0.01)
        return loss

    return strategy.reduce("SUM", strategy.run(step, args=(rows,)), axis=None)


for batch in dataset:
    say("rows of a table", embed(batch))
say("table", tf.reduce_sum(table))
say("explained", str(strategy.explain(lambda x: tf.reduce_sum(x), args=(ids,))).count("bits:"))
