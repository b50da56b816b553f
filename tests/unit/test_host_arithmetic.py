"""Values of programs do not depend on the functions of NumPy, C or BLAS, which differ by processor.

Sums, products, quotients and square roots are rounded correctly everywhere. All else that a module
of samegrad calls on the host is in a reviewed list here, or the scan fails.
"""

from __future__ import annotations

import ast
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import samegrad as tf
from samegrad._ops import elementary
from samegrad.signal import _fourier

ROOT = Path(tf.__file__).parent
# The doctor measures with matrices of NumPy, and reports words and rounded numbers. The others draw
# curves and judge samples and translations for the eye.
UNSCANNED = (
    "testing/",
    "cli/examples/",  # programs of the wheel, which are in examples/ here
    "cli/_translate/_scores.py",
    "cli/_wgan/_drawing.py",
    "cli/_wgan/_quality.py",
)

EXACT = {
    "math": "ceil inf isfinite isqrt nan pi prod sqrt",
    "numpy": (
        # types, constants, settings
        "__file__ __version__ bool_ complex64 complexfloating dtype errstate finfo float32 float64 "
        "floating generic iinfo inf int32 int64 integer issubdtype nan ndarray number object_ pi "
        "printoptions result_type can_cast typing ufunc uint16 uint32 uint64 uint8 "
        # shapes, moves, comparisons, orders
        "argmax argsort argwhere array array_equal asarray ascontiguousarray atleast_1d bincount "
        "broadcast broadcast_arrays broadcast_shapes broadcast_to clip column_stack concatenate "
        "copysign delete empty empty_like expand_dims eye flatnonzero flip from_dlpack frombuffer "
        "full full_like histogram imag indices insert iscomplexobj isfinite isin isnan iterable "
        "left_shift lexsort max maximum minimum moveaxis nan_to_num ndim ndindex nextafter nonzero "
        "ones pad ravel ravel_multi_index real repeat searchsorted shape sort split squeeze stack "
        "take tile transpose unique unravel_index where zeros zeros_like "
        # correctly rounded, one operation after the other
        "abs add arange bartlett ceil cumsum diff divide divmod floor linspace prod rint round "
        "sqrt subtract"
    ),
}
DISPLAYED = "is shown, and nothing is computed with it"
COMPARED = "is compared within the tolerances of a test"
INTEGERS = "integers"
SQUARE = "NumPy multiplies"
TENSORS = "tensors: the engine's"
REVIEWED = {
    ("_autodiff/random_variates.py", "(1.0 + x / math.sqrt(9.0 * third)) ** 3"): TENSORS,
    ("_autodiff/random_variates.py", "low ** (1.0 / math.minimum(fixed, 1.0))"): TENSORS,
    ("_control/assertions.py", "numpy.array2string"): DISPLAYED,
    ("_keras/epochs.py", "numpy.random.get_state"): INTEGERS,
    ("_keras/linalg/decompositions.py", "numpy.linalg.eig"): "LAPACK's: the engine has no other",
    ("_keras/older/backend.py", "(1.0 - y) ** gamma"): TENSORS,
    ("_keras/random.py", "(1.0 + x / tf.sqrt(9.0 * third)) ** 3"): TENSORS,
    (
        "_keras/random.py",
        "tf.maximum(last, 1e-300) ** (1.0 / tf.where(a < 1.0, a, tf.ones_like(a)))",
    ): TENSORS,
    ("_keras/random_states.py", "numpy.random.get_state"): INTEGERS,
    ("_keras/random_states.py", "numpy.random.set_state"): INTEGERS,
    ("_keras/seeds.py", "numpy.random.SeedSequence"): INTEGERS,
    ("_tensor/dim.py", "_number(self) ** power"): INTEGERS,
    ("cli/_translate/_batches.py", "costs[judged].sum"): DISPLAYED,
    ("cli/_translate/_batches.py", "counts.sum"): DISPLAYED,
    ("cli/_translate/_batches.py", "numpy.log"): DISPLAYED,
    ("cli/_wgan/_steps.py", "(norms - 1.0) ** 2"): TENSORS,
    ("cli/_wgan/_training.py", "numpy.random.default_rng"): "samples that are judged and shown",
    ("data/_drawn_nodes.py", "shares.sum"): "is compared with 1, to a thousandth",
    ("image/_boxes.py", "shared ** 2"): SQUARE,
    ("image/_quality.py", "(places / sigma) ** 2"): SQUARE,
    ("nn/_adaptive_pooling.py", "inside.sum"): INTEGERS,
    ("nn/_ctc.py", "(labels >= 0).sum"): INTEGERS,
    ("ragged/_moved.py", "numpy.sum"): INTEGERS,
    ("ragged/_shaped.py", "found[-1].sum"): INTEGERS,
    ("ragged/_shaped.py", "lengths[count].sum"): INTEGERS,
    ("signal/_fourier.py", "np.arange(size, dtype=np.int64) ** 2"): INTEGERS,
    ("signal/_windows.py", "((np.arange(size) - half) / half) ** 2"): SQUARE,
    ("signal/_windows.py", "inner ** 2"): SQUARE,
    ("random/_index_shuffle.py", "math.log2"): "the bits of an integer, as TensorFlow counts them",
    ("sparse/_reduced.py", "moved[:, :0].sum"): INTEGERS,
    ("test/_case.py", "numpy.linalg.norm"): COMPARED,
    ("test/_case.py", "numpy.random.seed"): INTEGERS,
    ("test/_case.py", "numpy.testing.assert_allclose"): COMPARED,
    ("test/_case.py", "numpy.testing.assert_array_equal"): COMPARED,
}
# Sums of arrays: NumPy adds several elements at a time.
_SUMS = {"dot", "mean", "std", "sum", "var"}
_MODULES = {"math", "ops", "tf"}
_LIBRARIES = {"cmath", "math", "numpy", "scipy", "statistics"}


