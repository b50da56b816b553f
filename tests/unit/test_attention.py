"""Attention has the bits of its parts, forwards and backwards, and no matrix of all pairs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import record_keras_attention as keras_values
from derivatives import check_derivatives
from replica_values import examples, local, shares, strategy

import samegrad as tf
from samegrad._tensor.example_axis import as_examples
from samegrad.nn._attention import Dropped, attend_row

LOWEST = {
    "float32": -0.7 * float(np.finfo(np.float32).max),
    "float64": -0.7 * 1.7976931348623157e308,
}


def plain(
    q: Any, k: Any, v: Any, mask: Any = None, scale: float | None = None, bias: Any = None
) -> Any:
    """The parts one after the other."""
    q, k, v = (tf.transpose(x, [0, 2, 1, 3]) for x in (q, k, v))
    scores = tf.matmul(q, k, transpose_b=True) * (scale or 1 / np.sqrt(int(q.shape[-1])))
    if bias is not None:
        scores += bias
    if mask is not None:
        scores = tf.where(mask, scores, tf.constant(LOWEST[scores.dtype.name], scores.dtype))
    return tf.transpose(tf.matmul(tf.nn.softmax(scores), v), [0, 2, 1, 3])


def numbers(
    n: int, queries: int, keys: int, dtype: str = "float32", heads: int = 2, width: int = 5
) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(queries * 100 + keys)
    shapes = [(n, queries, heads, width), (n, keys, heads, width), (n, keys, heads, 3)]
    return tuple(rng.normal(size=shape).astype(dtype) for shape in shapes)


def with_gradients(attend: Any) -> Any:
    def step(q: Any, k: Any, v: Any, mask: Any = None) -> list[Any]:
        with tf.GradientTape() as tape:
            tape.watch([q, k, v])
            y = attend(q, k, v, mask=mask)
            total = tf.reduce_sum(tf.square(y))
        return [y, *tape.gradient(total, [q, k, v])]

    return step


def arrays(values: list[Any]) -> list[np.ndarray]:
    return [value.numpy() for value in values]


def assert_same(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def mask_of(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(1).uniform(size=shape) < 0.6


SIZES = [(1, 1), (1, 8), (7, 15), (16, 17), (25, 8), (100, 1100), (300, 700)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("batched", [True, False], ids=["examples", "plain"])
@pytest.mark.parametrize(("queries", "keys"), SIZES)
def test_bits_are_those_of_the_parts(queries: int, keys: int, batched: bool, dtype: str) -> None:
    wrap = examples if batched else tf.constant
    given = [wrap(x) for x in numbers(3, queries, keys, dtype)]
    fused = tf.function(with_gradients(tf.nn.dot_product_attention))
    expected = arrays(tf.function(with_gradients(plain))(*given))
    assert_same(arrays(fused(*given)), expected)
    assert_same(arrays(with_gradients(tf.nn.dot_product_attention)(*given)), expected)
    plan = str(fused.explain(*given))
    assert "dot_product_attention_grad" in plan
    assert "softmax" not in plan


@pytest.mark.parametrize(
    "shape", [(3, 2, 9, 33), (1, 1, 9, 33), (3, 1, 1, 33), (1, 2, 9, 1), (3, 1, 9, 1)]
)
def test_masks_of_any_shape_have_the_bits_of_the_parts(shape: tuple[int, ...]) -> None:
    q, k, v = (examples(x) for x in numbers(3, 9, 33))
    mask = examples(mask_of(shape)) if shape[0] == 3 else tf.constant(mask_of(shape))
    found = tf.function(with_gradients(tf.nn.dot_product_attention))(q, k, v, mask)
    assert_same(arrays(found), arrays(tf.function(with_gradients(plain))(q, k, v, mask)))


def test_causal_attention_sees_what_was_before_and_what_the_mask_leaves() -> None:
    q, k, v = (tf.constant(x) for x in numbers(2, 6, 8))
    before = np.tril(np.ones((6, 8), bool))[None, None]
    keys = mask_of((2, 1, 1, 8))
    found = tf.nn.dot_product_attention(q, k, v, is_causal=True)
    np.testing.assert_array_equal(found.numpy(), plain(q, k, v, before).numpy())
    both = tf.nn.dot_product_attention(q, k, v, mask=keys, is_causal=True, scale=0.3)
    np.testing.assert_array_equal(both.numpy(), plain(q, k, v, before & keys, 0.3).numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("queries", "keys"), [(1, 1), (193, 192), (700, 500), (300, 700), (30, 4200), (0, 5), (5, 0)]
)
def test_what_causal_attention_leaves_out_changes_no_bit(
    queries: int, keys: int, dtype: str
) -> None:
    q, k, v = (examples(x) for x in numbers(2, queries, keys, dtype))
    before = tf.constant(np.tril(np.ones((queries, keys), bool))[None, None])
    found = tf.function(
        with_gradients(lambda *x, mask: tf.nn.dot_product_attention(*x, is_causal=True))
    )
    whole = tf.function(with_gradients(tf.nn.dot_product_attention))
    expected = arrays(whole(q, k, v, before))
    assert_same(arrays(found(q, k, v)), expected)
    assert_same(expected, arrays(tf.function(with_gradients(plain))(q, k, v, before)))


def test_causal_attention_looks_at_nothing_that_comes_later() -> None:
    q, k, v = numbers(1, 400, 400, heads=1)
    v[:, 390:] = np.nan
    assert np.isfinite(tf.nn.dot_product_attention(q, k, v, is_causal=True).numpy()[:, :192]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_causal_queries_that_padding_leaves_no_key(dtype: str) -> None:
    """They weigh all keys equally, also those behind the last one that the others look at."""
    q, k, v = (examples(x) for x in numbers(2, 300, 700, dtype))
    padding = np.ones((2, 1, 1, 700), bool)
    padding[1, ..., :5] = False

    def attend(q: Any, k: Any, v: Any, mask: Any) -> Any:
        return tf.nn.dot_product_attention(q, k, v, mask=mask, is_causal=True)

    before = np.tril(np.ones((300, 700), bool))[None, None]
    found = arrays(tf.function(with_gradients(attend))(q, k, v, examples(padding)))
    expected = tf.function(with_gradients(plain))(q, k, v, examples(padding & before))
    assert_same(found, arrays(expected))


def test_a_query_without_keys_weighs_all_equally() -> None:
    q, k, v = numbers(1, 2, 4)
    found = tf.nn.dot_product_attention(q, k, v, mask=np.zeros((1, 1, 2, 4), bool)).numpy()
    np.testing.assert_allclose(found, np.broadcast_to(v.mean(1, keepdims=True), found.shape), 1e-6)


@pytest.mark.parametrize("masked", [False, True])
def test_first_and_second_derivatives(masked: bool) -> None:
    q, k, v = numbers(2, 3, 4, "float64", heads=1, width=2)
    mask = mask_of((1, 1, 3, 4)) if masked else None
    check_derivatives(lambda q, k, v: tf.nn.dot_product_attention(q, k, v, mask=mask), q, k, v)


@pytest.mark.parametrize("replicas", [2, 3])
def test_replicas_have_the_bits_of_one_device(replicas: int) -> None:
    data = numbers(16, 17, 9)

    def step(q: Any, k: Any, v: Any) -> list[Any]:
        w = tf.constant(np.linspace(0.5, 1.5, 5, dtype=np.float32))
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = tf.nn.dot_product_attention(q * w, k, v)
            loss = tf.reduce_sum(y * y)
        context = tf.distribute.get_replica_context()
        return [y, context.all_reduce("SUM", tape.gradient(loss, w))]

    def run(replicas: int) -> list[np.ndarray]:
        y, g = strategy(replicas).run(
            step, args=tuple(shares(*np.array_split(x, replicas)) for x in data)
        )
        return [np.concatenate(local(y)), local(g)[0]]

    assert_same(run(replicas), run(1))


@pytest.mark.parametrize("operand", [0, 2])
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_examples_may_be_on_any_axis_of_query_and_value(operand: int, axis: int) -> None:
    heads: list[Any] = [tf.constant(x) for x in numbers(3, 5, 4)]
    expected = tf.nn.dot_product_attention(*heads)
    heads[operand] = heads[operand]._as_examples(axis, 1)
    found = tf.nn.dot_product_attention(*heads)
    np.testing.assert_array_equal(found.numpy(), expected.numpy())


@pytest.mark.parametrize(("n", "queries", "keys"), [(0, 3, 4), (2, 0, 4), (2, 3, 0), (2, 0, 0)])
def test_nothing_to_look_at_or_nobody_who_looks(n: int, queries: int, keys: int) -> None:
    given = [tf.constant(x) for x in numbers(n, queries, keys)]
    found = arrays(tf.function(with_gradients(tf.nn.dot_product_attention))(*given))
    assert_same(found, arrays(tf.function(with_gradients(plain))(*given)))
    assert found[0].shape == (n, queries, 2, 3)


def test_what_is_not_finite_stays_in_its_head() -> None:
    q, k, v = numbers(2, 5, 6)
    q[0, 1, 0, 2], k[1, 3, 1, 0] = np.nan, np.inf
    given = [examples(x) for x in (q, k, v)]
    found = arrays(tf.function(with_gradients(tf.nn.dot_product_attention))(*given))
    assert_same(found, arrays(tf.function(with_gradients(plain))(*given)))
    assert np.isfinite(found[0][0, :, 1]).all() and np.isfinite(found[0][1, :, 0]).all()


def test_more_queries_than_one_chain_adds_up() -> None:
    given = [tf.constant(x) for x in numbers(1, 9000, 3, heads=1, width=2)]
    found = arrays(tf.function(with_gradients(tf.nn.dot_product_attention))(*given))
    assert_same(found, arrays(tf.function(with_gradients(plain))(*given)))


def test_blocks_of_few_queries_change_no_bit() -> None:
    program = """
