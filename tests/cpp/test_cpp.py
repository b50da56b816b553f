"""Builds the C++ tests and runs them."""

import pathlib
import re
import subprocess
import sys

import pytest
import tomllib

from samegrad import _core

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command: object) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    return done.stdout


def test_all_cpp_tests_pass(tmp_path: pathlib.Path) -> None:
    """The kernels are those of the package, whose sources the build must have."""
    package = pathlib.Path(_core.__file__).parent
    run("cmake", "-G", "Ninja", "-S", ROOT, "-B", tmp_path, "-DSAMEGRAD_BUILD_TESTS=ON",
        "-DSAMEGRAD_BUILD_PYTHON=OFF", "-DSAMEGRAD_WARNINGS_ARE_ERRORS=ON",
        "-DSAMEGRAD_ASSERTIONS=ON", "-DCMAKE_CXX_FLAGS_RELEASE=-O1",
        "-DSAMEGRAD_ISA_VARIANTS=", f"-DSAMEGRAD_TESTED_KERNELS={package}",
        f"-DPython_EXECUTABLE={sys.executable}")  # fmt: skip
    run("cmake", "--build", tmp_path)
    printed = run("ctest", "--test-dir", tmp_path, "--output-on-failure", "--parallel", "2")
    total = re.search(r"out of (\d+)", printed)
    assert total and int(total[1]) >= 8, printed
    kernels = list(package.glob("libsamegrad_kernels_*.so"))
    assert kernels
    for library in kernels:
        needed = run("nm", "-D", "--undefined-only", library)
        assert "memcpy" in needed
        # Memory is the engine's (Scratch), and steps that store into variables must not fail.
        assert not re.search(r" (malloc|aligned_alloc|_Znw\w+|__cxa_throw)\b", needed), needed


@pytest.mark.parametrize("processor", ["x86_64", "aarch64", "riscv64"])
def test_the_targets_of_the_wheel_exist_on_each_processor(
    processor: str, tmp_path: pathlib.Path
) -> None:
    run("cmake", "-G", "Ninja", "-S", ROOT, "-B", tmp_path, "-DCMAKE_SYSTEM_NAME=Linux",
        f"-DCMAKE_SYSTEM_PROCESSOR={processor}",
        f"-DPython_EXECUTABLE={sys.executable}")  # fmt: skip
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]
    planned = run("ninja", "-C", tmp_path, "-t", "commands", *settings["build"]["targets"])
    assert "libsamegrad_kernels_" in planned
    assert "-Werror" not in planned  # a new compiler's warning stops nobody's installation


def test_a_build_without_tbb_names_the_commands_that_install_it(tmp_path: pathlib.Path) -> None:
    done = subprocess.run(
        ["cmake", "-G", "Ninja", "-S", ROOT, "-B", tmp_path / "build",
         "-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64",
         f"-DCMAKE_FIND_ROOT_PATH={tmp_path}", "-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY",
         "-DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY",
         "-DSAMEGRAD_BUILD_PYTHON=OFF", f"-DPython_EXECUTABLE={sys.executable}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    message = " ".join(done.stderr.split())
    assert done.returncode != 0 and "oneTBB was not found for aarch64." in message
    for command in ("apt-get install libtbb-dev", "conda install -c conda-forge tbb-devel"):
        assert command in message
