"""Joints of two values (branches, loops, arrays, variables), either of which may have examples.

Each joint takes two values of five rows and five columns: plain ones, examples, what only has the
rows of examples, and examples on the second axis. What comes out is what eager code computes of
plain arrays, and so are the gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad._tensor.example_axis import as_examples

SIZE = 5
Joint = Callable[[Any, Any, Any], Any]
RNG = np.random.default_rng(5)
X, Y = (RNG.normal(size=(SIZE, SIZE)).astype(np.float32) for _ in range(2))

# Values made of the examples x.
SIDES: dict[str, Callable[[Any], Any]] = {
    "plain": lambda x: tf.constant(Y),
    "zeros of the count": lambda x: tf.zeros((tf.shape(x)[0], SIZE)),
    "examples": lambda x: x * 2.0,
    "turned round": lambda x: x[::-1] + 1.0,
    "examples in columns": lambda x: tf.transpose(x) * 0.5,
}
PAIRS = [(a, b) for a in SIDES for b in SIDES]


def branch(a: Any, b: Any, n: Any) -> Any:
    """The one, then the other."""
    return [tf.cond(n > k, lambda: a * 1.0, lambda: b * 1.0) for k in (1, 5)]


def choice(a: Any, b: Any, n: Any) -> Any:
    """One of three."""
    return tf.switch_case(n - 1, [lambda: b * 3.0, lambda: a + b, lambda: a * 2.0])


def repeated(a: Any, b: Any, n: Any) -> Any:
    """A loop that starts with one and goes on with the other."""
    return tf.while_loop(lambda i, h: i < n, lambda i, h: (i + 1, h * 0.5 + b), (0, a))[1]


def replaced(a: Any, b: Any, n: Any) -> Any:
    """A loop whose carry is the other one as soon as there is an iteration."""

    def after(times: Any) -> Any:
        return tf.while_loop(lambda i, h: i < times, lambda i, h: (i + 1, b * 1.0), (0, a))[1]

    return [after(n), after(n * 0)]


def swapped(a: Any, b: Any, n: Any) -> Any:
    """A loop in which each is the other one in turn."""
    return list(tf.while_loop(lambda i, g, h: i < n, lambda i, g, h: (i + 1, h, g), (0, a, b))[1:])


def written_in_python(a: Any, b: Any, n: Any) -> Any:
    """A loop and a branch that autograph converts."""
    h = a
    for i in tf.range(n):
        if i == 0:
            h = b * 1.0
        elif i == 1:
            h = h + b
    return h


def scanned(a: Any, b: Any, n: Any) -> Any:
    """Return the carry and the results of a scan."""
    return tf.scan(lambda h, e: h * e + b, tf.constant([0.5, 2.0, 1.5]), a)


def array_of_both(a: Any, b: Any, n: Any) -> Any:
    """An array that holds one, and gets the other in a loop."""
    array = tf.TensorArray(tf.float32, size=4, clear_after_read=False).write(0, a)
    for i in tf.range(n):
        array = array.write(i + 1, b)
    return [array.stack(), array.read(n)]


def array_of_zeros(a: Any, b: Any, n: Any) -> Any:
    """An array of a known shape, written in a loop and never to its end."""
    array = tf.TensorArray(tf.float32, size=4, element_shape=a.shape)
    for i in tf.range(n):
        array = array.write(i, b) if n > 2 else array.write(i, a)
    return array.stack()


def side_by_side(a: Any, b: Any, n: Any) -> Any:
    """Concatenated and stacked."""
    return [tf.concat([a, b], 0), tf.concat([a, b], 1), tf.stack([a, b], 0), tf.stack([a, b], 2)]


def selected(a: Any, b: Any, n: Any) -> Any:
    """Element by element."""
    return [tf.where(a > 0, a, b), tf.where(b > 0.3, a, b), tf.maximum(a, b), a * b]


def with_own_gradient(a: Any, b: Any, n: Any) -> Any:
    """The gradient is made of the other one."""

    @tf.custom_gradient
    def tripled(y: Any) -> Any:
        return y * 3.0, lambda upstream: upstream * b

    return tripled(a * 1.0)


def computed_again(a: Any, b: Any, n: Any) -> Any:
    """Not kept for the gradient."""
    return tf.recompute_grad(lambda y: tf.cond(n > 1, lambda: y * b, lambda: b * 1.0))(a)


JOINTS: tuple[Joint, ...] = (
    branch, choice, repeated, replaced, swapped, written_in_python, scanned, array_of_both,
    array_of_zeros, side_by_side, selected, with_own_gradient, computed_again,
)  # fmt: skip


def computed(joint: Joint, sides: tuple[str, str], x: Any, n: Any) -> list[Any]:
    """The results, and the gradient of a function of all of them."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        a, b = (SIDES[side](x) for side in sides)
        results = tf.nest.flatten(joint(a, b, n))
        loss = tf.add_n([tf.reduce_sum(tf.sin(result + 0.3)) for result in results])
    return [*results, tape.gradient(loss, x, unconnected_gradients="zero")]


