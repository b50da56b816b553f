"""Array functions give what NumPy gives, at once and in functions."""

import numpy as np
import pytest

import samegrad as tf
from samegrad import _core

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
V = np.float32([3.0, -1.0, 0.5])
I = np.int32([2, 0, 2])  # noqa: E741

CASES = {
    "broadcast_to": (lambda v: tf.broadcast_to(v, (2, 3)), lambda v: np.broadcast_to(v, (2, 3)), V),
    "cast": (lambda v: tf.cast(v, tf.int32), lambda v: v.astype(np.int32), V),
    "clip_by_value": (lambda v: tf.clip_by_value(v, 0.0, 1.0), lambda v: np.clip(v, 0, 1), V),
    "clip_by_norm": (
        lambda v: tf.clip_by_norm(v, 2.0), lambda v: v * (2 / np.linalg.norm(v)), V,
    ),
    "concat": (lambda x: tf.concat([x, x[:, :1]], 1), lambda x: np.hstack([x, x[:, :1]]), X),
    "expand_dims": (lambda x: tf.expand_dims(x, -2), lambda x: np.expand_dims(x, -2), X),
    "gather": (lambda v: tf.gather(v, I), lambda v: v[I], V),
    "gather on an axis": (lambda x: tf.gather(x, I, axis=1), lambda x: x[:, I], X),
    "identity": (tf.identity, lambda x: x, X),
    "matmul": (lambda x: x @ tf.transpose(x, [0, 2, 1]), lambda x: x @ x.swapaxes(1, 2), X),
    "norm": (tf.norm, np.linalg.norm, X),
    "norm on an axis": (lambda x: tf.norm(x, axis=2), lambda x: np.linalg.norm(x, axis=2), X),
    "one_hot": (lambda i: tf.one_hot(i, 3), lambda i: np.eye(3, dtype=np.float32)[i], I),
    "pad": (
        lambda x: tf.pad(x, [[0, 0], [1, 2], [0, 1]]),
        lambda x: np.pad(x, [[0, 0], [1, 2], [0, 1]]), X,
    ),
    "rank": (tf.rank, lambda x: np.int32(x.ndim), X),
    "repeat": (lambda x: tf.repeat(x, 2, axis=1), lambda x: np.repeat(x, 2, axis=1), X),
    "reshape": (lambda x: tf.reshape(x, [4, -1]), lambda x: x.reshape(4, -1), X),
    "reverse": (lambda x: tf.reverse(x, [0, 2]), lambda x: x[::-1, :, ::-1], X),
    "shape": (tf.shape, lambda x: np.int32(x.shape), X),
    "size": (tf.size, lambda x: np.int32(x.size), X),
    "slice": (lambda x: tf.slice(x, [0, 1, 1], [2, 1, -1]), lambda x: x[:2, 1:2, 1:], X),
    "split": (lambda x: tf.split(x, [1, 3], axis=2)[1], lambda x: x[:, :, 1:], X),
    "split in equal parts": (lambda x: tf.split(x, 2, axis=2)[0], lambda x: x[:, :, :2], X),
    "squeeze": (lambda x: tf.squeeze(x[:, :1]), lambda x: x[:, 0], X),
    "stack": (lambda v: tf.stack([v, v], axis=1), lambda v: np.stack([v, v], axis=1), V),
    "tile": (lambda x: tf.tile(x, [1, 2, 1]), lambda x: np.tile(x, [1, 2, 1]), X),
    "transpose": (tf.transpose, np.transpose, X),
    "transpose with axes": (
        lambda x: tf.transpose(x, [1, 0, 2]), lambda x: x.transpose(1, 0, 2), X,
    ),
    "unstack": (lambda x: tf.unstack(x, axis=1)[2], lambda x: x[:, 2], X),
    "where": (lambda v: tf.where(v > 0.0, v, 0.0), lambda v: np.where(v > 0, v, 0), V),
    "zeros_like": (tf.zeros_like, np.zeros_like, X),
    "ones_like": (tf.ones_like, np.ones_like, X),
    "a row": (lambda x: x[1], lambda x: x[1], X),
    "from behind": (lambda x: x[..., -1], lambda x: x[..., -1], X),
    "with steps": (lambda x: x[:, ::2, 1::2], lambda x: x[:, ::2, 1::2], X),
    "backwards": (lambda x: x[:, ::-1], lambda x: x[:, ::-1], X),
    "a new axis": (lambda x: x[:, None, 0], lambda x: x[:, None, 0], X),
}  # fmt: skip


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
@pytest.mark.parametrize("name", CASES)
def test_it_gives_what_numpy_gives(name, traced):
    ours, theirs, value = CASES[name]
    found = (tf.function(ours) if traced else ours)(tf.constant(value)).numpy()
    expected = theirs(value)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(("made", "expected"), [
    (lambda: tf.zeros([2, 3]), np.zeros((2, 3), np.float32)),
    (lambda: tf.ones([2], tf.float64), np.ones(2)),
    (lambda: tf.fill([2, 2], 7), np.full((2, 2), 7, np.int32)),
    (lambda: tf.eye(3), np.eye(3, dtype=np.float32)),
    (lambda: tf.range(5), np.arange(5, dtype=np.int32)),
    (lambda: tf.range(1, 8, 3), np.arange(1, 8, 3, dtype=np.int32)),
    (lambda: tf.range(0.0, 1.0, 0.25), np.arange(0, 1, 0.25, dtype=np.float32)),
    (lambda: tf.linspace(0.0, 1.0, 5), np.linspace(0, 1, 5, dtype=np.float32)),
])  # fmt: skip
def test_made_arrays_are_those_of_numpy(made, expected):
    found = made().numpy()
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_positions_where_a_condition_holds_are_those_of_numpy():
    found = tf.where(tf.constant(X) > 20.0).numpy()
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, np.argwhere(X > 20))


def test_half_of_two_choices_is_refused():
    with pytest.raises(ValueError, match=r"\[where\] x and y belong together: got no y"):
        tf.where([True], 1.0)


def test_positions_are_refused_where_nobody_can_know_how_many_there_are():
    two = tf.distribute.MirroredStrategy(replicas=2)
    with pytest.raises(TypeError, match=r"\[where\] .* use where\(condition, x, y\)"):
        two.run(lambda x: tf.where(x > 1.0), args=(tf.constant(V),))


@pytest.mark.parametrize(
    ("whole", "parts"),
    [([3], [[1]]), ([3], [[2], [2]]), ([3], [[0]]), ([2, 3], [[1, 2], [1, 3]]), ([2, 3], [[2]])],
)
def test_parts_of_a_concatenation_must_fit(whole, parts):
    with pytest.raises(ValueError, match=r"\[concat_grad\] the parts must make 'ct' along axis 0"):
        _core.ops.concat_grad(tf.zeros(whole), *map(tf.zeros, parts), axis=0)


def test_parts_of_a_concatenation_are_its_slices():
    whole = tf.constant([[1.0, 2.0, 3.0]])
    parts = _core.ops.concat_grad(whole, tf.zeros([1, 1]), tf.zeros([1, 2]), axis=1)
    assert [part.numpy().tolist() for part in parts] == [[[1.0]], [[2.0, 3.0]]]
