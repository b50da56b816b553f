"""Variables that a function makes in its first call, of what that call computes."""

import gc
import weakref

import numpy as np
import pytest

import samegrad as tf

X = np.arange(12, dtype="float32").reshape(4, 3)
INITIAL = {
    "normal": lambda x: tf.random.normal([x.shape[-1], 1]),
    "data": lambda x: tf.reduce_mean(x, 0)[:, None],
    "zeros": lambda x: tf.zeros([3, 1]),
    "numpy": lambda x: np.full((3, 1), 2.0, "float32"),
    "function": lambda x: lambda: tf.ones([3, 1]),
    "own": lambda x: tf.ones([3, 1]) * tf.cast(replica(), tf.float32),
    "python list": lambda x: [[tf.reduce_sum(x)], [1.0], [tf.constant(2.0)]],
}


def replica():
    return tf.convert_to_tensor(tf.distribute.get_replica_context().replica_id_in_sync_group)


class Line(tf.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.w, self.kind, self.made, self.options = None, kind, 0, options

    def __call__(self, x):
        if self.w is None:
            self.made += 1
            self.w = tf.Variable(INITIAL[self.kind](x), **self.options)
        return x @ self.w


def caller(model, replicas, mode):
    """Return a function of a batch that calls the model, on replicas unless there are none."""
    if replicas == 0:
        return tf.function(model) if mode != "bare" else model
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    inner = tf.function(model) if mode.endswith("inner") else model

    def call(x):
        parts = strategy.run(inner, args=(x,))
        return strategy.gather(parts, axis=0)

    step = tf.function(call) if mode.startswith("traced") else call

    def on_batch(x):
        data = tf.data.Dataset.from_tensor_slices(x).batch(len(x))
        (batch,) = strategy.experimental_distribute_dataset(data)
        with strategy.scope():
            return step(batch)

    return on_batch


@pytest.fixture(params=["traced", "traced inner", "bare", "bare inner", "eager"])
def mode(request):
    tf.config.run_functions_eagerly(request.param == "eager")
    yield request.param
    tf.config.run_functions_eagerly(False)


@pytest.fixture
def looking():
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.mark.parametrize("replicas", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", INITIAL)
def test_a_variable_is_made_once_and_begins_as_on_the_first_replica(kind, replicas, mode):
    model = Line(kind)
    call = caller(model, replicas, mode)
    for rows in (X, X, X[:3], np.concatenate([X, X])):
        # Weights that are drawn may cancel: the error is relative to the terms.
        np.testing.assert_allclose(call(rows).numpy(), rows @ model.w.numpy(), rtol=1e-6, atol=1e-5)
    assert model.made == 1
    assert model.w._cell.component_count == 1
    share = X[: -(-len(X) // max(replicas, 1))]
    expected = {
        "data": share.mean(0)[:, None],
        "zeros": np.zeros((3, 1)),
        "numpy": np.full((3, 1), 2.0),
        "function": np.ones((3, 1)),
        "own": np.zeros((3, 1)),
        "python list": np.array([[share.sum()], [1.0], [2.0]]),
    }.get(kind)
    if expected is not None:
        np.testing.assert_allclose(model.w.numpy(), expected, rtol=1e-6)


def test_random_variables_are_equal_on_any_number_of_replicas_and_differ_from_each_other():
    found = {}
    for mode in ("traced", "bare"):
        for replicas in (1, 2, 3):
            tf.random.set_seed(3)
            models = [Line("normal"), Line("normal")]
            for model in models:
                caller(model, replicas, mode)(X)
            found[mode, replicas] = [model.w.numpy().tolist() for model in models]
        one, *others = (found[mode, replicas] for replicas in (1, 2, 3))
        assert others == [one, one]
        assert one[0] != one[1]


@pytest.mark.parametrize("replicas", [0, 2])
def test_the_step_draws_what_was_looked_at_before(replicas, looking):
    strategy = tf.distribute.MirroredStrategy(replicas=max(replicas, 1))
    looked, made = [], []

    def step():
        draw = tf.random.uniform(())
        looked.append(repr(draw))
        made.append(tf.Variable(tf.random.normal([2])))
        return draw

    for _ in range(2):
        found = strategy.run(step) if replicas else step()
        for part in strategy.experimental_local_results(found):
            assert str(part.numpy())[:7] in looked[-1]
    assert made[0].numpy().tolist() != made[1].numpy().tolist()


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_replicas_that_are_traced_apart_share_the_variable(replicas):
    class Apart(Line):
        def __call__(self, x):
            return super().__call__(x) * float(int(x.shape[0]))

    model = Apart("normal")
    found = caller(model, replicas, "traced")(X[:4]).numpy()
    assert model.made == 1
    share = -(-4 // replicas)
    counts = [len(X[:4][i : i + share]) for i in range(0, 4, share)]
    own = np.repeat(counts, counts)[:, None]
    np.testing.assert_allclose(found, X[:4] @ model.w.numpy() * own, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_variables_keep_their_aggregation(replicas, mode):
    options = {
        "trainable": False,
        "synchronization": tf.VariableSynchronization.ON_READ,
        "aggregation": tf.VariableAggregation.MEAN,
    }
    model = Line("data", **options)
    caller(model, replicas, mode)(X)
    assert model.w._cell.component_count == replicas
    share = X[: -(-len(X) // replicas)]
    np.testing.assert_allclose(model.w.numpy(), share.mean(0)[:, None], rtol=1e-6)


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_what_is_made_in_the_first_call_is_trained(replicas, mode):
    tf.random.set_seed(5)
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    dense, optimizers = tf.keras.layers.Dense(1), []
    line = Line("data")

    def train(x):
        if not optimizers:
            optimizers.append(tf.keras.optimizers.Adam(0.1))
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(tf.square(dense(line(x)))[:, 0])
        variables = [line.w, *dense.trainable_variables]
        optimizers[0].apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    inner = tf.function(train) if mode.endswith("inner") else train

    def step(x):
        return strategy.reduce("sum", strategy.run(inner, args=(x,)), axis=None)

    step = tf.function(step) if mode.startswith("traced") else step
    data = tf.data.Dataset.from_tensor_slices(X).batch(4).repeat(4)
    losses = [float(step(x)) for x in strategy.experimental_distribute_dataset(data)]
    assert losses[-1] < losses[0]
    assert line.made == 1 and len(dense.variables) == 2
    assert int(optimizers[0].iterations) == 4


def test_a_second_trace_makes_no_variables():
    made = []

    @tf.function
    def f(x, more):
        if more:
            made.append(tf.Variable(1.0, name="late"))
        return x + 1.0

    f(1.0, False)
    with pytest.raises(ValueError, match=r"\[late\] a function makes variables in its first call"):
        f(1.0, True)
    assert made == []
    assert float(f(1.0, False)) == 2.0


@pytest.mark.parametrize("replicas", [0, 2])
def test_a_variable_that_nothing_keeps_is_refused(replicas):
    strategy = tf.distribute.MirroredStrategy(replicas=max(replicas, 1))

    def body():
        return tf.Variable(1.0, name="lost").assign_add(1.0).value()

    f = tf.function((lambda: strategy.run(body)) if replicas else body)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"\[lost\] a function makes variables in its first"):
            f()
    # By itself, each run calls the function anew.
    assert float(strategy.reduce("mean", strategy.run(body), axis=None)) == 2.0


def test_outside_of_the_trace_variables_are_made_in_any_call():
    made = []

    @tf.function
    def f(x, number):
        with tf.init_scope():
            made.append(tf.Variable(float(number)))
        return x + made[-1]

    assert [float(f(1.0, number)) for number in (1, 2)] == [2.0, 3.0]


def test_a_failed_trace_leaves_no_variables():
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    made = []

    def body(fail):
        variable = tf.Variable(tf.random.normal([2]))
        made.append(weakref.ref(variable))
        if fail:
            raise KeyError("the user's own")
        return variable + 0.0

    with pytest.raises(KeyError):
        tf.function(lambda: strategy.run(body, args=(True,)))()
    gc.collect()
    assert made[0]() is None


@pytest.mark.parametrize("replicas", [0, 2])
def test_a_branch_makes_no_variables_of_its_values(replicas):
    strategy = tf.distribute.MirroredStrategy(replicas=max(replicas, 1))
    made = []

    def body(x):
        def branch():
            made.append(tf.Variable(x * 2.0))
            return made[-1] + 0.0

        return tf.cond(tf.reduce_sum(x) > 0.0, branch, lambda: x)

    f = tf.function((lambda x: strategy.run(body, args=(x,))) if replicas else body)
    with pytest.raises(ValueError, match="branch or loop"):
        f(tf.constant(1.0))
    assert made == []


def test_a_signature_alone_has_no_values_for_variables():
    by_data, random = Line("data"), Line("normal")
    spec = tf.TensorSpec([None, 3])
    with pytest.raises(ValueError, match="only the signature is known"):
        tf.function(by_data).get_concrete_function(spec)
    concrete = tf.function(random).get_concrete_function(spec)
    product = X @ random.w.numpy()
    np.testing.assert_allclose(concrete(tf.constant(X)).numpy(), product, rtol=1e-6, atol=1e-5)
    assert random.made == 1


def test_python_runs_a_function_of_a_dataset_that_makes_variables():
    made = []

    def double(x):
        made.append(tf.Variable(x * 2))
        return made[-1] + 0

    assert [int(x) for x in tf.data.Dataset.range(3).map(double)] == [0, 2, 4]