def arrays_of(values: Any) -> list[np.ndarray]:
    return [np.asarray(value) for value in tf.nest.flatten(values)]


def on_replicas(joint: Joint, sides: tuple[str, str], counts: tuple[int, ...]) -> list[list[Any]]:
    """Return the local values of so many examples."""
    strategy = tf.distribute.MirroredStrategy(replicas=len(counts))
    parts = [X[:count] * (i + 1) for i, count in enumerate(counts)]
    given = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(parts[context.replica_id_in_sync_group])
    )
    n = tf.constant(3)

    def step(x: Any) -> Any:
        return computed(joint, sides, as_examples(x), n)

    results = tf.nest.flatten(tf.function(lambda x: strategy.run(step, (x,)))(given))
    local = strategy.experimental_local_results
    return [[np.asarray(local(result)[i]) for result in results] for i in range(len(counts))]


def check(
    joint: Joint, found: Callable[[tuple[str, str]], list[list[Any]]],
    counts: tuple[int, ...] = (SIZE,), pairs: list[tuple[str, str]] = PAIRS,
) -> None:  # fmt: skip
    """All pairs of sides give what eager code does."""
    faults = []
    for sides in pairs:
        try:
            for i, parts in enumerate(found(sides)):
                x = tf.constant(X[: counts[i]] * (i + 1))
                expected = arrays_of(computed(joint, sides, x, tf.constant(3)))
                for one, other in zip(expected, parts, strict=True):
                    np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-6)
        except (ValueError, TypeError, RuntimeError, IndexError, AssertionError) as error:
            faults.append(f"{' and '.join(sides)}: {type(error).__name__} {str(error)[:200]}")
    assert not faults, "\n".join(faults)


each_joint = pytest.mark.parametrize("joint", JOINTS, ids=lambda joint: joint.__name__)


@each_joint
def test_a_joint_of_an_array_that_a_function_takes_as_examples(joint: Joint) -> None:
    def found(sides: tuple[str, str]) -> list[list[Any]]:
        step = tf.function(lambda x: computed(joint, sides, as_examples(x), tf.constant(3)))
        return [arrays_of(step(tf.constant(X)))]

    check(joint, found)


@each_joint
def test_a_joint_of_a_batch_that_a_function_is_given(joint: Joint) -> None:
    (batch,) = tf.data.Dataset.from_tensor_slices(X).batch(SIZE)

    def found(sides: tuple[str, str]) -> list[list[Any]]:
        return [arrays_of(tf.function(lambda x: computed(joint, sides, x, tf.constant(3)))(batch))]

    check(joint, found)


@pytest.mark.parametrize("counts", [(SIZE, SIZE), (3, 2)], ids=str)
@each_joint
def test_a_joint_on_each_of_two_replicas(joint: Joint, counts: tuple[int, ...]) -> None:
    fixed = {"plain", "examples in columns"}  # which have five rows on each replica
    pairs = [pair for pair in PAIRS if counts[0] == SIZE or not fixed & {*pair}]
    check(joint, lambda sides: on_replicas(joint, sides, counts), counts, pairs)