import sys, numpy as np, samegrad as tf
rng = np.random.default_rng(0)
q, k, v = (tf.constant(rng.normal(size=(2, 70, 2, 8)).astype(np.float32)) for _ in range(3))
with tf.GradientTape() as tape:
    tape.watch([q, k, v])
    y = tf.nn.dot_product_attention(q, k, v, is_causal=True)
    s = tf.reduce_sum(y * y)
sys.stdout.buffer.write(b"".join(x.numpy().tobytes() for x in [y, *tape.gradient(s, [q, k, v])]))
"""

    def run(thresholds: str) -> bytes:
        environment = {**os.environ, "SAMEGRAD_THRESHOLDS": thresholds}
        return subprocess.run(
            [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, check=True
        ).stdout

    assert run("tile_bytes=1") == run("tile_bytes=1000000") == run("1")


def reference(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, bias: Any = 0.0, mask: Any = True
) -> np.ndarray:
    """Head by head, in float64."""
    group = q.shape[2] // k.shape[2]
    k, v = (np.repeat(x, group, axis=2) for x in (k, v))
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[3]) + bias
    scores = np.where(mask, scores, -1e300)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bhqk,bkhd->bqhd", weights / weights.sum(-1, keepdims=True), v)


BIASES = [(3, 2, 7, 9), (1, 2, 1, 9), (1, 1, 7, 9), (3, 1, 1, 1)]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("shape", BIASES, ids=str)
def test_a_bias_is_added_to_the_scores(shape: tuple[int, ...], masked: bool) -> None:
    q, k, v = numbers(3, 7, 9, "float64")
    bias = np.random.default_rng(5).normal(size=shape)
    mask = mask_of((3, 1, 7, 9)) if masked else None
    found = tf.nn.dot_product_attention(q, k, v, bias, mask, is_causal=masked).numpy()
    seen = True if mask is None else mask & np.tril(np.ones((7, 9), bool))
    rows = np.broadcast_to(seen, (3, 2, 7, 9)).any(-1).transpose(0, 2, 1)  # all masked: any weights
    expected = reference(q, k, v, bias, seen)
    np.testing.assert_allclose(found[rows], expected[rows], rtol=1e-11, atol=1e-13)
    if not masked:
        parts = plain(*map(tf.constant, (q, k, v)), bias=tf.constant(bias)).numpy()
        np.testing.assert_array_equal(found, parts)


@pytest.mark.parametrize("heads", [1, 2, 3, 6])
def test_a_key_head_serves_neighbouring_query_heads(heads: int) -> None:
    q = numbers(3, 5, 8, "float64", heads=6)[0]
    _, k, v = numbers(3, 5, 8, "float64", heads=heads)
    found = tf.nn.dot_product_attention(q, k, v).numpy()
    np.testing.assert_allclose(found, reference(q, k, v), rtol=1e-11)
    traced = tf.function(with_gradients(tf.nn.dot_product_attention))(*map(examples, (q, k, v)))
    eager = with_gradients(tf.nn.dot_product_attention)(*map(tf.constant, (q, k, v)))
    assert_same(arrays(traced), arrays(eager))


def test_derivatives_of_grouped_heads_and_bias_to_second_order() -> None:
    q = numbers(2, 3, 4, "float64", heads=2, width=2)[0]
    _, k, v = numbers(2, 3, 4, "float64", heads=1, width=2)
    check_derivatives(lambda q, k, v: tf.nn.dot_product_attention(q, k, v, is_causal=True), q, k, v)
    bias = np.random.default_rng(5).normal(size=(1, 2, 3, 4))
    check_derivatives(tf.nn.dot_product_attention, q, k, v, bias)


def test_numbers_of_keras() -> None:
    """`keras.ops.dot_product_attention` of record_keras_attention.py."""
    file = Path(__file__).with_name("keras_attention.json")
    recorded = json.loads(file.read_text(encoding="utf-8"))
    assert len(recorded) == len(keras_values.CASES)
    for name, case in keras_values.CASES.items():
        found = tf.nn.dot_product_attention(**keras_values.operands(case))
        np.testing.assert_allclose(found.numpy().ravel(), recorded[name], atol=2e-6)


@pytest.mark.parametrize("replicas", [2, 3])
def test_dropout_on_replicas_drops_what_one_device_drops(replicas: int) -> None:
    data = numbers(16, 6, 9)

    def step(q: Any, k: Any, v: Any) -> Any:
        w = tf.constant(np.linspace(0.5, 1.5, 5, dtype=np.float32))
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = tf.nn.dot_product_attention(q * w, k, v, dropout_rate=0.4, seed=3)
            loss = tf.reduce_sum(y * y)
        total = tf.distribute.get_replica_context().all_reduce("SUM", tape.gradient(loss, w))
        return [y, total]

    def run(replicas: int) -> list[np.ndarray]:
        tf.random.set_seed(1)
        y, g = strategy(replicas).run(
            step, args=tuple(shares(*np.array_split(x, replicas)) for x in data)
        )
        return [np.concatenate(local(y)), local(g)[0]]

    one = run(1)
    assert_same(run(replicas), one)
    assert not np.allclose(one[0], tf.nn.dot_product_attention(*data).numpy())


def dropped(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """The parts one after the other, with dropout."""
    q, k, v = (tf.transpose(x, [0, 2, 1, 3]) for x in (q, k, v))
    scores = tf.matmul(q, k, transpose_b=True) * (1 / np.sqrt(int(q.shape[-1])))
    if mask is not None:
        scores = tf.where(mask, scores, tf.constant(LOWEST[scores.dtype.name], scores.dtype))
    weights = tf.nn.dropout(tf.nn.softmax(scores), 0.3, seed=5)
    return tf.transpose(tf.matmul(weights, v), [0, 2, 1, 3])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (7, 15), (100, 300), (300, 700), (0, 5)])
def test_dropout_inside_drops_what_it_drops_outside(queries: int, keys: int, dtype: str) -> None:
    q, k, v = (examples(x) for x in numbers(3, queries, keys, dtype))
    padding = mask_of((3, 1, 1, keys))
    before = np.tril(np.ones((queries, keys), bool))[None, None]

    def attend(q: Any, k: Any, v: Any, mask: Any) -> Any:
        return tf.nn.dot_product_attention(
            q, k, v, mask=mask, is_causal=True, dropout_rate=0.3, seed=5
        )

    def run(fn: Any, mask: np.ndarray, traced: bool = True) -> list[np.ndarray]:
        tf.random.set_seed(2)
        step = with_gradients(fn)
        return arrays((tf.function(step) if traced else step)(q, k, v, examples(mask)))

    expected = run(dropped, padding & before)
    assert_same(run(attend, padding), expected)
    assert_same(run(attend, padding, traced=False), expected)
    plan = str(tf.function(with_gradients(attend)).explain(q, k, v, examples(padding)))
    assert "dot_product_attention_grad" in plan
    assert "softmax" not in plan


def test_each_step_drops_other_weights() -> None:
    given = [examples(x) for x in numbers(2, 4, 6)]
    step = tf.function(lambda q, k, v: tf.nn.dot_product_attention(q, k, v, dropout_rate=0.5))
    first, second = step(*given).numpy(), step(*given).numpy()
    assert (first != second).any()


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("zero_blind", [False, True])
def test_derivatives_with_dropout_to_second_order(traced: bool, zero_blind: bool) -> None:
    q, k, v = numbers(2, 3, 4, "float64", heads=1, width=2)
    mask = mask_of((1, 1, 3, 4))
    mask[..., 1, :] = False

    def attend(q: Any, k: Any, v: Any) -> Any:
        q, k, v = (as_examples(x) for x in (q, k, v))
        key = tf.constant([3, 4], "uint32")
        masks, drop = [tf.constant(mask)], Dropped(0.4, key)
        return attend_row((q, k, v), masks, 0.7, False, zero_blind, drop)

    check_derivatives(attend, q, k, v, traced=traced)


def test_dropout_drops_weights_and_scales_the_others() -> None:
    n, keys, rate = 50, 40, 0.25
    q, k = np.zeros((n, 30, 1, 2), np.float32), np.zeros((n, keys, 1, 2), np.float32)
    v = np.broadcast_to(np.eye(keys, dtype=np.float32)[None, :, None], (n, keys, 1, keys))
    weights = tf.nn.dot_product_attention(q, k, v, dropout_rate=rate).numpy() * keys
    np.testing.assert_allclose(np.unique(weights.round(5)), [0, np.float32(4 / 3).round(5)], 1e-4)
    assert abs((weights == 0).mean() - rate) < 0.01


def test_halves_are_rounded_once() -> None:
    q, k, v = numbers(2, 6, 8)
    half = [tf.cast(x, "float16") for x in (q, k, v)]
    bias = np.zeros((1, 1, 6, 8), np.float16)
    found = tf.nn.dot_product_attention(*half, bias=bias)
    assert found.dtype == tf.float16
    wide = tf.nn.dot_product_attention(*(tf.cast(x, "float32") for x in half))
    np.testing.assert_array_equal(found.numpy(), tf.cast(wide, "float16").numpy())


def test_wrong_operands_are_refused() -> None:
    q, k, v = numbers(2, 3, 4)
    attend = tf.nn.dot_product_attention
    with pytest.raises(ValueError, match="query must be"):
        attend(q[0], k, v)
    with pytest.raises(ValueError, match="the widths of query and key must be equal"):
        attend(q[..., :2], k, v)
    with pytest.raises(ValueError, match="lengths of key and value"):
        attend(q, k[:, :2], v)
    with pytest.raises(ValueError, match="batches"):
        attend(q[:1], k, v)
    with pytest.raises(ValueError, match="must divide those of the query: got 2 and 1"):
        attend(q[:, :, :1], k, v)
    with pytest.raises(ValueError, match="numbers of heads"):
        attend(q, k, v[:, :, :1])
    with pytest.raises(ValueError, match="the bias must broadcast"):
        attend(q, k, v, np.ones((2, 1, 3, 5), np.float32))
    with pytest.raises(ValueError, match="with 4 axes"):
        attend(q, k, v, np.ones((3, 4), np.float32))
    with pytest.raises(ValueError, match="rate must be in"):
        attend(q, k, v, dropout_rate=1.0)
    with pytest.raises(ValueError, match="mask must broadcast"):
        attend(q, k, v, mask=np.ones((2, 1, 3, 5), bool))
    with pytest.raises(ValueError, match="with 4 axes"):
        attend(q, k, v, mask=np.ones((3, 4), bool))
    with pytest.raises(TypeError):
        attend(q, k, v, mask=np.ones((2, 1, 3, 4), np.float32))
    with pytest.raises(TypeError):
        attend(q.astype(np.float64), k, v)
