"""Which errors wrong operands raise: TensorFlow's differ in functions and outside of them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from manner_programs import manner, refused


def operands(tf: Any) -> dict[str, Any]:
    return {
        "i": tf.constant([1, 2]),
        "f": tf.constant([1.0, 2.0]),
        "d": tf.constant([1.0, 2.0], tf.float64),
        "b": tf.constant([True, False]),
        "s": tf.constant(["a", "b"]),
        "im": tf.ones([2, 2], tf.int32),
        "fm": tf.ones([2, 2]),
        "dm": tf.ones([2, 2], tf.float64),
    }


WRONG_DTYPES: list[Callable[..., Any]] = [
    lambda tf, i, f, **_: i + f,
    lambda tf, i, f, **_: f - i,
    lambda tf, i, f, **_: i * f,
    lambda tf, i, f, **_: i // f,
    lambda tf, i, f, **_: i < f,
    lambda tf, i, f, **_: i == f,
    lambda tf, f, d, **_: f + d,
    lambda tf, i, f, **_: tf.add(i, f),
    lambda tf, i, f, **_: tf.maximum(i, f),
    lambda tf, i, f, **_: tf.math.squared_difference(i, f),
    lambda tf, im, fm, **_: tf.matmul(im, fm),
    lambda tf, fm, dm, **_: fm @ dm,
    lambda tf, fm, dm, **_: tf.einsum("ij,jk->ik", fm, dm),
    lambda tf, fm, im, **_: tf.tensordot(fm, im, 1),
    lambda tf, fm, dm, **_: tf.linalg.solve(fm, dm),
    lambda tf, i, f, **_: tf.concat([i, f], 0),
    lambda tf, i, f, **_: tf.stack([i, f]),
    lambda tf, i, f, b, **_: tf.where(b, i, f),
    lambda tf, i, f, **_: tf.add_n([i, f]),
    lambda tf, f, i, **_: tf.clip_by_value(f, i, i),
    lambda tf, fm, i, **_: tf.nn.bias_add(fm, i),
    lambda tf, i, **_: tf.exp(i),
    lambda tf, b, **_: tf.math.log(b),
    lambda tf, b, **_: tf.reduce_mean(b),
    lambda tf, b, **_: b + b,
    lambda tf, b, **_: -b,
    lambda tf, f, **_: tf.reduce_any(f),
    lambda tf, f, **_: f & f,
    lambda tf, f, **_: ~f,
    lambda tf, i, **_: tf.logical_and(i, i),
    lambda tf, i, **_: tf.nn.softmax(i),
    lambda tf, f, **_: tf.gather(f, [0.0, 1.0]),
    lambda tf, f, **_: tf.one_hot(f, 3),
    lambda tf, f, **_: tf.bitwise.bitwise_and(f, f),
    lambda tf, im, **_: tf.linalg.inv(im),
    lambda tf, f, **_: tf.fill([2.0], 1.0),
    lambda tf, fm, **_: tf.reshape(fm, [4.0]),
    lambda tf, f, **_: tf.tile(f, [2.0]),
]


@manner
def wrong_dtypes_outside_of_functions(tf: Any) -> Any:
    x, kind = operands(tf), tf.errors.InvalidArgumentError
    return [refused(lambda c=call: c(tf, **x), kind) for call in WRONG_DTYPES]


@manner
def wrong_dtypes_in_simple_functions_are_type_errors(tf: Any) -> Any:
    x = operands(tf)
    calls = [WRONG_DTYPES[place] for place in (0, 1, 2, 4, 5, 6, 7, 8, 10, 11, 15, 16, 17, 18, 21)]
    return [refused(lambda c=call: tf.function(lambda: c(tf, **x))(), TypeError) for call in calls]


@manner
def numbers_of_python_with_other_dtypes(tf: Any) -> Any:
    i, f, s, kind = *(operands(tf)[n] for n in "ifs"), tf.errors.InvalidArgumentError
    return [
        refused(lambda: i + 1.5, kind),
        refused(lambda: 1.5 + i, TypeError),
        refused(lambda: i / f, TypeError),
        refused(lambda: operator.add(i, [1.5, 2.0]), kind),
        refused(lambda: s + f, kind),
        refused(lambda: f + s, kind),
        refused(lambda: tf.one_hot("a", 3), kind),
        refused(lambda: tf.sign(s), kind),
        f + np.array([1, 2]),
        f + np.array([1.0, 2.0]),
        f * 2,
        refused(lambda: [1, 2][f[0]], TypeError, AttributeError),
    ]


@manner
def variables_refuse_other_dtypes(tf: Any) -> Any:
    v, x = tf.Variable([1.0, 2.0]), operands(tf)
    return [
        refused(lambda: v.assign(x["i"]), ValueError),
        refused(lambda: v.assign_add(x["d"]), ValueError),
        refused(lambda: tf.convert_to_tensor(x["f"], tf.int32), ValueError),
        refused(lambda: tf.constant([1.5], tf.int32), TypeError),
        refused(lambda: tf.Variable(1.0, dtype=tf.int32), TypeError),
        v.assign(np.array([3.0, 4.0])),
    ]


@manner
def operands_that_do_not_fit(tf: Any) -> Any:
    ones, kind = tf.ones, tf.errors.InvalidArgumentError
    calls = [
        lambda: tf.broadcast_to(ones([2]), [3]),
        lambda: tf.where([True, False], ones([3]), ones([3])),
        lambda: tf.tile(ones([2]), [1, 2]),
        lambda: tf.transpose(ones([2, 3]), [0]),
        lambda: tf.split(ones([3]), 2),
        lambda: tf.squeeze(ones([2]), 0),
        lambda: tf.slice(ones([2]), [1], [3]),
        lambda: tf.slice(ones([2]), [-1], [1]),
        lambda: ones([2])[3],
        lambda: ones([2])[0, 0],
        lambda: ones([2])[::0],
        lambda: tf.expand_dims(ones([2]), 5),
        lambda: tf.reduce_sum(ones([2]), axis=3),
        lambda: tf.einsum("ij,jk->ik", ones([2, 3]), ones([2, 3])),
        lambda: tf.nn.sparse_softmax_cross_entropy_with_logits([5], ones([1, 3])),
        lambda: tf.nn.softmax_cross_entropy_with_logits(ones([1, 2]), ones([1, 3])),
        lambda: tf.linalg.inv(tf.zeros([2, 2])),
        lambda: tf.argmax(ones([2]), axis=4),
        lambda: tf.one_hot([1], 2, axis=4),
        lambda: tf.pad(ones([2]), [[1, 1], [1, 1]]),
        lambda: tf.unstack(ones([2]), num=3),
        lambda: tf.scatter_nd([[5]], [1.0], [3]),
        lambda: tf.gather_nd(ones([2]), [[5]]),
        lambda: tf.cumsum(ones([2]), axis=2),
        lambda: tf.fill([-1], 1.0),
        lambda: tf.range(0, 5, 0),
        lambda: tf.math.top_k(ones([2]), 3),
        lambda: tf.add_n([ones([2]), ones([3])]),
        lambda: tf.tensordot(ones([2, 3]), ones([2, 3]), 1),
        lambda: tf.strings.to_number("x"),
        lambda: tf.nn.bias_add(ones([2, 3]), ones([2])),
        lambda: tf.linalg.matvec(ones([2, 3]), ones([2])),
        lambda: tf.reverse(ones([2]), [3]),
        lambda: tf.roll(ones([2]), 1, 5),
        lambda: tf.argsort(ones([2]), axis=3),
    ]
    places = [n for n, call in enumerate(calls) if not refused(call, kind)]
    return [len(calls), places]


@manner
def shapes_that_do_not_fit_in_functions(tf: Any) -> Any:
    one, two = tf.ones([2, 3]), tf.ones([2])
    calls = [
        lambda: one @ one,
        lambda: tf.reshape(one, [4]),
        lambda: two + tf.ones([3]),
        lambda: tf.concat([one, tf.ones([1, 2])], 0),
    ]
    return [refused(tf.function(call), ValueError) for call in calls]


@manner
def elements_that_are_not_there(tf: Any) -> Any:
    x = tf.constant([1.0, 2.0])
    return [[float(n) for n in x], list(zip(x, [1, 2], strict=True)), tuple(x), 2.0 in x]


@manner
def errors_have_one_base_and_a_message(tf: Any) -> Any:
    names = ("AlreadyExistsError", "DataLossError", "FailedPreconditionError",
             "InvalidArgumentError", "NotFoundError", "OutOfRangeError")  # fmt: skip
    made = [getattr(tf.errors, name)(None, None, "words") for name in names]
    try:
        tf.constant([1, 2]) + tf.constant([1, 2, 3])
    except tf.errors.OpError as error:
        caught = [len(error.message) > 9, error.op is None, error.node_def is None]
    return [
        caught,
        *[[str(e), e.message, e.op is None, isinstance(e, tf.errors.OpError)] for e in made],
        refused(lambda: tf.io.read_file("nowhere/at/all"), tf.errors.OpError),
    ]


@manner
def cases_of_tests_compare_tensors(tf: Any) -> Any:
    class Case(tf.test.TestCase):
        def runTest(self) -> None:
            self.assertAllClose(
                {"a": tf.ones([2]), "b": (1.0, [2.0])}, {"a": [1, 1], "b": (1, [2])}
            )
            self.assertAllClose([tf.ones([2]), tf.ones([3])], [np.ones(2), np.ones(3)])
            self.assertAllClose(tf.complex(1.0, 2.0), 1 + 2j)
            self.assertAllEqual(tf.ragged.constant([[1], [2, 3]]), [[1], [2, 3]])
            self.assertAllEqual(tf.constant(["a"]), ["a"])
            self.assertAllCloseAccordingToType(tf.cast([1.0], tf.float16), [1.0005])
            with self.cached_session() as session:
                self.assertAllEqual(session.run([tf.constant(1)]), [1])
            with self.assertRaisesIncompatibleShapesError():
                tf.ones([2]) + tf.ones([3])

    case = Case()
    result = case.run()
    failing: list[Callable[[], Any]] = [
        lambda: case.assertAllClose([1.0], [1.1]),
        lambda: case.assertAllClose([1.0], [[1.0]]),
        lambda: case.assertAllEqual([1, 2], [1, 3]),
        lambda: case.assertNotAllClose([1.0], [1.0]),
        lambda: case.assertNotAllEqual([1.0], [1.0]),
        lambda: case.assertAllGreater([1.0, 2.0], 1.0),
        lambda: case.assertAllLessEqual([1.0, 2.0], 1.0),
        lambda: case.assertAllInRange([1.0, 2.0], 1.0, 2.0, open_upper_bound=True),
        lambda: case.assertAllInSet([1, 2], [1]),
        lambda: case.assertNear(1.0, 2.0, 0.5),
        lambda: case.assertDTypeEqual(tf.constant(1), np.float32),
        lambda: case.assertShapeEqual(np.ones(2), tf.ones([3])),
    ]
    return [result.testsRun, result.wasSuccessful(), [refused(f, AssertionError) for f in failing]]


@manner
def gradients_are_compared_with_differences(tf: Any) -> Any:
    x, y = [[1.0, 3.0]], [[2.0], [4.0]]
    by_tape, by_differences = tf.test.compute_gradient(tf.matmul, [x, y])
    constant = tf.test.compute_gradient(lambda z: tf.zeros([2]) + 0.0 * z[0], [[1.0, 2.0]])
    pairs = zip(by_tape, by_differences, strict=True)
    close = [bool(np.allclose(*pair, atol=1e-2)) for pair in pairs]
    return [list(by_tape), close, constant[0][0], refused(lambda: tf.test.compute_gradient(
        tf.square, 1.0), ValueError)]  # fmt: skip
