"""The functions of tf.keras.backend beside NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from keras_programs import keras, layers

import samegrad as tf

K = tf.keras.backend
RNG = np.random.default_rng(0)
X, Y = RNG.random((2, 3)), RNG.random((2, 3))
SIGNED = RNG.normal(size=(2, 3))
P, Q = X / X.sum(1, keepdims=True), Y / Y.sum(1, keepdims=True)
BITS = np.array([[True, False, True], [False, False, True]])
CLASSES = np.array([2, 0])
IMAGES = RNG.normal(size=(2, 5, 6, 3))
VOLUMES = RNG.normal(size=(1, 3, 4, 3, 2))
SEQUENCES = RNG.normal(size=(2, 4, 3))
A, B = RNG.normal(size=(3, 2, 4)), RNG.normal(size=(3, 4, 5))


def _softmax(x: Any, axis: Any = -1) -> Any:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _windows(x: Any, rows: int, columns: int) -> Any:
    return np.lib.stride_tricks.sliding_window_view(x, (rows, columns), axis=(1, 2))


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Any]] = {
    "abs": (K.abs, (SIGNED,), np.abs(SIGNED)),
    "all": (lambda x: K.all(x, 1), (BITS,), BITS.all(1)),
    "any": (lambda x: K.any(x, 0, True), (BITS,), BITS.any(0, keepdims=True)),
    "argmax": (K.argmax, (X,), X.argmax(-1)),
    "argmin": (K.argmin, (X,), X.argmin(-1)),
    "batch_dot": (K.batch_dot, (A, B), A @ B),
    "batch_dot of axes": (
        lambda a, b: K.batch_dot(a, b, axes=(2, 2)),
        (IMAGES[:, 0], IMAGES[:, 1]),
        IMAGES[:, 0] @ IMAGES[:, 1].transpose(0, 2, 1),
    ),
    "batch_dot of vectors": (
        lambda a, b: K.batch_dot(a, b, axes=1), (X, Y), (X * Y).sum(1, keepdims=True)
    ),
    "batch_flatten": (K.batch_flatten, (IMAGES,), IMAGES.reshape(2, -1)),
    "batch_normalization": (
        lambda x: K.batch_normalization(x, 0.5, 4.0, 1.0, 2.0, epsilon=0.0),
        (X,),
        (X - 0.5) + 1.0,
    ),
    "bias_add": (K.bias_add, (IMAGES, X[0]), IMAGES + X[0]),
    "binary_crossentropy": (
        K.binary_crossentropy, (X, Y), -X * np.log(Y) - (1 - X) * np.log(1 - Y)
    ),
    "binary_crossentropy of logits": (
        lambda t, x: K.binary_crossentropy(t, x, from_logits=True),
        (X, SIGNED),
        np.log1p(np.exp(SIGNED)) - X * SIGNED,
    ),
    "binary_focal_crossentropy": (
        K.binary_focal_crossentropy,
        (BITS.astype(float), Y),
        np.where(BITS, -((1 - Y) ** 2) * np.log(Y), -(Y**2) * np.log(1 - Y)),
    ),
    "cast": (lambda x: K.cast(x, "int32"), (4 * SIGNED,), (4 * SIGNED).astype("int32")),
    "categorical_crossentropy": (K.categorical_crossentropy, (P, Q), -(P * np.log(Q)).sum(1)),
    "categorical_crossentropy of logits": (
        lambda t, x: K.categorical_crossentropy(t, x, from_logits=True),
        (P, SIGNED),
        -(P * np.log(_softmax(SIGNED))).sum(1),
    ),
    "categorical_focal_crossentropy": (
        K.categorical_focal_crossentropy, (P, Q), -(0.25 * (1 - Q) ** 2 * P * np.log(Q)).sum(1)
    ),
    "clip": (lambda x: K.clip(x, None, 0.5), (X,), np.minimum(X, 0.5)),
    "concatenate": (lambda a, b: K.concatenate([a, b]), (X, Y), np.concatenate([X, Y], -1)),
    "conv1d": (
        lambda x: K.conv1d(x, np.ones((2, 3, 1)), padding="causal"),
        (SEQUENCES,),
        np.cumsum(SEQUENCES.sum(-1, keepdims=True), 1)
        - np.pad(np.cumsum(SEQUENCES.sum(-1, keepdims=True), 1), ((0, 0), (2, 0), (0, 0)))[:, :4],
    ),
    "conv2d": (
        lambda x: K.conv2d(x, np.ones((2, 3, 3, 1))),
        (IMAGES,),
        _windows(IMAGES, 2, 3).sum((3, 4, 5))[..., None],
    ),
    "conv2d_transpose": (
        lambda x: K.conv2d_transpose(x, np.ones((2, 2, 1, 3)), (2, 10, 12, 1), (2, 2)),
        (IMAGES,),
        IMAGES.sum(-1, keepdims=True).repeat(2, 1).repeat(2, 2),
    ),
    "conv3d": (
        lambda x: K.conv3d(x, np.ones((3, 4, 3, 2, 1))),
        (VOLUMES,),
        VOLUMES.sum().reshape(1, 1, 1, 1, 1),
    ),
    "cos": (K.cos, (X,), np.cos(X)),
    "cumprod": (lambda x: K.cumprod(x, 1), (X,), X.cumprod(1)),
    "cumsum": (K.cumsum, (X,), X.cumsum(0)),
    "depthwise_conv2d": (
        lambda x: K.depthwise_conv2d(x, np.ones((2, 2, 3, 1))),
        (IMAGES,),
        _windows(IMAGES, 2, 2).sum((4, 5)),
    ),
    "dot": (K.dot, (X, Y.T), X @ Y.T),
    "dot of more axes": (K.dot, (A, B), np.dot(A, B)),
    "elu": (lambda x: K.elu(x, 0.5), (SIGNED,), np.where(SIGNED > 0, SIGNED,
                                                         0.5 * np.expm1(SIGNED))),
    "equal": (K.equal, (BITS, BITS), np.ones((2, 3), bool)),
    "exp": (K.exp, (X,), np.exp(X)),
    "expand_dims": (K.expand_dims, (X,), X[..., None]),
    "flatten": (K.flatten, (X,), X.ravel()),
    "foldl": (lambda x: K.foldl(lambda a, b: a - b, x), (A,), A[0] - A[1] - A[2]),
    "foldr": (lambda x: K.foldr(lambda a, b: a - b, x), (A,), A[2] - A[1] - A[0]),
    "gather": (lambda x: K.gather(x, [1, 0]), (X,), X[[1, 0]]),
    "greater": (K.greater, (X, Y), X > Y),
    "greater_equal": (K.greater_equal, (X, X), X >= X),
    "hard_sigmoid": (K.hard_sigmoid, (4 * SIGNED,), np.clip(0.8 * SIGNED + 0.5, 0, 1)),
    "in_top_k": (lambda x: K.in_top_k(x, CLASSES, 1), (X,), X.argmax(1) == CLASSES),
    "l2_normalize": (
        lambda x: K.l2_normalize(x, 1), (X,), X / np.linalg.norm(X, axis=1, keepdims=True)
    ),
    "less": (K.less, (X, Y), X < Y),
    "less_equal": (K.less_equal, (X, Y), X <= Y),
    "log": (K.log, (X,), np.log(X)),
    "logsumexp": (lambda x: K.logsumexp(x, 1), (X,), np.log(np.exp(X).sum(1))),
    "map_fn": (lambda x: K.map_fn(lambda row: row * 2.0, x), (X,), 2 * X),
    "max": (lambda x: K.max(x, 1), (X,), X.max(1)),
    "maximum": (K.maximum, (X, Y), np.maximum(X, Y)),
    "mean": (lambda x: K.mean(x, 1, True), (X,), X.mean(1, keepdims=True)),
    "mean of bools": (K.mean, (BITS,), BITS.mean()),
    "min": (K.min, (X,), X.min()),
    "minimum": (K.minimum, (X, Y), np.minimum(X, Y)),
    "not_equal": (K.not_equal, (X, Y), X != Y),
    "one_hot": (lambda i: K.one_hot(i, 3), (CLASSES,), np.eye(3)[CLASSES]),
    "ones_like": (K.ones_like, (X,), np.ones((2, 3))),
    "permute_dimensions": (lambda x: K.permute_dimensions(x, (2, 0, 1)), (A,),
                           A.transpose(2, 0, 1)),
    "pool2d": (
        lambda x: K.pool2d(x, (2, 2), pool_mode="avg"), (IMAGES,),
        _windows(IMAGES, 2, 2).mean((4, 5)),
    ),
    "pool3d": (lambda x: K.pool3d(x, (3, 4, 3)), (VOLUMES,),
               VOLUMES.max((1, 2, 3), keepdims=True)),
    "pow": (lambda x: K.pow(x, 3.0), (X,), X**3),
    "prod": (lambda x: K.prod(x, 1), (X,), X.prod(1)),
    "reshape": (lambda x: K.reshape(x, (3, -1)), (X,), X.reshape(3, 2)),
    "relu": (
        lambda x: K.relu(x, alpha=0.1, max_value=1.0, threshold=0.2),
        (SIGNED,),
        np.where(SIGNED > 0.2, np.minimum(SIGNED, 1.0), 0.1 * (SIGNED - 0.2)),
    ),
    "repeat": (lambda x: K.repeat(x, 2), (X,), X[:, None].repeat(2, 1)),
    "repeat_elements": (lambda x: K.repeat_elements(x, 2, 1), (X,), X.repeat(2, 1)),
    "resize_images": (
        lambda x: K.resize_images(x, 2, 3, "channels_last"), (IMAGES,),
        IMAGES.repeat(2, 1).repeat(3, 2),
    ),
    "resize_volumes": (
        lambda x: K.resize_volumes(x, 2, 1, 3, "channels_last"), (VOLUMES,),
        VOLUMES.repeat(2, 1).repeat(3, 3),
    ),
    "reverse": (lambda x: K.reverse(x, 1), (X,), X[:, ::-1]),
    "rnn": (
        lambda x: K.rnn(lambda v, s: (v + s[0], [v + s[0]]), x, [tf.zeros((2, 3), x.dtype)])[1],
        (SEQUENCES,),
        SEQUENCES.cumsum(1),
    ),
    "round": (K.round, (4 * X,), np.round(4 * X)),
    "separable_conv2d": (
        lambda x: K.separable_conv2d(x, np.ones((2, 2, 3, 1)), np.ones((1, 1, 3, 1))),
        (IMAGES,),
        _windows(IMAGES, 2, 2).sum((3, 4, 5))[..., None],
    ),
    "shape": (K.shape, (X,), [2, 3]),
    "sigmoid": (K.sigmoid, (X,), 1 / (1 + np.exp(-X))),
    "sign": (K.sign, (SIGNED,), np.sign(SIGNED)),
    "sin": (K.sin, (X,), np.sin(X)),
    "softmax": (K.softmax, (X,), _softmax(X)),
    "softmax of axes": (lambda x: K.softmax(x, (1, 2)), (A,), _softmax(A, (1, 2))),
    "softplus": (K.softplus, (SIGNED,), np.log1p(np.exp(SIGNED))),
    "softsign": (K.softsign, (SIGNED,), SIGNED / (1 + np.abs(SIGNED))),
    "sparse_categorical_crossentropy": (
        lambda x: K.sparse_categorical_crossentropy(CLASSES, x), (Q,),
        -np.log(Q[range(2), CLASSES]),
    ),
    "sparse_categorical_crossentropy without a class": (
        lambda x: K.sparse_categorical_crossentropy(CLASSES, x, True, ignore_class=2),
        (SIGNED,),
        [0.0, -np.log(_softmax(SIGNED))[1, 0]],
    ),
    "spatial_2d_padding": (K.spatial_2d_padding, (IMAGES,),
                           np.pad(IMAGES, ((0, 0), (1, 1), (1, 1), (0, 0)))),
    "spatial_3d_padding": (K.spatial_3d_padding, (VOLUMES,),
                           np.pad(VOLUMES, ((0, 0), (1, 1), (1, 1), (1, 1), (0, 0)))),
    "sqrt": (K.sqrt, (SIGNED,), np.sqrt(np.maximum(SIGNED, 0))),
    "square": (K.square, (X,), X**2),
    "squeeze": (lambda x: K.squeeze(x, 1), (X[:, None],), X),
    "stack": (lambda a, b: K.stack([a, b], 1), (X, Y), np.stack([X, Y], 1)),
    "std": (lambda x: K.std(x, 1), (X,), X.std(1)),
    "stop_gradient": (K.stop_gradient, (X,), X),
    "sum": (lambda x: K.sum(x, 1), (X,), X.sum(1)),
    "switch": (lambda x, y: K.switch(BITS, x, y), (X, Y), np.where(BITS, X, Y)),
    "switch of rows": (
        lambda x, y: K.switch(tf.constant([True, False]), lambda: x, y), (X, Y),
        np.stack([X[0], Y[1]]),
    ),
    "tanh": (K.tanh, (X,), np.tanh(X)),
    "temporal_padding": (K.temporal_padding, (SEQUENCES,),
                         np.pad(SEQUENCES, ((0, 0), (1, 1), (0, 0)))),
    "tile": (lambda x: K.tile(x, (2, 1)), (X,), np.tile(X, (2, 1))),
    "transpose": (K.transpose, (X,), X.T),
    "var": (K.var, (X,), X.var()),
    "zeros_like": (K.zeros_like, (X,), np.zeros((2, 3))),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_function_computes_as_numpy(float64: None, name: str) -> None:
    function, arguments, wanted = CASES[name]
    found = function(*(tf.constant(part) for part in arguments))
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5, atol=1e-6)


def test_values_are_made() -> None:
    np.testing.assert_array_equal(K.arange(1, 7, 2).numpy(), [1, 3, 5])
    np.testing.assert_array_equal(K.arange(3, dtype="float32").numpy(), [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(K.constant([1, 2]).numpy(), [1.0, 2.0])
    np.testing.assert_array_equal(K.get_value(K.ones((2,))), [1.0, 1.0])
    np.testing.assert_array_equal(K.eval(K.zeros((2,), "int32")), [0, 0])
    np.testing.assert_array_equal(K.get_value(K.eye(2)), np.eye(2))
    assert K.cast_to_floatx(tf.constant([1])).dtype == tf.float32
    assert (K.dtype(K.constant(1.0)), K.ndim(K.zeros((2, 3))), K.count_params(K.ones((2, 3)))) == (
        "float32", 2, 6,
    )  # fmt: skip
    assert K.int_shape(K.ones((2, 3))) == (2, 3)
    assert not K.is_sparse(K.ones((2,)))
    assert K.to_dense(K.constant([1.0])).shape == (1,)


def test_variables_are_read_and_changed() -> None:
    v = K.variable(X)
    K.set_value(v, Y)
    np.testing.assert_allclose(K.batch_get_value([v])[0], Y, rtol=1e-6)
    K.batch_set_value([(v, X)])
    K.update(v, tf.zeros((2, 3)))
    K.update_add(v, tf.ones((2, 3)))
    K.update_sub(v, 0.5 * tf.ones((2, 3)))
    K.moving_average_update(v, tf.ones((2, 3)), 0.5)
    np.testing.assert_allclose(K.get_value(v), 0.75)


@pytest.mark.parametrize(
    ("draw", "mean"),
    [
        (lambda: K.random_normal((4000,), 1.0, 0.5, seed=1), 1.0),
        (lambda: K.random_uniform((4000,), 1.0, 3.0, seed=1), 2.0),
        (lambda: K.random_bernoulli((4000,), 0.25, seed=1), 0.25),
        (lambda: K.random_binomial((4000,), 0.25, seed=1), 0.25),
        (lambda: K.truncated_normal((4000,), 1.0, 0.5, seed=1), 1.0),
        (lambda: K.random_normal_variable((4000,), 1.0, 0.5, seed=1), 1.0),
        (lambda: K.random_uniform_variable((4000,), 1.0, 3.0, seed=1), 2.0),
        (lambda: K.dropout(tf.ones((4000,)), 0.5, seed=1), 1.0),
    ],
)
def test_draws_have_their_mean(draw: Any, mean: float) -> None:
    assert float(np.mean(draw().numpy())) == pytest.approx(mean, abs=0.06)


def test_ctc_costs_and_labels() -> None:
    y = tf.constant(np.full((1, 4, 3), 1 / 3, "float32"))
    cost = K.ctc_batch_cost(np.array([[0, 1]]), y, np.array([[4]]), np.array([[2]]))
    paths = sum([k for k, _ in _collapsed(word)] == [0, 1] for word in np.ndindex(3, 3, 3, 3))
    assert tuple(cost.shape) == (1, 1)
    assert float(cost[0, 0]) == pytest.approx(-np.log(paths / 81), rel=1e-5)
    rows = np.float32([[[0.8, 0.1, 0.1], [0.8, 0.1, 0.1], [0.1, 0.1, 0.8], [0.1, 0.8, 0.1]]])
    for greedy in (True, False):
        found, _ = K.ctc_decode(rows, np.array([4]), greedy=greedy)
        assert [k for k in np.asarray(found[0])[0] if k >= 0] == [0, 1]


def _collapsed(word: Any) -> Any:
    """The labels that steps spell: repetitions once, without the blank (2)."""
    before, kept = None, []
    for k in word:
        if k != before and k != 2:
            kept.append((k, True))
        before = k
    return kept


def test_phases_choose() -> None:
    assert K.in_train_phase(1, lambda: 2) == 2
    assert K.in_test_phase(1, 2) == 1
    with K.learning_phase_scope(1):
        assert K.in_train_phase(lambda: 1, 2) == 1


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("gradients", "GradientTape"),
        ("function", "samegrad.function"),
        ("placeholder", "keras.Input"),
        ("get_session", "no sessions"),
        ("ctc_label_dense_to_sparse", "dense"),
        ("local_conv2d", "einsum"),
    ],
)
def test_what_cannot_be_says_what_to_use_instead(name: str, instead: str) -> None:
    with pytest.raises(NotImplementedError, match=instead):
        getattr(K, name)([], [])


def test_functions_run_in_traced_steps_of_any_number_of_examples() -> None:
    @tf.function
    def step(x: Any) -> Any:
        return K.softmax(K.dot(K.batch_flatten(x), K.constant(np.ones((18, 2)))))

    @tf.function
    def products(x: Any) -> Any:
        return K.batch_dot(x, K.repeat_elements(x, 2, 1), axes=2), K.dot(x, K.ones((3, 2)))

    for count in (1, 3):
        assert step(tf.ones((count, 6, 3))).shape == (count, 2)
        assert [part.shape for part in products(tf.ones((count, 6, 3)))] == [
            (count, 6, 12), (count, 6, 2),
        ]  # fmt: skip
    model = keras.Sequential([keras.Input((3,)), layers.Lambda(lambda x: K.square(x))])
    np.testing.assert_allclose(model(X.astype("float32")).numpy(), X**2, rtol=1e-5)
