"""Variables of every dtype, aggregation and synchronization, assigned to by several replicas."""

import numpy as np
import pytest

import samegrad as tf
from samegrad._base import dtypes as _dtypes

DTYPES = _dtypes.NAMES
AGGREGATIONS = tuple(tf.VariableAggregation)
SYNCHRONIZATIONS = (
    tf.VariableSynchronization.AUTO,
    tf.VariableSynchronization.ON_WRITE,
    tf.VariableSynchronization.ON_READ,
)
NONE, SUM, MEAN, FIRST = AGGREGATIONS
ON_READ = tf.VariableSynchronization.ON_READ


@pytest.fixture(params=["traced", "bare", "eager"])
def runner(request):
    """Calls `strategy.run` in a function, by itself, and where every operation runs at once."""
    tf.config.run_functions_eagerly(request.param == "eager")
    yield tf.function if request.param == "traced" else lambda fn: fn
    tf.config.run_functions_eagerly(False)


def bits(value):
    array = np.ascontiguousarray(value)
    return array.dtype.name, array.shape, array.tobytes()


def special_values(name, replicas):
    """Return the array of each replica: the first has -0, NaNs with payloads, inf and extremes."""
    dtype = getattr(tf, name).as_numpy_dtype
    if name == "bool":
        first, other = np.array([True, False, True, True]), np.array([False, False, True, False])
    elif getattr(tf, name).is_floating:
        first = np.array([-0.0, np.nan, np.inf, 3.0], dtype)
        unsigned = np.dtype(f"u{first.itemsize}")
        first.view(unsigned)[1] |= 5  # a payload
        other = np.array([1.0, -np.inf, np.nan, np.nan], dtype)
    else:
        first = np.array([0, 1, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
        other = np.array([7, 3, 2, 1], dtype)
    return [first, *[other] * (replicas - 1)]


def small_values(name, replicas):
    dtype = getattr(tf, name).as_numpy_dtype
    return [np.array([r + 1, 2 * r, 3], dtype) for r in range(replicas)]


def distributed(strategy, values):
    return strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(values[context.replica_id_in_sync_group])[None]
    )


def made(strategy, like, **options):
    with strategy.scope():
        return tf.Variable(np.zeros_like(like), trainable=False, name="state", **options)


def assigned(strategy, variable, values, runner):
    """Assign to the variable on each replica; return what each reads afterwards."""

    def step(rows):
        variable.assign(tf.squeeze(rows, 0))
        return variable.read_value()

    given = distributed(strategy, values)
    found = runner(lambda rows: strategy.run(step, args=(rows,)))(given)
    return [part.numpy() for part in strategy.experimental_local_results(found)]


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("synchronization", SYNCHRONIZATIONS)
@pytest.mark.parametrize("name", DTYPES)
def test_the_first_replica_decides_to_the_bit(name, synchronization, replicas, runner):
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    values = special_values(name, replicas)
    variable = made(strategy, values[0], aggregation=FIRST, synchronization=synchronization)
    read = assigned(strategy, variable, values, runner)
    of_replicas = values if synchronization is ON_READ else [values[0]] * replicas
    assert [bits(value) for value in read] == [bits(value) for value in of_replicas]
    assert bits(variable.numpy()) == bits(values[0])
    with strategy.scope():
        whole = tf.function(variable.read_value)()
    assert bits(whole.numpy()) == bits(values[0])


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("synchronization", SYNCHRONIZATIONS)
@pytest.mark.parametrize("aggregation", [SUM, MEAN])
@pytest.mark.parametrize("name", DTYPES)
def test_sums_and_means_are_numpys_or_refused_by_name(
    name, aggregation, synchronization, replicas, runner
):
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    values = small_values(name, replicas)
    options = {"aggregation": aggregation, "synchronization": synchronization}
    if aggregation is MEAN and not getattr(tf, name).is_floating:
        with pytest.raises(
            ValueError, match=r"\[state\] aggregation MEAN needs floats: got .*dtype"
        ):
            made(strategy, values[0], **options)
        return
    variable = made(strategy, values[0], **options)
    if name == "bool" and replicas > 1:
        refused = r"\[state\] aggregation SUM needs numbers: got .*dtype bool"
        if synchronization is ON_READ:
            assigned(strategy, variable, values, runner)
            with pytest.raises(TypeError, match=refused):
                variable.numpy()
        else:
            with pytest.raises(TypeError, match=refused):
                assigned(strategy, variable, values, runner)
        return
    assigned(strategy, variable, values, runner)
    total = np.sum(np.stack(values).astype("float64"), axis=0)
    wanted = total / replicas if aggregation is MEAN else total
    for read in (variable.read_value, tf.function(variable.read_value)):
        with strategy.scope():
            whole = read().numpy()
        assert whole.dtype == values[0].dtype
        np.testing.assert_allclose(whole.astype("float64"), wanted, rtol=0.01)


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("synchronization", SYNCHRONIZATIONS)
@pytest.mark.parametrize("name", DTYPES)
def test_without_aggregation_equal_values_are_kept_and_others_refused(
    name, synchronization, replicas, runner
):
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    values = special_values(name, replicas)
    variable = made(strategy, values[0], synchronization=synchronization)

    def same():
        variable.assign(tf.constant(values[0]))

    runner(lambda: strategy.run(same))()
    assert bits(variable.numpy()) == bits(values[0])
    if replicas == 1:
        return
    if synchronization is not ON_READ:
        with pytest.raises(RuntimeError, match="state.*all_reduce"):
            assigned(strategy, variable, values, runner)
        return
    assigned(strategy, variable, values, runner)
    with pytest.raises(ValueError, match=r"\[state\].*ON_READ.*aggregation NONE"):
        variable.numpy()
    assert "one value per replica" in repr(variable)
    variable.assign(values[0])
    assert bits(variable.numpy()) == bits(values[0])


@pytest.mark.parametrize(("replicas", "rows"), [(2, 1), (3, 1), (3, 2), (4, 2), (4, 3)])
@pytest.mark.parametrize("synchronization", SYNCHRONIZATIONS)
@pytest.mark.parametrize("kind", ["variable", "weight"])
def test_replicas_without_examples_leave_the_first_one_alone(
    kind, synchronization, replicas, rows, runner
):
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        if kind == "variable":
            variable = tf.Variable(
                0.0, trainable=False, aggregation=FIRST, synchronization=synchronization
            )
        else:
            variable = tf.keras.layers.Layer().add_weight(
                shape=(), trainable=False, initializer="zeros", aggregation="only_first_replica"
            )

    def step(x):
        variable.assign(tf.reduce_mean(x))

    data = tf.data.Dataset.from_tensor_slices(np.arange(1.0, 1.0 + rows, dtype="float32"))
    (batch,) = strategy.experimental_distribute_dataset(data.batch(rows))
    runner(lambda x: strategy.run(step, args=(x,)))(batch)
    share = -(-rows // replicas)
    assert float(variable.numpy()) == np.arange(1.0, 1.0 + share).mean()


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("name", ["bool", "int32", "float32"])
def test_weights_of_layers_keep_what_the_first_replica_assigns(name, replicas, runner):
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    values = special_values(name, replicas)
    with strategy.scope():
        weight = tf.keras.layers.Layer().add_weight(
            shape=values[0].shape, dtype=name, trainable=False, initializer="zeros",
            aggregation="only_first_replica",
        )  # fmt: skip

    def step(rows):
        weight.assign(tf.squeeze(rows, 0))

    given = distributed(strategy, values)
    runner(lambda rows: strategy.run(step, args=(rows,)))(given)
    assert bits(weight.numpy()) == bits(values[0])


@pytest.mark.parametrize("name", ["bool", "int32", "float16"])
@pytest.mark.parametrize("aggregation", ["sum", "mean"])
def test_weights_of_layers_refuse_sums_and_means_by_name(aggregation, name):
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        weight = tf.keras.layers.Layer().add_weight(
            shape=(), dtype=name, trainable=False, initializer="zeros", aggregation=aggregation,
            name="count",
        )  # fmt: skip

    def step():
        number = tf.distribute.get_replica_context().replica_id_in_sync_group + 1
        change = weight.assign if aggregation == "mean" else weight.assign_add
        change(tf.cast(number, name))

    if name == "bool" or (name, aggregation) == ("int32", "mean"):
        refused = rf"/count\] aggregation {aggregation.upper()} needs .*dtype {name}"
        with pytest.raises(TypeError, match=refused):
            strategy.run(step)
    else:
        strategy.run(step)
        assert float(weight.numpy()) == (1.5 if aggregation == "mean" else 3.0)


@pytest.mark.parametrize("value", [6, 7, -5])
@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_copies_of_a_sum_add_up_to_the_integer_assigned(value, replicas):
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    for assign in (lambda v: v.assign(value), lambda v: tf.function(v.assign)(value)):
        variable = made(strategy, np.int32(0), aggregation=SUM, synchronization=ON_READ)
        with strategy.scope():
            assign(variable)
        assert int(variable.numpy()) == value


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("name", DTYPES)
def test_what_is_assigned_outside_of_run_is_read_there(name, aggregation, replicas):
    if aggregation is MEAN and not getattr(tf, name).is_floating:
        return
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    value = small_values(name, 1)[0]
    for wrap in (lambda f: f, tf.function):
        variable = made(strategy, value, aggregation=aggregation, synchronization=ON_READ)
        assign = wrap(lambda v: variable.assign(v) is None)  # noqa: B023
        if name == "bool" and aggregation is SUM and replicas > 1:
            with pytest.raises(TypeError, match=r"\[state\] aggregation SUM needs numbers"):
                assign(value)
            continue
        assign(value)
        assert bits(variable.numpy()) == bits(value)


@pytest.mark.parametrize("replicas", [2, 3])
def test_each_copy_gets_what_all_replicas_compute_alike(replicas, runner):
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    variable = made(strategy, np.float32(0), aggregation=SUM, synchronization=ON_READ)
    call = runner(lambda x: strategy.run(lambda x: variable.assign(x / 2.0) is None, args=(x,)))
    call(tf.constant(3.0))
    assert float(variable.numpy()) == 1.5 * replicas


@pytest.mark.parametrize("aggregation", [SUM, MEAN, FIRST])
def test_a_function_reads_the_copies_of_its_call(aggregation):
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    variable = made(strategy, np.float32(0), aggregation=aggregation, synchronization=ON_READ)

    @tf.function
    def step(rows):
        strategy.run(lambda row: variable.assign_add(row[0]), args=(rows,))
        return variable.read_value() * 10.0

    found = [float(step(distributed(strategy, np.float32([1.0, 3.0])))) for _ in range(3)]
    once = {SUM: 40.0, MEAN: 20.0, FIRST: 10.0}[aggregation]
    assert found == [once, 2 * once, 3 * once]


def test_the_gradient_of_the_first_replicas_value_is_the_sum_of_all():
    strategy = tf.distribute.MirroredStrategy(replicas=3)

    def step(x):
        with tf.GradientTape(persistent=True) as second:
            second.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                loss = tf._core.ops.collective_broadcast(x) ** 3 * (x + 1.0)
            first = tape.gradient(loss, x)
        return first, second.gradient(first, x)

    x = np.array([2.0, 3.0, 5.0])
    first, second = strategy.run(step, args=(distributed(strategy, x),))
    own = x[0] ** 3 * np.ones(3)  # by the second factor
    own[0] += 3 * x[0] ** 2 * np.sum(x + 1)
    got = [float(part.numpy()[0]) for part in strategy.experimental_local_results(first)]
    assert got == own.tolist()
    parts = strategy.experimental_local_results(second)
    assert float(parts[0].numpy()[0]) == 6 * x[0] * np.sum(x + 1) + 3 * x[0] ** 2 * (1 + 3)
    assert [float(part.numpy()[0]) for part in parts[1:]] == [3 * x[0] ** 2] * 2