def _is_library(node: ast.ImportFrom) -> bool:
    return not node.level and (node.module or "").partition(".")[0] in _LIBRARIES


def _names(tree: ast.Module) -> dict[str, str]:
    """The local names of the libraries and of what is imported from them."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                if top in _LIBRARIES:
                    names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and _is_library(node):
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _dotted(node: ast.AST, names: dict[str, str]) -> str:
    """The full name of an attribute or a name of a library; "" of anything else."""
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value, names)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def _is_exact(name: str) -> bool:
    library, _, rest = name.partition(".")
    return not rest or rest.partition(".")[0] in EXACT.get(library, "").split()


def _is_sum(function: ast.expr, names: dict[str, str]) -> bool:
    if not isinstance(function, ast.Attribute) or function.attr not in _SUMS:
        return False
    owner = function.value
    return not isinstance(owner, ast.Name) or owner.id not in (_MODULES | names.keys())


def found_in(source: str) -> Iterator[str]:
    """What a module computes on the host that processors may round differently.

    A power of an integer is an integer or, of a power of two, exact.
    """
    tree = ast.parse(source)
    names = _names(tree)
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and id(node) not in inner:
            name = _dotted(node, names)
            if name and not _is_exact(name):
                yield name
        elif isinstance(node, ast.Call) and _is_sum(node.func, names):
            yield ast.unparse(node.func)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield ast.unparse(node)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            base = node.left.value if isinstance(node.left, ast.Constant) else None
            if not isinstance(base, int) and base != 2.0:
                yield ast.unparse(node)


def test_host_functions_of_values_are_reviewed() -> None:
    found = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in sorted(ROOT.rglob("*.py"))
        if not path.relative_to(ROOT).as_posix().startswith(UNSCANNED)
        for name in found_in(path.read_text(encoding="utf-8"))
    }
    assert sorted(found - REVIEWED.keys()) == []  # use samegrad._ops.elementary
    assert sorted(REVIEWED.keys() - found) == []  # no longer there


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("import numpy as np\nnp.exp(1.0)", ["numpy.exp"]),
        ("import numpy as np\nf = np.linalg.svd", ["numpy.linalg.svd"]),
        ("from math import log as ln\nln(2.0)", ["math.log"]),
        ("import math\nmath.pow(2.0, 0.5)", ["math.pow"]),
        ("a @ b", ["a @ b"]),
        ("x ** 0.5", ["x ** 0.5"]),
        ("10.0 ** n", ["10.0 ** n"]),
        ("x.mean()", ["x.mean"]),
        ("tf.mean(x)", []),
        ("2 ** 64 + 2.0 ** -52", []),
        ("import math\nmath.sqrt(2.0) + math.pi", []),
        ("from samegrad import math\nmath.exp(1.0)", []),
    ],
)
def test_host_functions_are_found(line: str, expected: list[str]) -> None:
    assert list(found_in(line)) == expected


# Of 64 bits of mantissa: what it rounds to is the right number, or one beside it.
RANGES = {"exp": (-30, 30), "log": (1e-9, 1e9), "log1p": (-0.9, 9), "cos": (-9, 9), "sin": (-9, 9)}


@pytest.mark.parametrize("name", RANGES)
def test_elementary_functions_are_those_of_mathematics(name: str) -> None:
    x = np.linspace(*RANGES[name], 10_001)
    expected = getattr(np, name)(x.astype(np.longdouble))
    found = getattr(elementary, name)(x)
    assert found.dtype == np.float64
    assert (np.abs(found - expected) <= 4 * np.spacing(np.abs(expected.astype(float)))).all()
    single = getattr(elementary, name)(x.astype(np.float32))
    assert single.dtype == np.float32
    assert float(getattr(elementary, name)(float(x[7]))) == found[7]


def test_elementary_functions_are_values_in_a_traced_function() -> None:
    found = []

    @tf.function
    def traced(x: tf.Tensor) -> tf.Tensor:
        found.append(float(elementary.exp(1.0)))
        return x * tf.signal.hann_window(4) * tf.signal.kaiser_window(4)

    traced(tf.ones(4))
    assert found == [float(elementary.exp(1.0))]


@pytest.mark.parametrize("size", [1, 2, 3, 8, 12, 360, 1009])
def test_points_on_the_circle_are_exact_to_a_rounding(size: int) -> None:
    places = np.arange(-2 * size, 2 * size + 1)
    turns = np.mod(places, size).astype(np.longdouble) / size
    expected = np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)
    if np.finfo(np.longdouble).eps < 1e-18:
        full = 2 * np.longdouble("3.14159265358979323846264")
        expected = np.cos(full * turns), np.sin(full * turns)
    found = elementary.on_circle(places, size)
    for part, right in zip((found.real, found.imag), expected, strict=True):
        np.testing.assert_allclose(part, right.astype(float), rtol=0, atol=2.3e-16)
    quarters = 4 * places % size == 0
    assert (np.isin(found[quarters].real, (-1, 0, 1))).all()
    assert not np.signbit(found[quarters].real[found[quarters].real == 0]).any()


@pytest.mark.parametrize("size", [521, 1031])
def test_transforms_of_prime_lengths_are_those_of_mathematics(size: int) -> None:
    _, response = _fourier._chirp(size, 1 << (2 * size - 2).bit_length(), -1)
    around = np.zeros(len(response), complex)
    chirp = elementary.on_circle(-(np.arange(size, dtype=np.int64) ** 2), 2 * size)
    around[:size] = chirp.conj()
    around[len(response) - size + 1 :] = chirp[1:][::-1].conj()
    np.testing.assert_allclose(response * len(response), np.fft.fft(around), atol=1e-11)


def test_logarithms_of_sums_are_those_of_numpy() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(scale=20, size=(2, 1000))
    x[:3], y[1:4] = -np.inf, -np.inf
    y[5] = x[5]
    np.testing.assert_allclose(elementary.log_of_sum(x, y), np.logaddexp(x, y), rtol=1e-14)


def digests_of_constants(**environment: str) -> list[str]:
    script = Path(__file__).with_name("host_constants.py")
    command = [sys.executable, str(script)]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_constants_are_the_same_on_an_older_processor() -> None:
    if platform.machine() != "x86_64":
        pytest.skip("the C library and NumPy choose functions by the processor on x86-64")
    umath = pytest.importorskip("numpy._core._multiarray_umath")
    chosen = [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)]
    older = digests_of_constants(
        NPY_DISABLE_CPU_FEATURES=" ".join(chosen),
        GLIBC_TUNABLES="glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F,-AVX2_Usable,-FMA_Usable",
    )
    assert len(older) == 8 and older == digests_of_constants()
