"""Builds the C++ tests and runs them."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command: object) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    return done.stdout


def test_all_cpp_tests_pass(tmp_path: pathlib.Path) -> None:
    run("cmake", "-G", "Ninja", "-S", ROOT, "-B", tmp_path, "-DSAMEGRAD_BUILD_TESTS=ON",
        "-DSAMEGRAD_BUILD_PYTHON=OFF", f"-DPython_EXECUTABLE={sys.executable}")  # fmt: skip
    run("cmake", "--build", tmp_path)
    printed = run("ctest", "--test-dir", tmp_path, "--output-on-failure")
    total = re.search(r"out of (\d+)", printed)
    assert total and int(total[1]) >= 8, printed
