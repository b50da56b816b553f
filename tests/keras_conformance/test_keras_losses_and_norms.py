"""keras.backend.nn: classes, cross-entropies, moments and attention."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from backend_checks import check_gradients, same_when_traced

import samegrad as tf
from samegrad import _core
from samegrad._keras import nn
from samegrad._tensor.per_replica import PerReplica

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(4, 3))
SHARES = np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True)
TARGET = np.eye(3)[[0, 2, 1, 1]]


def test_classes_become_vectors_along_any_axis() -> None:
    classes = np.array([[0, 2, -1], [1, 3, 0]])
    wanted = (classes[..., None] == np.arange(3)).astype("float32")
    np.testing.assert_array_equal(nn.one_hot(classes, 3), wanted)
    np.testing.assert_array_equal(nn.one_hot(classes, 3, axis=1), np.moveaxis(wanted, -1, 1))
    np.testing.assert_array_equal(nn.one_hot(classes, 3, axis=-3), np.moveaxis(wanted, -1, 0))
    assert nn.one_hot(classes, 3, dtype="bool").dtype == "bool"
    np.testing.assert_array_equal(nn.multi_hot(classes, 3), wanted.max(1))
    np.testing.assert_array_equal(nn.multi_hot(classes[0], 3, dtype="bool"), [True, False, True])
    with pytest.raises(ValueError, match="no sparse tensors"):
        nn.one_hot(classes, 3, sparse=True)


def test_a_cross_entropy_is_minus_the_logarithm_of_the_probability() -> None:
    wanted = -np.log((SHARES * TARGET).sum(-1))
    for axis in (-1, 0):
        turned = (TARGET.T, SHARES.T, LOGITS.T) if axis == 0 else (TARGET, SHARES, LOGITS)
        t, p, x = turned
        np.testing.assert_allclose(nn.categorical_crossentropy(t, p, axis=axis), wanted)
        found = nn.categorical_crossentropy(t, x, from_logits=True, axis=axis)
        np.testing.assert_allclose(found, wanted)
    classes = TARGET.argmax(-1)
    np.testing.assert_allclose(nn.sparse_categorical_crossentropy(classes, SHARES), wanted)
    found = nn.sparse_categorical_crossentropy(classes[:, None], LOGITS, from_logits=True)
    np.testing.assert_allclose(found, wanted)
    for function in (nn.categorical_crossentropy, nn.binary_crossentropy):
        check_gradients(lambda p, f=function: f(TARGET, p), SHARES)
        same_when_traced(function, TARGET, SHARES)


def test_losses_of_a_softmax_and_a_sigmoid_are_computed_from_what_they_were_made_of() -> None:
    far = np.array([[0.0, 200.0]])
    target = np.array([[1.0, 0.0]])
    assert float(nn.categorical_crossentropy(target, nn.softmax(far))[0]) == 200.0
    assert 0.0 < float(nn.binary_crossentropy(target, nn.sigmoid(-far))[0, 1]) < 1e-80
    with pytest.warns(UserWarning, match="does not represent logits"):
        nn.categorical_crossentropy(target, nn.softmax(far), from_logits=True)


def test_shapes_that_differ_are_refused() -> None:
    for function in (nn.categorical_crossentropy, nn.binary_crossentropy):
        with pytest.raises(ValueError, match="same rank"):
            function(TARGET[0], SHARES)
        with pytest.raises(ValueError, match="same shape"):
            function(TARGET[:2], SHARES)
    with pytest.raises(ValueError, match="must have rank"):
        nn.sparse_categorical_crossentropy(TARGET, SHARES)
    with pytest.raises(ValueError, match="Only axis=-1"):
        nn.sparse_categorical_crossentropy([0], SHARES[:1], axis=0)


def test_moments_of_sixteen_bits_are_computed_with_more() -> None:
    x = (1000 + RNG.normal(size=(1000, 2))).astype("float16")
    mean, variance = nn.moments(x, [0])
    np.testing.assert_allclose(mean, x.astype("float64").mean(0), rtol=1e-3)
    np.testing.assert_allclose(variance, x.astype("float64").var(0), rtol=1e-2)
    assert variance.dtype == "float16"


def _moments_on_replicas(x: Any, shares: list[int], synchronized: bool) -> list[Any]:
    strategy = tf.distribute.MirroredStrategy(replicas=len(shares))
    tensor = tf.convert_to_tensor(x)._as_examples(0, 1)
    rows = tensor
    if len(shares) > 1:
        rows = PerReplica(_core.split_rows(tensor, [0, *np.cumsum(shares)]))

    @tf.function
    def step(batch: object) -> object:
        function = lambda r: nn.moments(r, [0], synchronized=synchronized)  # noqa: E731
        return strategy.run(function, args=(batch,))

    found = step(rows)
    return [[x.numpy() for x in strategy.experimental_local_results(part)] for part in found]


@pytest.mark.parametrize("shares", [[3, 2], [2, 1, 1, 1], [5, 0], [0, 0, 2, 3]])
def test_synchronized_moments_have_the_bits_of_one_device(shares: list[int]) -> None:
    x = RNG.normal(size=(5, 3)).astype("float32")
    wanted = [parts[0] for parts in _moments_on_replicas(x, [5], True)]
    for y in (wanted, nn.moments(x, [0], synchronized=True)):
        np.testing.assert_allclose(y[0], x.mean(0), rtol=1e-5)
        np.testing.assert_allclose(y[1], x.var(0), rtol=1e-5)
    for found, moment in zip(_moments_on_replicas(x, shares, True), wanted, strict=True):
        for replica in found:
            if shares != [0, 0, 2, 3]:  # no branches of the tree of additions
                np.testing.assert_array_equal(replica, moment)
            np.testing.assert_allclose(replica, moment, rtol=1e-5)


def test_other_moments_are_those_of_the_replica() -> None:
    x = RNG.normal(size=(5, 3))
    means, _ = _moments_on_replicas(x, [3, 2], False)
    np.testing.assert_allclose(means, [x[:3].mean(0), x[3:].mean(0)])


def test_a_batch_is_normalized_along_any_axis() -> None:
    x, (mean, scale) = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(2, 3))
    variance = np.array([0.5, 1.0, 2.0])
    found = nn.batch_normalization(x, mean, variance, 1, mean, scale, 0.1)
    m, v, s = (a[:, None] for a in (mean, variance, scale))
    np.testing.assert_allclose(found, s * (x - m) / np.sqrt(v + 0.1) + m, rtol=1e-10)


def test_attention_weighs_values_by_the_softmax_of_products() -> None:
    q, k, v = RNG.normal(size=(3, 2, 4, 2, 3))
    mask = np.tril(np.ones((4, 4), bool))[None, None]
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(3)
    scores = np.where(mask, scores, -np.inf)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    wanted = np.einsum("bhqk,bkhd->bqhd", weights, v)
    np.testing.assert_allclose(nn.dot_product_attention(q, k, v, mask=mask), wanted, rtol=1e-9)
    found = nn.dot_product_attention(q, k, v, is_causal=True, flash_attention=True)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    with pytest.raises(ValueError, match="4D"):
        nn.dot_product_attention(q[0], k[0], v[0])


def test_the_signal_to_noise_ratio_is_in_decibels() -> None:
    a, b = RNG.normal(size=(2, 3, 4))
    wanted = 20 * np.log10(2.0) - 10 * np.log10(np.mean((a - b) ** 2))
    np.testing.assert_allclose(nn.psnr(a, b, 2.0), wanted)
    with pytest.raises(ValueError, match="must match"):
        nn.psnr(a, b[:1], 2.0)
