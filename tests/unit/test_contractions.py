"""einsum and tensordot are NumPy's, with derivatives, for examples on any replicas."""

from __future__ import annotations

import numpy as np
import pytest
from derivatives import check_derivatives
from replica_values import examples, local, shares, strategy

import samegrad as tf

TRACED = pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
RNG = np.random.default_rng(0)
SIZES = {"a": 2, "b": 3, "i": 4, "j": 5, "k": 2, "h": 3, "z": 1, "e": 0}
EQUATIONS = [
    "ij,jk->ik", "ij,jk", "ij,kj->ik", "ji,jk->ik", "ij,ij->ij", "ij,ij->", "ij,ij", "i,j->ij",
    "i,i", "i,i->i", "ij->ji", "ij->", "ij->j", "ij", "ba", "ii->i", "ii->", "ii", "iij->ij",
    "iji,i->j", "bij,bjk->bik", "ibj,jbk->kib", "abij,abkj->abik", "bihk,bjhk->bhij",
    "aij,jkb->aikb", "ijk,kj->i", "ijk,jka->ai", "i,ij,j->", "ij,jk,kh->ih", "ai,bi,aj->bj",
    "ij,b->i", "zi,ij->zj", "iz,zj->ij", "ie,ej->ij", "ei,ij->ej", "i->", "ij, jk -> ik",
    "aA,Ab->ab",
]  # fmt: skip
WITH_DOTS = [
    ("...ij,jk->...ik", (2, 3, 4, 5), (5, 2)), ("...ij,...jk->...ik", (2, 3, 4, 5), (3, 5, 2)),
    ("...ij,...jk", (2, 1, 4, 5), (3, 5, 2)), ("i...->...i", (2, 3, 4), None),
    ("i...,i...", (2, 3), (2, 3)), ("...,...->...", (3, 1), (1, 4)),
    ("...ij,ij->...", (4, 5), (4, 5)), ("b...i,bi->b...", (2, 3, 4, 5), (2, 5)),
]  # fmt: skip


def operands(equation: str, dtype: str = "float64") -> list[np.ndarray]:
    inputs = equation.replace(" ", "").partition("->")[0]
    shapes = [[SIZES.get(c, 3) for c in term] for term in inputs.split(",")]
    return [RNG.integers(-4, 5, size=shape).astype(dtype) for shape in shapes]


@TRACED
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("equation", EQUATIONS)
def test_an_equation_means_what_numpy_says(equation, dtype, traced):
    arrays = operands(equation, dtype)
    run = (tf.function if traced else lambda f: f)(lambda *xs: tf.einsum(equation, *xs))
    found = run(*map(tf.constant, arrays)).numpy()
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.einsum(equation, *arrays))


@TRACED
@pytest.mark.parametrize(("equation", "a", "b"), WITH_DOTS)
def test_dots_stand_for_any_axes(equation, a, b, traced):
    arrays = [RNG.integers(-4, 5, size=shape).astype(float) for shape in (a, b) if shape]
    run = (tf.function if traced else lambda f: f)(lambda *xs: tf.einsum(equation, *xs))
    found = run(*map(tf.constant, arrays)).numpy()
    np.testing.assert_array_equal(found, np.einsum(equation, *arrays))


@pytest.mark.parametrize("equation", [
    "ij,jk->ik", "ij,kj->ik", "ij,ij->ij", "ij,ij->", "ii->i", "ibj,jbk->kib", "i,ij,j->", "ij->j",
    "ijk,kj->i",
])  # fmt: skip
def test_derivatives_agree_with_differences(equation):
    arrays = [x + RNG.normal(size=x.shape) for x in operands(equation)]
    check_derivatives(lambda *xs: tf.square(tf.einsum(equation, *xs)), *arrays, tolerance=1e-5)


def test_a_diagonal_leaves_nan_beside_it_out():
    x = np.float64([[1.0, np.nan], [np.inf, 2.0]])
    assert float(tf.einsum("ii->", x)) == 3.0


