"""Kernels for 64-bit ARM, under emulation, have the bits of those for x86-64."""

from __future__ import annotations

import os
import pathlib
import platform
import shutil
import subprocess
import sys

import pytest

from samegrad import _core

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests" / "cpp" / "kernels" / "hash_kernels.cpp"
EMULATOR = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]


def run(*command: object) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def hashes(*program: object) -> dict[str, str]:
    """Return the hashes that a program prints, by function, dtype and range of numbers."""
    lines = [line.rpartition(" ") for line in run(*program).splitlines()]
    found = {label: value for label, _, value in lines}
    assert len(found) == len(lines) > 400, "each line has a label of its own"
    return found


@pytest.fixture(scope="module")
def cross_build(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return the build folder of the ARM kernels and of the program that hashes their results."""
    for tool in ("aarch64-linux-gnu-g++", EMULATOR[0]):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    if platform.machine() != "x86_64":
        pytest.skip("compares with kernels for x86-64")
    build = tmp_path_factory.mktemp("aarch64")
    run("cmake", "-G", "Ninja", "-S", ROOT, "-B", build,
        "--toolchain", ROOT / "cmake" / "aarch64.cmake",
        "-DSAMEGRAD_BUILD_PYTHON=OFF", "-DSAMEGRAD_BUILD_TESTS=ON",
        "-DSAMEGRAD_KERNEL_OPTIMIZATION=-O1", "-DCMAKE_CXX_FLAGS_RELEASE=-O1",
        "-DSAMEGRAD_WARNINGS_ARE_ERRORS=ON", f"-DPython_EXECUTABLE={sys.executable}")  # fmt: skip
    run("cmake", "--build", build, "--target", "samegrad_kernel_variants", "kernels_hash_kernels")
    return build


@pytest.fixture(scope="module")
def native_program(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return the same program for this machine."""
    program = tmp_path_factory.mktemp("native") / "hash_kernels"
    compiler = os.environ.get("CXX", "c++")
    run(compiler, "-std=c++20", "-O1", f"-I{ROOT / 'cpp'}", PROGRAM, "-o", program, "-ldl")
    return program


def native_library(fused: bool) -> pathlib.Path:
    """Return the kernels of the module in use that have, or lack, fused multiply-add."""
    names = [name for name in _core.isa_supported() if _core.isa_fused()[name] == fused]
    if not names:
        pytest.skip("this processor has no fused multiply-add")
    folder = pathlib.Path(
        os.environ.get("SAMEGRAD_KERNEL_DIR") or pathlib.Path(_core.__file__).parent
    )
    return folder / f"libsamegrad_kernels_{names[-1].removeprefix('x86-64-')}.so"


@pytest.mark.parametrize("variant", ["neon", "generic"])
def test_kernels_for_arm_have_the_bits_of_x86_64(
    variant: str, cross_build: pathlib.Path, native_program: pathlib.Path
) -> None:
    library = cross_build / "cpp" / "kernels" / f"libsamegrad_kernels_{variant}.so"
    program = cross_build / "tests" / "cpp" / "kernels" / "kernels_hash_kernels"
    found = hashes(*EMULATOR, program, library)
    expected = hashes(native_program, native_library(_core.isa_fused()[variant]))
    assert found.keys() == expected.keys()
    assert [label for label in expected if found[label] != expected[label]] == []
