"""`same_state.py WHAT`: the ranks' variables differ in values, or a step has them in another order,
or they make other steps.

Says what each of the calls of the step came to, and the corners of the variables.
"""

import sys

import numpy as np

import samegrad as tf

what = sys.argv[1]
strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank = strategy.cluster_resolver.task_id
first = 3.0 if what == "values" and rank == 1 else 1.0
with strategy.scope():
    names = ("table", "table") if what == "order" else ("first", "second")
    count = tf.Variable(0, dtype="int64")
    variables = [
        tf.Variable(np.full([1000, 300], value, np.float32), name=name)
        for value, name in zip((first, 2.0), names, strict=True)
    ]
rows = np.ones([4, 1000], np.float32)
x = next(iter(strategy.experimental_distribute_dataset(
    tf.data.Dataset.from_tensor_slices(rows).batch(4)
)))  # fmt: skip


def step_of(chosen):
    @tf.function
    def step(x):
        def of_replica(x):
            count.assign_add(1)
            for factor, variable in zip((1.0, 2.0), chosen, strict=True):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum(tf.matmul(x, variable)) * factor
                gradient = tape.gradient(loss, variable)
                total = tf.distribute.get_replica_context().all_reduce("sum", gradient)
                variable.assign_sub(total * 0.01)

        strategy.run(of_replica, args=(x,))

    return step


@tf.function
def counting(x):
    strategy.run(lambda x: count.assign_add(1), args=(x,))


def call(step):
    try:
        step(x)
    except ValueError as error:
        sys.stdout.write(f"refused: {str(error).partition('they differ in ')[2]}\n")
    else:
        corners = [float(v.numpy()[i, i]) for v in variables for i in (0, -1)]
        sys.stdout.write(f"stepped: {np.round(corners, 2).tolist()} in {int(count)}\n")


if what == "programs":
    step = step_of(variables)
    call(step if rank == 1 else counting)
    call(step)
    call(step if rank == 0 else counting)
    call(step)
elif what == "values":
    step = step_of(variables)
    call(step)
    call(step)
    tf.distribute.mpi.broadcast_variables(variables)
    call(step)
else:
    call(step_of(variables))
    other = step_of(variables[::-1] if rank == 1 else variables)
    call(other)
    call(step_of(variables))
