"""How `tf.experimental.numpy` answers."""

from __future__ import annotations

from typing import Any

import numpy as np
from manner_programs import manner


@manner
def arrays_of_numpy_functions_have_its_dtypes(tf: Any) -> Any:
    tnp = tf.experimental.numpy
    single, integers = tf.constant([1.0, 2.0]), tf.constant([1, 2])
    return [
        tnp.array([1, 2]),
        tnp.array([1.5]),
        tnp.asarray([[1, 2]], dtype=tnp.float32),
        tnp.array(3, ndmin=2),
        tnp.ones([2]),
        tnp.zeros((1, 2), dtype=int),
        tnp.full([2], 3),
        tnp.eye(2),
        tnp.arange(1, 7, 2),
        tnp.linspace(0, 1, 3),
        tnp.add(1, 2.5),
        tnp.add(integers, single),
        tnp.multiply(single, 2),
        tnp.add(single, 2.5),
        tnp.power(2, 3),
        tnp.true_divide([1], [2]),
        tnp.maximum([1, 5], [2.0, 3.0]),
        tnp.logical_and([True, False], True),
        tnp.exp(single),
        tnp.equal(integers, [1, 3]),
        tnp.result_type(np.int32, np.float32).name,
        tnp.pi,
        tnp.newaxis,
    ]


@manner
def reductions_of_numpy_functions(tf: Any) -> Any:
    tnp, x = tf.experimental.numpy, np.array([[1, 4, 2], [8, 3, 0]], "int32")
    return [
        tnp.sum(x),
        tnp.sum(tf.constant(x), axis=1, keepdims=True),
        tnp.mean(x, 0),
        tnp.prod([1, 2, 3]),
        tnp.std([1.0, 2.0]),
        tnp.var([1.0, 2.0, 5.0]),
        tnp.max(x, axis=0),
        tnp.amin(x),
        tnp.any([False, True]),
        tnp.all([[True, False]], axis=1),
        tnp.argmax(x, axis=1),
        tnp.cumsum([1, 2, 3]),
        tnp.cumsum(x, axis=0, dtype="int64"),
        tnp.average([1.0, 3.0], weights=[3, 1]),
        tnp.count_nonzero([0, 1, 2]),
    ]


@manner
def shapes_of_numpy_functions(tf: Any) -> Any:
    tnp, x = tf.experimental.numpy, np.arange(6.0).reshape(2, 3)
    return [
        tnp.reshape(x, [3, 2]),
        tnp.ravel(x),
        tnp.transpose(x),
        tnp.expand_dims([1], 0),
        tnp.squeeze([[1], [2]]),
        tnp.concatenate([[1], [2.5]]),
        tnp.stack([[1, 2], [3, 4]], axis=1),
        tnp.vstack([[1, 2], [3, 4]]),
        tnp.hstack([[1], [2]]),
        list(tnp.split(np.arange(4), 2)),
        tnp.broadcast_to([1, 2], [2, 2]),
        tnp.tile([1, 2], 2),
        tnp.repeat([1, 2], 2),
        tnp.flip(x, 1),
        tnp.roll([1, 2, 3], 1),
        tnp.swapaxes(x, 0, 1),
        tnp.where([True, False], [1, 2], [0.5, 0.5]),
        tnp.take([5, 6, 7], [2, 0]),
        tnp.pad([1], [[1, 2]], "constant", constant_values=7),
        tnp.sort([3, 1, 2]),
        tnp.argsort([3, 1, 2]),
        list(tnp.nonzero([0, 1, 2])),
        tnp.clip([1, 5, 9], 2, 6),
        tnp.diag([1, 2]),
        tnp.tril(np.ones([2, 2])),
        tnp.shape(x) == (2, 3),
        tnp.isnan([1.0, float("nan")]),
        tnp.allclose([1.0], [1.0 + 1e-9]),
        tnp.array_equal([1, 2], [1, 2]),
    ]


@manner
def products_of_numpy_functions(tf: Any) -> Any:
    tnp, x = tf.experimental.numpy, np.arange(6.0).reshape(2, 3)
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        loss = tnp.sum(tnp.matmul(v, tnp.transpose(v)) * tnp.sin(v))
    return [
        tnp.dot([1, 2], [3, 4]),
        tnp.matmul(x, x.T),
        tnp.tensordot(x, x, 2),
        tnp.inner([1, 2], [3, 4]),
        tnp.outer([1, 2], [3, 4]),
        tnp.einsum("ij,kj->ik", x, x),
        tnp.trace(x[:, :2]),
        tape.gradient(loss, v),
    ]


@manner
def samples_of_numpy_functions(tf: Any) -> Any:
    random = tf.experimental.numpy.random
    random.seed(3)
    first = random.randn(4)
    random.seed(3)
    again = random.randn(4)
    drawn = random.randint(5, 9, size=[50])
    return [
        bool(np.all(np.asarray(first) == np.asarray(again))),
        str(first.dtype.name),
        [random.rand(2, 3).shape.as_list(), random.uniform(0, 1, [2]).shape.as_list()],
        [str(drawn.dtype.name), int(np.min(drawn)) >= 5, int(np.max(drawn)) < 9],
    ]
