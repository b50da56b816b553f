"""keras.backend.numpy against NumPy, traced and under tapes."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import samegrad as tf
import samegrad._keras.register as register

register.load()

from samegrad._keras import numpy as knp  # noqa: E402

_RNG = np.random.default_rng(7)
_POSITIVE = ("log", "log10", "log1p", "log2", "sqrt", "cbrt", "reciprocal", "arccosh")
_UNIT = ("arcsin", "arccos", "arctanh")
_SMOOTH = (
    "exp", "exp2", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arctan", "arcsinh",
    "sinc", "deg2rad", "rad2deg", "square", "abs", "fabs", "negative", "i0", *_POSITIVE, *_UNIT,
)  # fmt: skip
_STEPS = ("ceil", "floor", "trunc", "round", "sign", "signbit", "isnan", "isinf", "isfinite",
          "isposinf", "isneginf", "isreal", "angle", "logical_not", "nan_to_num")  # fmt: skip


def _values(name: str, shape: tuple[int, ...], dtype: str = "float64") -> np.ndarray[Any, Any]:
    if name in _POSITIVE:
        return (_RNG.random(shape) + 1.1).astype(dtype)
    if name in _UNIT:
        return (_RNG.random(shape) * 1.8 - 0.9).astype(dtype)
    return (_RNG.normal(size=shape) * 2).astype(dtype)


def _close(got: Any, wanted: Any, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=tolerance, atol=tolerance)
    assert np.shape(got) == np.shape(wanted)


@pytest.mark.parametrize("name", [*_SMOOTH, *_STEPS])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_elements_are_those_of_numpy(name: str, dtype: str) -> None:
    for shape in [(), (1,), (3, 0), (2, 3, 5)]:
        x = _values(name, shape, dtype)
        wanted = getattr(np, name)(x)
        got = getattr(knp, name)(x)
        _close(got, wanted, 1e-5 if dtype == "float32" else 1e-9)
        if name not in ("signbit",):
            assert got.dtype.is_bool or got.dtype == dtype


def test_functions_take_what_those_of_keras_ops_do() -> None:
    from keras.src.ops import numpy as ops

    for name in knp.__all__:
        own, wanted = (inspect.signature(getattr(module, name)) for module in (knp, ops))
        assert [(p.name, p.default, p.kind) for p in own.parameters.values()] == [
            (p.name, p.default, p.kind) for p in wanted.parameters.values()
        ]


def test_a_python_number_takes_the_type_of_the_tensor() -> None:
    x = np.array([1, 2, 3], "int8")
    for name in ("add", "subtract", "multiply", "mod", "floor_divide", "bitwise_and", "left_shift"):
        assert getattr(knp, name)(x, 2).dtype == "int8"
    assert knp.add(x, 2.0).dtype == "float32"
    assert knp.add(np.float64(2.0), x).dtype == "float64"
    assert knp.less(x, 300).numpy().all()


def test_special_values_are_those_of_numpy() -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -2.5])
    for name in ("signbit", "isnan", "isinf", "isfinite", "isposinf", "isneginf", "trunc"):
        if name == "signbit":
            assert knp.signbit(x[:4]).numpy().tolist() == np.signbit(x[:4]).tolist()
            continue
        _close(getattr(knp, name)(x), getattr(np, name)(x))
    _close(knp.nan_to_num(x, 1.0, 2.0, 3.0), np.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0))
    _close(knp.fmax(x, 1.0), np.fmax(x, 1.0))
    _close(knp.fmin(x, 1.0), np.fmin(x, 1.0))


def test_i0_is_exact_on_both_sides_of_its_border() -> None:
    x = np.concatenate([np.linspace(-700, 700, 501), [0.0, 19.9999, 20.0, 20.0001, 1e-3]])
    _close(knp.i0(x) / np.i0(x), np.ones_like(x))


_BINARY = (
    "add", "subtract", "multiply", "divide", "floor_divide", "mod", "fmod", "power", "maximum",
    "minimum", "fmax", "fmin", "arctan2", "hypot", "heaviside", "logaddexp", "logaddexp2", "equal",
    "not_equal", "greater", "greater_equal", "less", "less_equal", "logical_and", "logical_or",
    "logical_xor", "isclose",
)  # fmt: skip


@pytest.mark.parametrize("name", _BINARY)
def test_functions_of_two_operands_broadcast_as_those_of_numpy(name: str) -> None:
    for left, right in [((), (3,)), ((2, 1, 3), (5, 1)), ((4, 3), (1, 3)), ((0, 3), (3,))]:
        x, y = np.abs(_values("", left)) + 0.1, _values("", right)
        _close(getattr(knp, name)(x, y), getattr(np, name)(x, y), 1e-9)
    whole = np.array([7, -7, 3, 0]), np.array([2, 2, -2, 5])
    if name not in ("power", "logaddexp", "logaddexp2", "heaviside", "hypot", "arctan2"):
        _close(getattr(knp, name)(*whole), getattr(np, name)(*whole), 1e-6)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"])
def test_bits_are_those_of_numpy(dtype: str) -> None:
    limits = np.iinfo(dtype)
    x, y = (_RNG.integers(limits.min, limits.max, 20, dtype, endpoint=True) for _ in range(2))
    x[:2], y[:2] = (limits.min, limits.max), (limits.max, limits.min)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        assert (getattr(knp, name)(x, y).numpy() == getattr(np, name)(x, y)).all()
    assert (knp.bitwise_invert(x).numpy() == np.invert(x)).all()
    for places in (0, 1, 3, limits.bits - 1):
        by = np.full_like(x, places)
        assert (knp.left_shift(x, by).numpy() == x << by).all()
        assert (knp.right_shift(x, by).numpy() == x >> by).all()


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()])
@pytest.mark.parametrize(
    "name", ["sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "ptp", "nansum",
             "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin"]
)  # fmt: skip
def test_reductions_are_those_of_numpy(name: str, axis: Any) -> None:
    if name == "nanmean" and axis == ():
        return  # Keras's gives the input
    x = _values("", (1, 3, 4))
    if name.startswith("nan"):
        x[0, :, 1] = np.nan
        x[0, 2, 2] = np.nan
    for keepdims in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = getattr(np, name)(x, axis=axis, keepdims=keepdims)
        _close(getattr(knp, name)(x, axis=axis, keepdims=keepdims), wanted)


def test_an_extreme_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        knp.max(np.zeros((0, 3)))
    assert knp.max(np.zeros((0,)), initial=2.0).numpy() == 2.0


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2)])
@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles_are_those_of_numpy(axis: Any, method: str) -> None:
    x = _values("", (3, 4, 5))
    holes = np.where(_RNG.random(x.shape) < 0.2, np.nan, x)
    for q in (0.3, [0.1, 0.9, 1.0]):
        for keepdims in (False, True):
            options: dict[str, Any] = {"axis": axis, "method": method, "keepdims": keepdims}
            _close(knp.quantile(x, q, **options), np.quantile(x, q, **options))
            _close(knp.quantile(holes, q, **options), np.quantile(holes, q, **options))
            _close(knp.nanquantile(holes, q, **options), np.nanquantile(holes, q, **options))


def test_means_with_weights_are_those_of_numpy() -> None:
    x, weights = _values("", (3, 4)), _RNG.random((3, 4))
    _close(knp.average(x, 0, weights), np.average(x, 0, weights))
    _close(knp.average(x, 1, weights[0]), np.average(x, 1, weights[0]))
    _close(knp.average(x, weights=weights), np.average(x, weights=weights))
    _close(knp.corrcoef(x), np.corrcoef(x))


def test_products_are_those_of_numpy() -> None:
    shapes = [((3,), (3,)), ((2, 3), (3,)), ((3,), (4, 3, 2)), ((5, 2, 3), (3, 4)),
              ((5, 2, 3), (5, 3, 4)), ((2, 3), (5, 3, 4)), ((2, 1, 2, 3), (5, 3, 4))]  # fmt: skip
    for left, right in shapes:
        x, y = _values("", left), _values("", right)
        _close(knp.matmul(x, y), np.matmul(x, y))
        _close(knp.dot(x, y), np.dot(x, y))
    x, y = _values("", (3, 4)), _values("", (3, 4))
    for name in ("kron", "outer", "inner", "vdot"):
        _close(getattr(knp, name)(x, y), getattr(np, name)(x, y))
    _close(knp.kron(x, y[0]), np.kron(x, y[0]))
    for dtype in ("bool", "uint8", "int16", "uint32"):
        a, b = _RNG.integers(0, 2, (2, 3)).astype(dtype), _RNG.integers(0, 2, (3, 2)).astype(dtype)
        assert (knp.matmul(a, b).numpy() == np.matmul(a, b)).all()
    for left, right in [((4, 3), (4, 3)), ((4, 3), (1, 3)), ((5, 1, 3), (4, 3))]:
        x, y = _values("", left), _values("", right)
        _close(knp.cross(x, y), np.cross(x, y))
    assert knp.matmul(np.ones((2, 2), "int8"), np.ones((2, 2), "int8")).dtype == "int32"


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("sizes", [(5, 3), (3, 5), (6, 4), (4, 6), (5, 5), (4, 1)])
def test_correlations_are_those_of_numpy(mode: str, sizes: tuple[int, int]) -> None:
    x, y = (_values("", (n,)) for n in sizes)
    _close(knp.correlate(x, y, mode), np.correlate(x, y, mode))


def test_axes_and_orders_are_those_of_numpy() -> None:
    x = _values("", (3, 4, 2))
    for k in range(-5, 6):
        for axes in [(0, 1), (1, 0), (2, 0), (-1, 1)]:
            _close(knp.rot90(x, k, axes), np.rot90(x, k, axes))
    for mode in ("reflect", "symmetric", "constant"):
        for width in (1, ((1, 2), (0, 3), (1, 0)), ((1, 1),), (1, 0)):
            _close(knp.pad(x, width, mode), np.pad(x, width, mode))
    _close(knp.moveaxis(x, (0, 1), (-1, 0)), np.moveaxis(x, (0, 1), (-1, 0)))
    _close(knp.roll(x, (1, -2), (0, 1)), np.roll(x, (1, -2), (0, 1)))
    _close(knp.roll(x, 5), np.roll(x, 5))
    _close(knp.repeat(x, [1, 0, 2], 0), np.repeat(x, [1, 0, 2], 0))
    _close(knp.tile(x, (2, 1, 1, 3)), np.tile(x, (2, 1, 1, 3)))
    _close(knp.tile(x, 2), np.tile(x, 2))
    _close(knp.diff(x, 2, 1), np.diff(x, 2, 1))
    _close(knp.trapezoid(x, axis=1), (x[:, 1:] + x[:, :-1]).sum(1) / 2)
    _close(knp.diagonal(x, -1, 1, 0), np.diagonal(x, -1, 1, 0))
    _close(knp.trace(x, 1), np.trace(x, 1))
    _close(knp.take(x, [[-1, 0]], 1), np.take(x, [[-1, 0]], 1))
    indices = _RNG.integers(-4, 4, (1, 6, 2))
    _close(knp.take_along_axis(x, indices, 1),
           np.take_along_axis(x, np.broadcast_to(indices, (3, 6, 2)), 1))  # fmt: skip
    for part, wanted in zip(knp.split(x, [1, 3], 1), np.split(x, [1, 3], 1), strict=True):
        _close(part, wanted)
    for part, wanted in zip(knp.array_split(x, 3, 1), np.array_split(x, 3, 1), strict=True):
        _close(part, wanted)
    for name in ("argmax", "argmin", "argsort", "sort", "cumsum", "cumprod"):
        for axis in (None, 0, -1):
            _close(getattr(knp, name)(x, axis=axis), getattr(np, name)(x, axis=axis))


def test_numbers_from_shapes_are_those_of_numpy() -> None:
    for k in (-4, -1, 0, 2, 5):
        _close(knp.eye(3, 4, k), np.eye(3, 4, k))
        _close(knp.tri(3, 4, k), np.tri(3, 4, k))
        x = _values("", (2, 3, 4))
        _close(knp.tril(x, k), np.tril(x, k))
        _close(knp.triu(x, k), np.triu(x, k))
    ends = np.zeros((2, 3)), np.arange(6.0).reshape(2, 3)
    for axis in (0, 1, -1):
        _close(knp.linspace(*ends, 4, axis=axis), np.linspace(*ends, 4, axis=axis))
    _close(knp.linspace(0, 10, 5, False), np.linspace(0, 10, 5, False))
    _close(knp.geomspace(1.0, 1000.0, 4, dtype="float64"), np.geomspace(1.0, 1000.0, 4))
    _close(knp.vander([1.0, 2.0, 3.0], 4, True), np.vander([1.0, 2.0, 3.0], 4, True))
    for name in ("bartlett", "blackman", "hamming", "hanning"):
        _close(getattr(knp, name)(7), getattr(np, name)(7), 1e-6)


def test_values_that_decide_a_size_are_counted_as_by_numpy() -> None:
    x = np.array([[3, 1, 1], [0, 3, 3], [3, 1, 1]])
    for got, wanted in zip(knp.nonzero(x), np.nonzero(x), strict=True):
        _close(got, wanted)
    options = {"return_index": True, "return_inverse": True, "return_counts": True}
    for axis in (None, 0, 1):
        found, wanted = knp.unique(x, axis=axis, **options), np.unique(x, axis=axis, **options)
        for got, part in zip(found, wanted, strict=True):
            _close(got, np.reshape(part, got.shape))
    _close(knp.unique(x, sorted=False), [3, 1, 0])
    _close(knp.bincount(x[1], minlength=6), np.bincount(x[1], minlength=6))
    counts, edges = knp.histogram(x.astype("float64"), 4)
    for got, wanted in zip((counts, edges), np.histogram(x, 4), strict=True):
        _close(got, wanted)
    _close(knp.digitize([0.2, 6.4, 3.0], [0.0, 1.0, 3.0]), [1, 3, 3])
    assert (knp.gcd(x, 6).numpy() == np.gcd(x, 6)).all()
    assert (knp.lcm(x, 4).numpy() == np.lcm(x, 4)).all()
    assert (knp.view(np.arange(4.0), "int32").numpy() == np.arange(4.0).view("int32")).all()
    _close(knp.vectorize(lambda a, b: a * b, signature="(n),(n)->(n)")(x, x[0]), x * x[0])


def _batches(rows: int) -> Any:
    data = np.random.default_rng(3).normal(size=(rows, 4)).astype("float32")
    return data, tf.data.Dataset.from_tensor_slices(data).batch(4)


_TRACED: dict[str, Callable[[Any], Any]] = {
    "sum of rows": lambda x: knp.sum(x, axis=1),
    "mean": lambda x: knp.mean(x, axis=(0, 1)),
    "variance": lambda x: knp.var(x, axis=-1, keepdims=True),
    "largest": lambda x: knp.max(x, 1),
    "places": lambda x: knp.argmax(x, -1),
    "sorted": lambda x: knp.sort(x, -1),
    "median": lambda x: knp.median(x, 1),
    "quantiles": lambda x: knp.quantile(x, [0.1, 0.7], axis=-1, keepdims=True)[0],
    "without NaN": lambda x: knp.nanquantile(x, 0.3, axis=-1),
    "another shape": lambda x: knp.reshape(x, (-1, 2, 2)),
    "axes": lambda x: knp.swapaxes(knp.expand_dims(x, (0, -1)), 0, 1),
    "mirrored": lambda x: knp.pad(x, ((0, 0), (2, 1)), "reflect"),
    "longer rows": lambda x: knp.pad(x, ((0, 0), (2, 1))),
    "joined": lambda x: knp.concatenate([x, knp.ones_like(x)], -1),
    "stacked": lambda x: knp.stack([x, x], 1),
    "parts": lambda x: knp.split(x, [1, 3], -1)[1],
    "equal parts": lambda x: knp.split(x, 2, 1)[0],
    "chosen": lambda x: knp.where(x > 0, x, 0.0),
    "full": lambda x: knp.full((x.shape[0], 3), 2.0),
    "like": lambda x: knp.full_like(x, 3),
    "numbers": lambda x: knp.arange(x.shape[0]),
    "numbers as floats": lambda x: knp.arange(0, x.shape[0], dtype="float32"),
    "spread": lambda x: knp.broadcast_to(knp.ones((4,)), (x.shape[0], 4)),
    "taken": lambda x: knp.take(x, [-1, 0], 1),
    "taken along": lambda x: knp.take_along_axis(x, knp.argsort(x, -1), -1),
    "taken by one row": lambda x: knp.take_along_axis(x, np.array([[1, -1]]), 1),
    "product": lambda x: knp.matmul(x, knp.ones((4, 2))),
    "sums of products": lambda x: knp.einsum("bi,bj->bij", x, x),
    "dot": lambda x: knp.dot(x, np.ones((4,), "float32")),
    "lower": lambda x: knp.tril(knp.reshape(x, (-1, 2, 2)), -1),
    "bits": lambda x: knp.bitwise_xor(knp.cumsum(knp.argsort(x, 1), 1), 3),
    "common divisors": lambda x: knp.gcd(knp.argsort(x, 1), 4),
    "turned": lambda x: knp.rot90(knp.reshape(x, (-1, 2, 2)), 1, (1, 2)),
    "rolled": lambda x: knp.roll(x, 1, -1),
    "repeated": lambda x: knp.repeat(x, 2, 0),
    "tiled": lambda x: knp.tile(x, (1, 2)),
    "turned over": lambda x: knp.flip(x, -1),
    "differences": lambda x: knp.diff(x, axis=-1),
    "cumulated": lambda x: knp.cumsum(x, -1),
    "weighted": lambda x: knp.average(x, -1, [0.1, 0.2, 0.3, 0.4]),
    "digits": lambda x: knp.digitize(x, [-1.0, 0.0, 1.0]),
    "histogram": lambda x: knp.histogram(x, 3, (-1.0, 1.0))[0],
    "crossed": lambda x: knp.cross(x[:, :3], x[:, 1:]),
    "how many": lambda x: knp.size(x),
    "one of": lambda x: knp.isin(knp.argmax(x, -1), [0, 2]),
    "squeezed": lambda x: knp.squeeze(x[:, :1], -1),
    "diagonals": lambda x: knp.diagonal(knp.reshape(x, (-1, 2, 2)), 0, 1, 2),
}


@pytest.mark.parametrize("name", list(_TRACED))
def test_traced_functions_give_what_eager_ones_do(name: str) -> None:
    function, traces = _TRACED[name], []

    @tf.function
    def traced(x: Any) -> Any:
        traces.append(1)
        return function(x)

    data, batches = _batches(11)
    for i, batch in enumerate(batches):
        wanted = function(tf.constant(data[4 * i : 4 * i + 4]))
        _close(traced(batch), np.asarray(wanted), 1e-5)
    assert len(traces) == 1


@pytest.mark.parametrize("name", ["nonzero", "unique", "bincount"])
def test_size_that_follows_from_values_is_refused_on_several_replicas(name: str) -> None:
    function, x = getattr(knp, name), tf.constant([1, 2])
    for found, wanted in zip(tf.function(function)(x), function(x), strict=True):
        np.testing.assert_array_equal(found, wanted)  # falls back to Python
    two = tf.distribute.MirroredStrategy(replicas=2)
    with pytest.raises(TypeError, match=f"keras.ops.{name}"):
        two.run(function, args=(x,))


_DERIVED: dict[str, Callable[[Any], Any]] = {
    "sinc": knp.sinc,
    "i0": lambda x: knp.i0(x * 15.0),
    "logaddexp": lambda x: knp.logaddexp(x, x * 0.5 + 0.1),
    "logaddexp of equal numbers": lambda x: knp.logaddexp(x * 2.0, x + x),
    "logaddexp2": lambda x: knp.logaddexp2(x, 0.3),
    "hypot": lambda x: knp.hypot(x, 0.7),
    "quantile": lambda x: knp.quantile(x, [0.2, 0.6], 0),
    "nanvar": lambda x: knp.nanvar(x, 1),
    "corrcoef": lambda x: knp.corrcoef(x) * np.array([[1.0, 2.0, 3.0]]),
    "correlate": lambda x: knp.correlate(x[0], x[1], "same"),
    "cross": lambda x: knp.cross(x[:, :3], x[:, 1:]),
    "kron": lambda x: knp.kron(x, x[:2]),
    "pad": lambda x: knp.square(knp.pad(x, 2, "symmetric")),
    "take_along_axis": lambda x: knp.square(knp.take_along_axis(x, np.array([[1, 1, -1]]), 1)),
    "slogdet": lambda x: knp.slogdet(x[:, :3])[1],
    "linspace": lambda x: knp.square(knp.linspace(x, x * 2.0, 3)),
    "trapezoid": lambda x: knp.trapezoid(x, knp.cumsum(x, 1)),
    "unique": lambda x: knp.square(knp.unique(x)),
    "cbrt": knp.cbrt,
    "std": lambda x: knp.std(x, 0),
    "vander": lambda x: knp.vander(x[0], 3),
}


@pytest.mark.parametrize("name", list(_DERIVED))
def test_derivatives_are_those_of_finite_differences(name: str) -> None:
    function = _DERIVED[name]
    point = np.random.default_rng(1).random((3, 4)) + 0.2
    x = tf.constant(point)
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(function(x))
    got = tape.gradient(total, x).numpy()
    wanted = np.zeros_like(point)
    for place in np.ndindex(*point.shape):
        step = np.zeros_like(point)
        step[place] = 1e-5
        above, below = (float(tf.reduce_sum(function(tf.constant(p)))) for p in
                        (point + step, point - step))  # fmt: skip
        wanted[place] = (above - below) / 2e-5
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)


def test_derivatives_at_corners_are_finite() -> None:
    x = tf.constant([0.0, 1.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        waves, sums = knp.sinc(x), knp.logaddexp(x, tf.stop_gradient(x))
    assert np.isfinite(tape.gradient(waves, x).numpy()).all()
    _close(tape.gradient(sums, x), [0.5, 0.5], 1e-6)
