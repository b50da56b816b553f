"""Convolutions of one, two and three dimensions: strides, dilations, padding, groups."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
import windows
from replica_values import strategy
from windows import check_derivatives, convolved, explicit, numbers

import samegrad as tf
from samegrad import _core, nn

# Shape of the images, of the filter, strides, dilations, padding.
CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], Any]] = {
    "uneven": ((3, 7, 5, 3), (3, 2, 3, 4), (2, 3), (2, 1), "SAME"),
    "uneven, valid": ((3, 7, 5, 3), (3, 2, 3, 4), (2, 3), (2, 1), "VALID"),
    "strides of the dilation": ((2, 9, 8, 2), (3, 3, 2, 3), (2, 3), (4, 2), "SAME"),
    "given padding": ((2, 7, 5, 3), (3, 2, 3, 17), (1, 2), (2, 3), ((1, 2), (3, 4))),
    "windows wholly in the padding": ((2, 2, 3, 1), (2, 2, 1, 2), (1, 1), (1, 2), ((4, 3), (0, 5))),
    "one pixel": ((2, 1, 1, 3), (1, 1, 3, 2), (1, 1), (1, 1), "VALID"),
    "one pixel, larger filter": ((2, 1, 1, 3), (3, 5, 3, 2), (2, 1), (3, 2), "SAME"),
    "filter larger than the image": ((2, 3, 2, 1), (5, 4, 1, 3), (1, 1), (1, 2), "SAME"),
    "17 channels": ((2, 5, 4, 17), (2, 3, 17, 5), (1, 2), (1, 2), "SAME"),
    "groups": ((2, 5, 4, 6), (3, 2, 2, 9), (2, 1), (1, 2), "SAME"),
    "many results of groups": ((2, 4, 4, 3), (2, 2, 1, 120), (1, 1), (1, 1), "VALID"),
    "depthwise": ((2, 6, 5, 17), (3, 3, 1, 17), (1, 1), (1, 1), "SAME"),
    "depthwise, dilated, strided": ((2, 9, 8, 35), (3, 3, 1, 35), (2, 2), (2, 3), "SAME"),
    "depthwise, three each": ((2, 5, 4, 17), (2, 3, 1, 51), (1, 2), (2, 1), ((2, 0), (1, 3))),
    "signals": ((3, 9, 3), (4, 3, 5), (2,), (2,), "SAME"),
    "signals, groups": ((3, 9, 4), (3, 2, 6), (1,), (3,), ((2, 5),)),
    "one number of a signal": ((2, 1, 1), (1, 1, 1), (1,), (1,), "VALID"),
    "volumes": ((2, 4, 3, 5, 2), (2, 3, 2, 2, 3), (2, 1, 2), (1, 2, 1), "SAME"),
    "volumes, dilated in depth": ((2, 5, 3, 3, 2), (3, 2, 2, 2, 3), (2, 1, 1), (2, 1, 2), "SAME"),
    "volumes, planes in the padding": (
        (2, 2, 3, 2, 1), (2, 1, 2, 1, 2), (1, 1, 1), (1, 1, 1), ((3, 2), (0, 0), (1, 0)),
    ),
    "volumes, depthwise": ((2, 3, 4, 3, 5), (2, 2, 3, 1, 10), (1, 1, 1), (1, 2, 1), "SAME"),
    "volumes, groups": ((2, 3, 4, 3, 4), (2, 2, 3, 2, 6), (1, 2, 1), (2, 1, 1), "SAME"),
}  # fmt: skip
each_case = pytest.mark.parametrize("name", list(CASES))


def call(name: str, x: Any, f: Any) -> tf.Tensor:
    _, filters, strides, dilations, padding = CASES[name]
    given = padding if isinstance(padding, str) else explicit(padding)
    function = {1: nn.conv1d, 2: nn.conv2d, 3: nn.conv3d}[len(filters) - 2]
    return function(x, f, strides, given, dilations=dilations)


def pads_of(name: str) -> Any:
    shape, filters, strides, dilations, padding = CASES[name]
    if padding == "SAME":
        return windows.same_padding(shape[1:-1], filters[:-2], strides, dilations)
    return [(0, 0)] * len(strides) if padding == "VALID" else padding


@each_case
def test_it_is_the_sum_over_the_taps(name):
    shape, filters, strides, dilations, _ = CASES[name]
    x, f = numbers(*shape), numbers(*filters, seed=1)
    expected = convolved(x, f, strides, pads_of(name), dilations)
    np.testing.assert_allclose(call(name, x, f).numpy(), expected, rtol=1e-11, atol=1e-12)
    general = nn.convolution(x, f, strides, explicit(pads_of(name)), dilations=dilations)
    np.testing.assert_array_equal(general.numpy(), call(name, x, f).numpy())
    single = call(name, x.astype("float32"), f.astype("float32")).numpy()
    np.testing.assert_allclose(single, expected, rtol=1e-4, atol=1e-4)


@each_case
def test_derivatives_are_right_to_second_order(name):
    shape, filters = CASES[name][:2]
    check_derivatives(
        lambda x, f: call(name, x, f), [0.5 * numbers(*shape), 0.5 * numbers(*filters, seed=1)]
    )


def derivatives(name, x, f):
    """A loss, its gradients and those of the sum of their squares."""
    with tf.GradientTape() as outer:
        outer.watch(x)
        outer.watch(f)
        with tf.GradientTape() as inner:
            inner.watch(x)
            inner.watch(f)
            y = call(name, x, f)
            loss = tf.reduce_sum(y * y)
        first = inner.gradient(loss, [x, f])
        squares = tf.add_n([tf.reduce_sum(g * g) for g in first])
    return [y, *first, *outer.gradient(squares, [x, f])]


@each_case
def test_traced_and_eager_have_the_same_bits(name):
    shape, filters = CASES[name][:2]
    x, f = numbers(*shape, dtype="float32"), numbers(*filters, seed=1, dtype="float32")
    given = tf.constant(x), tf.constant(f)
    eager = derivatives(name, *given)
    traced = tf.function(lambda x, f: derivatives(name, x, f))(*given)
    for a, b in zip(eager, traced, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def trained(name, replicas, images):
    """Filters and losses after some steps with a penalty of the gradient."""
    _, filters, *_ = CASES[name]
    where = tf.distribute.MirroredStrategy(replicas=replicas)
    with where.scope():
        f = tf.Variable(numbers(*filters, seed=1, dtype="float32") / 4)
        b = tf.Variable(numbers(filters[-1], seed=2, dtype="float32"))

    def step(x):
        with tf.GradientTape() as tape:
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = nn.relu(call(name, x, f) + b)
                inside = tf.reduce_sum(y * y)
            slope = inner.gradient(inside, x)
            axes = list(range(1, len(filters)))
            each = tf.reduce_sum(y, axis=axes) + tf.reduce_sum(slope * slope, axis=axes)
            loss = nn.compute_average_loss(each)
        for v, g in zip((f, b), tape.gradient(loss, (f, b)), strict=True):
            g = tf.distribute.get_replica_context().all_reduce("SUM", g)
            v.assign_sub(1e-4 * g)
        return loss

    (batch,) = where.experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices(images).batch(len(images))
    )
    losses = [where.reduce("SUM", where.run(step, (batch,)), axis=None) for _ in range(3)]
    return [f.numpy(), b.numpy(), *(loss.numpy() for loss in losses)]


@pytest.mark.parametrize(
    "name",
    ["uneven", "given padding", "groups", "depthwise", "depthwise, three each", "signals",
     "volumes", "volumes, depthwise"],
)  # fmt: skip
def test_replicas_have_the_bits_of_one_device(name):
    images = numbers(13, *CASES[name][0][1:], dtype="float32")
    one = trained(name, 1, images)
    for replicas in (2, 3, 4):
        for a, b in zip(one, trained(name, replicas, images), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["uneven", "depthwise, three each", "volumes"])
def test_threads_change_no_bit(name):
    images = numbers(13, *CASES[name][0][1:], dtype="float32")
    tf.config.threading.set_intra_op_parallelism_threads(1)
    try:
        one = trained(name, 2, images)
        tf.config.threading.set_intra_op_parallelism_threads(4)
        four = trained(name, 2, images)
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(0)
    for a, b in zip(one, four, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["uneven", "groups", "depthwise", "signals", "volumes"])
def test_an_image_is_convolved_as_among_a_thousand(name):
    shape, filters = CASES[name][:2]
    x = numbers(1000, *shape[1:], dtype="float32")
    f = numbers(*filters, seed=1, dtype="float32")
    together = call(name, x, f).numpy()
    for i in (0, 1, 499, 999):
        np.testing.assert_array_equal(call(name, x[i : i + 1], f).numpy(), together[i : i + 1])
    assert call(name, x[:0], f).shape[0] == 0


def test_no_images_have_a_gradient_of_zeros():
    x, f = (
        tf.constant(np.zeros((0, 5, 4, 3), "float32")),
        tf.constant(np.ones((2, 2, 1, 3), "float32")),
    )
    with tf.GradientTape() as tape:
        tape.watch(f)
        loss = tf.reduce_sum(nn.conv2d(x, f, 1, "SAME", dilations=2))
    np.testing.assert_array_equal(tape.gradient(loss, f).numpy(), np.zeros((2, 2, 1, 3)))


def test_nan_stays_where_its_windows_are():
    x = np.zeros((1, 7, 1, 2), "float32")
    x[0, 3, 0, 0] = np.nan
    f = np.ones((2, 1, 1, 2), "float32")
    y = nn.conv2d(x, f, 1, "VALID", dilations=(2, 1)).numpy()[0, :, 0]
    np.testing.assert_array_equal(np.isnan(y[:, 0]), [False, True, False, True, False])
    assert not np.isnan(y[:, 1]).any()


def test_a_dilated_convolution_is_one_with_holes_in_the_filter():
    x, f = numbers(2, 9, 8, 3), numbers(3, 2, 3, 4, seed=1)
    holes = np.zeros((7, 3, 3, 4))
    holes[::3, ::2] = f
    expected = nn.conv2d(x, holes, 1, "SAME").numpy()
    np.testing.assert_allclose(nn.conv2d(x, f, 1, "SAME", dilations=(3, 2)).numpy(), expected)
    square = nn.atrous_conv2d(x, f, 2, "VALID").numpy()
    np.testing.assert_array_equal(square, nn.conv2d(x, f, 1, "VALID", dilations=2).numpy())


def test_groups_are_convolutions_of_their_own():
    x, f = numbers(3, 6, 5, 6, dtype="float32"), numbers(3, 3, 2, 12, seed=1, dtype="float32")
    parts = [
        nn.conv2d(x[..., 2 * g : 2 * g + 2], f[..., 4 * g : 4 * g + 4], 2, "SAME").numpy()
        for g in range(3)
    ]
    np.testing.assert_array_equal(nn.conv2d(x, f, 2, "SAME").numpy(), np.concatenate(parts, -1))


@pytest.mark.parametrize("each", [1, 2, 3])
def test_depthwise_convolution_has_filters_for_each_channel(each):
    x, f = numbers(2, 6, 5, 5), numbers(3, 2, 5, each, seed=1)
    y = nn.depthwise_conv2d(x, f, [1, 2, 2, 1], "SAME").numpy()
    for c in range(5):
        alone = nn.conv2d(x[..., c : c + 1], f[:, :, c : c + 1], 2, "SAME").numpy()
        np.testing.assert_allclose(y[..., c * each : (c + 1) * each], alone, rtol=1e-12)
    check_derivatives(lambda x, f: nn.depthwise_conv2d(x, f, 1, "SAME", dilations=2), [x, f])


def test_separable_convolution_mixes_what_depthwise_gives():
    x, f, p = numbers(2, 6, 5, 3), numbers(3, 2, 3, 2, seed=1), numbers(1, 1, 6, 4, seed=2)
    y = nn.separable_conv2d(x, f, p, 2, "VALID").numpy()
    each = nn.depthwise_conv2d(x, f, 2, "VALID").numpy()
    np.testing.assert_allclose(y, each @ p[0, 0], rtol=1e-12)
    check_derivatives(lambda x, f, p: nn.separable_conv2d(x, f, p, 1, "SAME"), [x, f, p])


# Of y, the gradients and the second gradients, as they were before convolutions became general.
GOLDEN = {
    ((5, 7, 5, 3), (3, 2, 3, 17), (2, 3), "SAME"): (
        "9f1fa21a6347d4b2 c4fce1467890450e bbe2373dab9b7c6d be2ac21ba5c69cec 40df411777777397",
        "4e5b409d6d874f7b e38e5fcb3468e102 53daa5cd433e35b9 b30660b8bebf80e5 97f1b75c99ae1987",
    ),
    ((3, 9, 8, 17), (3, 3, 17, 33), (1, 1), "VALID"): (
        "2c39794c4426c7ad 1739a11589ecceed 035d991e8a38b906 3202007b835da336 f4282ce3bdc29496",
        "1cf602dacb75ca35 1f40440acd1a6f5f 7f995523644a6d34 f30d0b37a719f01c 5d581fe1f297e10f",
    ),
    ((6, 6, 6, 1), (5, 5, 1, 4), (1, 2), ((2, 1), (0, 3))): (
        "e1ac67ab28154a8a ef7cc6c7921ffa9a dee783bbe60cae99 93de613bbe44414f 506576d617bba6b6",
        "41a34d5ecec1f5cb e14d353f21432f80 91d5ce09a2e175a9 3057467a7768ffdd 972960c13dbb14a7",
    ),
}


@pytest.mark.parametrize("case", list(GOLDEN), ids=str)
def test_plain_convolutions_have_the_bits_that_they_always_had(case):
    def numbered(shape, k):
        i = np.arange(np.prod(shape), dtype=np.int64)
        return tf.constant(
            (((i * 7919 + k * 104729) % 2003 - 1001) / 997).astype("float32").reshape(shape)
        )

    shape, filters, strides, padding = case
    CASES["golden"] = (shape, filters, strides, (1, 1), padding)
    try:
        found = derivatives("golden", numbered(shape, 1), numbered(filters, 2))
    finally:
        del CASES["golden"]
    hashes = [hashlib.sha256(v.numpy().tobytes()).hexdigest()[:16] for v in found]
    fused = _core.isa_fused()[_core.isa()]
    assert hashes == GOLDEN[case][0 if fused else 1].split()


def test_torch_agrees():
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    for shape, filters, strides, dilations, groups in [
        ((2, 9, 8, 6), (3, 2, 3, 8), (2, 1), (1, 3), 2),
        ((2, 9, 8, 6), (3, 3, 1, 12), (1, 2), (2, 2), 6),
        ((2, 5, 6, 4, 4), (2, 3, 2, 2, 6), (1, 2, 1), (2, 1, 1), 2),
    ]:
        x, f = numbers(*shape), numbers(*filters, seed=1)
        n = len(strides)
        last = torch.tensor(np.moveaxis(x, -1, 1).copy())
        weights = torch.tensor(np.moveaxis(f, [-1, -2], [0, 1]).copy())
        theirs = {2: functional.conv2d, 3: functional.conv3d}[n](
            last, weights, stride=strides, padding=(1,) * n, dilation=dilations, groups=groups
        )
        ours = nn.convolution(x, f, strides, explicit([(1, 1)] * n), dilations=dilations)
        np.testing.assert_allclose(ours.numpy(), np.moveaxis(theirs.numpy(), 1, -1), rtol=1e-10)


X = np.zeros((2, 5, 4, 6), "float32")
F = np.zeros((3, 2, 6, 4), "float32")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nn.conv2d(X, F[:, :, :4], 1, "SAME"), r"divide them into groups: got 4 and 6"),
        (lambda: nn.conv2d(X, F[:, :, :2], 1, "SAME"), "got 4 results for 3 groups of 2"),
        (lambda: nn.conv2d(X, F[:, :, :0], 1, "SAME"), "got 0 and 6"),
        (lambda: nn.conv2d(X, F, 1, "VALID", dilations=3), r"window \(7, 4\) and image \(5, 4\)"),
        (lambda: nn.conv2d(X, F, 1, "SAME", dilations=(1, 2, 3)), "dilations must be one or two"),
        (lambda: nn.conv2d(X, F, 1, [[0, 0], [1, 1], [0, 0]]), "explicit padding must be"),
        (lambda: nn.conv2d(X, F, 1, [[1, 0], [1, 1], [1, 1], [0, 0]]), "explicit padding must be"),
        (lambda: nn.conv2d(X, F, 1, [[0, 0], [-1, 1], [1, 1], [0, 0]]), "padding must be 4 ints"),
        (lambda: nn.conv2d(X, F, 2**40, "VALID"), "strides must be 2 ints .* at most 2147483647"),
        (lambda: nn.conv1d(X, F, 1, "SAME"), r"signals must be \[n, columns, channels\]"),
        (lambda: nn.conv1d(X[0], F, 1, "SAME"), r"filters must be \[columns, channels, results\]"),
        (lambda: nn.conv1d(X[0], F[0], (1, 2), "SAME"), "strides must be a positive integer"),
        (lambda: nn.conv1d(X[0], F[0], 1, "SAME", "NCW"), r"transpose\(signals, \[0, 2, 1\]\)"),
        (lambda: nn.conv3d(X, F, 1, "SAME"), r"volumes must be \[n, depth, rows, columns"),
        (lambda: nn.conv3d(X[None], F, 1, "SAME"), r"filters must be \[depth, rows, columns"),
        (lambda: nn.conv3d(X[None], F[None], (1, 2), "SAME"), "one or three positive integers"),
        (lambda: nn.conv3d(X[None], F[None], 1, "SAME", "NCDHW"), r"\[0, 2, 3, 4, 1\]"),
        (lambda: nn.convolution(X[0, 0], F), r"\[convolution\] the input must be \[n, columns"),
        (lambda: nn.depthwise_conv2d(X, F[:, :, :3], 1, "SAME"), "channels of the images: got 3"),
        (lambda: nn.separable_conv2d(X, F, F, 1, "SAME"), r"must be \[1, 1, 24, results\]"),
        (lambda: nn.atrous_conv2d(X, F, 0, "SAME"), r"\[atrous_conv2d\] dilations must be"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_other_types_are_refused():
    with pytest.raises(TypeError, match="must be float32, float64, float16 or bfloat16"):
        nn.conv2d(X.astype("int32"), F.astype("int32"), 1, "SAME")


def test_a_strategy_sees_images_on_other_axes_refused():
    with pytest.raises(ValueError, match="must lie on axis 0"):
        strategy(2).run(
            lambda x: nn.conv2d(tf.transpose(x, [1, 0, 2, 3]), F, 1, "SAME"),
            (tf.constant(X)._as_examples(0, 1),),
        )


def test_a_filter_of_images_without_channels_is_refused() -> None:
    images, filters = tf.zeros([1, 4, 4, 0]), tf.zeros([2, 2, 3, 4])
    with pytest.raises(ValueError, match="the filter's channels must be the image's"):
        _core.ops.conv2d(images, filters)