@pytest.mark.parametrize("counts", [(8, 8), (4, 4, 4, 4), (9, 0, 7)])
@pytest.mark.parametrize("equation", ["btd,dk->btk", "tbd,dk->btk", "bthd,bshd->bhts", "bd,bd->b"])
def test_examples_give_the_bits_of_one_device(equation, counts):
    shapes = {"btd": (16, 3, 5), "tbd": (16, 3, 5), "dk": (5, 2), "bthd": (16, 3, 2, 4),
              "bshd": (16, 5, 2, 4), "bd": (16, 4)}  # fmt: skip
    left, right = equation.partition("->")[0].split(",")
    x, y = (RNG.normal(size=shapes[term]).astype(np.float32) for term in (left, right))
    weight = right == "dk"

    def each(a, b):
        a = tf.transpose(a, [1, 0, 2]) if left == "tbd" else a
        with tf.GradientTape() as tape:
            tape.watch((a, b))
            out = tf.square(tf.einsum(equation, a, b))
        of_a, of_b = tape.gradient(out, (a, b))
        if not weight:
            return out, of_a, of_b
        of_a = tf.transpose(of_a, [1, 0, 2]) if left == "tbd" else of_a
        context = tf.distribute.get_replica_context()
        return out, of_a, context.all_reduce("sum", of_b)

    def on(parts):
        replicas = strategy(len(parts))
        cut = (lambda a: shares(*a)) if len(parts) > 1 else (lambda a: examples(a[0]))
        own = cut([p[0] for p in parts])
        other = tf.constant(y) if weight else cut([p[1] for p in parts])
        found = tf.function(lambda a, b: replicas.run(each, (a, b)))(own, other)
        return [local(part) for part in found]

    cuts = np.cumsum(counts)[:-1]
    pairs = list(zip(np.split(x, cuts), np.split(y, cuts) if not weight else [y] * len(counts),
                     strict=True))  # fmt: skip
    several, one = on(pairs), on([(x, y)])
    for place, (got, expected) in enumerate(zip(several, one, strict=True)):
        if weight and place == 2:
            if len(set(counts)) == 1:
                np.testing.assert_array_equal(got[0], expected[0])
            np.testing.assert_allclose(got[0], expected[0], rtol=1e-5)
        else:
            np.testing.assert_array_equal(np.concatenate(got), expected[0])


@TRACED
@pytest.mark.parametrize(("a", "b", "axes"), [
    ((2, 3), (3, 4), 1), ((2, 3), (2, 3), 2), ((2, 3), (4, 5), 0),
    ((2, 3, 4), (4, 3, 5), [[1, 2], [1, 0]]), ((2, 3), (3, 4), [[1], [0]]),
    ((2, 3), (3, 4), [1, 0]), ((2, 3, 4), (3, 2), ([-2, 0], [0, 1])), ((3,), (3,), 1), ((), (), 0),
    ((2, 0), (0, 3), 1), ((1, 2), (2, 1), 1),
])  # fmt: skip
def test_a_tensordot_is_numpys(a, b, axes, traced):
    x, y = (RNG.integers(-4, 5, size=shape).astype(float) for shape in (a, b))
    run = (tf.function if traced else lambda f: f)(lambda u, v: tf.tensordot(u, v, axes))
    found = run(tf.constant(x), tf.constant(y)).numpy()
    np.testing.assert_array_equal(found, np.tensordot(x, y, axes))


@pytest.mark.parametrize(("call", "kind", "words"), [
    (lambda: tf.einsum("ij,jk->ik", [[1.0]]), ValueError, "for 1 operands"),
    (lambda: tf.einsum("ij->ik", [[1.0]]), ValueError, "with 'k' on the right"),
    (lambda: tf.einsum("ij->ii", [[1.0]]), ValueError, "with 'i' on the right"),
    (lambda: tf.einsum("i1->i", [[1.0]]), ValueError, "has a label for each axis"),
    (lambda: tf.einsum("...i...", [[1.0]]), ValueError, "has a label for each axis"),
    (lambda: tf.einsum("...i->i", [[1.0]]), ValueError, "the result has no '...'"),
    (lambda: tf.einsum("ijk", [[1.0]]), ValueError, "an axis for each label: got 'ijk'"),
    (lambda: tf.einsum("i", [[1.0]]), ValueError, "for a tensor of 2 axes"),
    (lambda: tf.einsum("ij,jk", [[1.0]], [[1.0], [2.0]]), ValueError, "'j' of sizes 1 and 2"),
    (lambda: tf.einsum("ii", [[1.0, 2.0]]), ValueError, "'i' of sizes 1 and 2"),
    (lambda: tf.einsum("i,i", tf.constant([1.0]), tf.constant([1])), TypeError, "one dtype"),
    (lambda: tf.einsum("i", [1.0], fast=True), TypeError, "name and optimize: got fast"),
    (lambda: tf.einsum([1.0]), TypeError, "einsum"),
    (lambda: tf.tensordot([1.0], [1.0, 2.0], 1), ValueError, "axis 0 of .* and axis 0 of"),
    (lambda: tf.tensordot([1.0], [1.0], 2), ValueError, "for 1 and 1 axes"),
    (lambda: tf.tensordot([1.0], [1.0], [[0], [1]]), ValueError, "for 1 and 1 axes"),
    (lambda: tf.tensordot([[1.0]], [[1.0]], [[0, 0], [0, 1]]), ValueError, "axes is how many"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()
