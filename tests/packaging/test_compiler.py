"""What the build says on a machine without a C++ compiler."""

import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_a_missing_compiler_is_named_with_the_remedy(tmp_path):
    folder = pathlib.Path(sys.executable).parent
    tools = {name: shutil.which(name, path=str(folder)) for name in ("cmake", "ninja")}
    if None in tools.values():
        pytest.skip("the build tools are not installed beside Python")
    done = subprocess.run(
        [tools["cmake"], "-S", str(ROOT), "-B", str(tmp_path), "-G", "Ninja",
         f"-DCMAKE_MAKE_PROGRAM={tools['ninja']}"],
        capture_output=True, text=True, check=False,
        env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode != 0
    text = " ".join(done.stderr.split())
    assert "there is no C++ compiler" in text and "sudo apt-get install g++" in text
    assert "No CMAKE_CXX_COMPILER" not in text
