"""Changes of a variable's rows inside `Strategy.run`, for TensorFlow and samegrad alike."""

import itertools

METHODS = tuple(
    prefix + how
    for how in ("add", "sub", "update", "mul", "div", "max", "min")
    for prefix in ("scatter_", "scatter_nd_")
)
AGGREGATIONS = ("NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA")
# "rows": each replica names rows 0 … 2 from its number on, some twice; "same": all the same rows.
ROWS = ("own", "same")
START = [[2.0, 3.0], [6.0, 1.0], [1.0, 8.0], [8.0, 4.0], [5.0, 7.0]]
CASES = tuple(
    (method, aggregation, replicas, rows, True)
    for method, aggregation, replicas, rows in itertools.product(
        METHODS, AGGREGATIONS, (1, 2, 3), ROWS
    )
) + tuple(
    (method, "NONE", replicas, rows, False)
    for method, replicas, rows in itertools.product(METHODS, (1, 2, 3), ROWS)
)


def key(method, aggregation, replicas, rows, in_scope):
    return " ".join([method, aggregation, str(replicas), rows, "scope" if in_scope else "no scope"])


def changed(tf, strategy, method, aggregation, rows, in_scope):
    """Return what each replica reads of the variable after one call of the method in `run`."""
    options = {"aggregation": tf.VariableAggregation[aggregation], "trainable": False}
    if in_scope:
        with strategy.scope():
            variable = tf.Variable(START, **options)
    else:
        variable = tf.Variable(START)

    @tf.function
    def step():
        context = tf.distribute.get_replica_context()
        number = tf.convert_to_tensor(context.replica_id_in_sync_group)
        if rows == "same":
            number = tf.zeros_like(number)
        indices = tf.stack([number, number + 1, number + 2, number])
        factor = tf.cast(indices + number + 2, tf.float32)
        values = tf.stack([factor, factor + 3.0], axis=1)
        if method.startswith("scatter_nd"):
            getattr(variable, method)(indices[:, None], values)
        else:
            getattr(variable, method)(tf.IndexedSlices(values, indices, tf.constant([5, 2])))

    strategy.run(step)
    return [part.numpy().tolist() for part in strategy.experimental_local_results(variable)]


def result(tf, strategy, case):
    """Return the values of the replicas, or the name of the error."""
    method, aggregation, _, rows, in_scope = case
    try:
        return changed(tf, strategy, method, aggregation, rows, in_scope)
    except Exception as error:
        return type(error).__name__
