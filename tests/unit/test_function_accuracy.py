"""Functions are near mpmath's values, and the same on processors that the C library tells apart."""

from __future__ import annotations

import ctypes.util
import functools
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys

import function_points
import numpy as np
import pytest

from samegrad import _core

HERE = pathlib.Path(__file__).parent
RECORDED = json.loads((HERE / "mpmath_functions.json").read_text("utf-8"))["values"]
# One class of bits: not in the kernels, which fuse multiplications where the processor can.
IN_ONE_CLASS = [name for name in RECORDED if name.split()[0] not in ("pow", "sin", "cos", "tan")]
# glibc chooses variants of its functions by these features.
WITHOUT_FUSED = "glibc.cpu.hwcaps=-FMA,-AVX2,-FMA4,-AVX512F"
# Results that IEEE 754 fixes to the last bit, or that are made of integers.
EXACT = {
    "ceil", "fabs", "floor", "fmod", "frexp", "ilogb", "ldexp", "logb", "modf", "nearbyint",
    "nextafter", "rint", "round", "scalbn", "sqrt", "trunc",
}  # fmt: skip


@functools.cache
def found_with(isa: str, tunables: str = "") -> dict[str, dict[str, list[str]]]:
    """Values of a process with these kernels."""
    environment = {**os.environ, "SAMEGRAD_ISA": isa.removeprefix("x86-64-")}
    if tunables:
        environment["GLIBC_TUNABLES"] = tunables
    script = HERE / "function_points.py"
    output = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=True
    ).stdout
    return json.loads(output)


def error_in_units(found: str, high: str, low: str) -> float:
    y, exact = float.fromhex(found), float.fromhex(high)
    if np.isinf(y) or np.isinf(exact):
        return 0 if y == exact else np.inf
    unit = np.spacing(max(abs(exact), np.finfo(float).tiny))
    return abs((y - exact) - float.fromhex(low)) / unit


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("isa", _core.isa_supported())
def test_a_function_is_near_the_exact_value(isa: str, name: str) -> None:
    most = function_points.CASES[name][2]
    values = found_with(isa)["float64"][name]
    assert len(values) == len(RECORDED[name])
    errors = [error_in_units(y, *exact) for y, exact in zip(values, RECORDED[name], strict=True)]
    worst = int(np.argmax(errors))
    assert errors[worst] <= most, (
        f"{name} of {[float(x[worst]) for x in function_points.CASES[name][1]]} is {values[worst]}"
    )


@pytest.mark.parametrize("name", IN_ONE_CLASS)
def test_special_functions_have_the_same_bits_on_every_variant(name: str) -> None:
    variants = _core.isa_supported()
    for dtype in ("float32", "float64"):
        first = found_with(variants[0])[dtype][name]
        assert all(found_with(isa)[dtype][name] == first for isa in variants)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_the_variants_that_the_c_library_chooses_change_no_bit() -> None:
    isa = _core.isa_supported()[-1]
    assert found_with(isa, WITHOUT_FUSED) == found_with(isa)


def symbols(library: str | pathlib.Path, which: str) -> set[str]:
    listed = subprocess.run(
        ["nm", "--dynamic", which, "--format=posix", library],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return {line.split()[0].split("@")[0] for line in listed.splitlines()}


def our_libraries() -> list[pathlib.Path]:
    folder = pathlib.Path(_core.__file__).parent
    return [pathlib.Path(_core.__file__), *sorted(folder.glob("libsamegrad_kernels_*.so"))]


@pytest.mark.skipif(not shutil.which("nm"), reason="nm, of a C++ compiler, is not installed")
@pytest.mark.skipif(not ctypes.util.find_library("m"), reason="there is no library of functions")
@pytest.mark.parametrize("library", our_libraries(), ids=lambda path: path.name.split(".")[0])
def test_a_library_imports_exact_functions_alone(library: pathlib.Path) -> None:
    process = ctypes.CDLL(ctypes.util.find_library("m"))
    path = pathlib.Path(_loaded_from(process, "sin"))
    imported = symbols(library, "--undefined-only") & symbols(path, "--defined-only")
    kinds = {name.removesuffix("f") if name not in EXACT else name for name in imported}
    assert kinds <= EXACT, f"{library.name} asks the C library for {sorted(kinds - EXACT)}"
    assert imported, "the test looks at the wrong library"


def _loaded_from(library: ctypes.CDLL, symbol: str) -> str:
    """Path of the file that a symbol is in."""

    class Info(ctypes.Structure):
        _fields_ = [
            ("file", ctypes.c_char_p),
            ("base", ctypes.c_void_p),
            ("name", ctypes.c_char_p),
            ("address", ctypes.c_void_p),
        ]

    info = Info()
    address = ctypes.cast(getattr(library, symbol), ctypes.c_void_p)
    assert ctypes.CDLL(None).dladdr(address, ctypes.byref(info))
    return os.fsdecode(info.file)
