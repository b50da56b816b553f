"""The sources keep the house's rules: typed, formatted, short files and functions, true stubs."""

import ast
import functools
import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
from typing import NamedTuple

import pytest
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "samegrad"


def sources(*suffixes):
    folders = ("cpp", "python", "tests", "notebooks")
    return [
        path
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in suffixes and "__pycache__" not in path.parts
    ]


def run(*command):
    done = subprocess.run(
        [str(part) for part in command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


def program(name):
    found = shutil.which(name, path=f"{pathlib.Path(sys.executable).parent}") or shutil.which(name)
    return found or pytest.skip(f"{name} is not installed")


def test_python_is_typed():
    run(
        program("mypy"),
        "python/samegrad",
        "python/samegrad_doctor/src",
        "--python-executable",
        sys.executable,
    )


def test_python_keeps_the_rules():
    run(program("ruff"), "check", "python", "tests", "cpp", "notebooks", "examples")
    run(program("ruff"), "format", "--check", "python", "tests", "cpp", "notebooks", "examples")


def test_cpp_is_formatted():
    clang_format = program("clang-format")
    printed = subprocess.run(
        [clang_format, "--version"], capture_output=True, text=True, check=True
    )
    if "version 14." not in printed.stdout:
        pytest.skip(f"other versions format otherwise: {printed.stdout.strip()}")
    run(clang_format, "--dry-run", "-Werror", *sources(".cpp", ".h"))


def test_the_stub_file_is_that_of_the_module(tmp_path):
    import pybind11

    if pybind11.version_info[0] < 3:
        pytest.skip("older pybind11 prints signatures otherwise")
    spec = importlib.util.spec_from_file_location("stubs", ROOT / "cpp" / "bind" / "stubs.py")
    stubs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stubs)
    fresh = tmp_path / "_core.pyi"
    fresh.write_text(stubs.generate())
    run(program("ruff"), "format", "-q", "--config", ROOT / "pyproject.toml", fresh)
    assert fresh.read_text() == (PACKAGE / "_core.pyi").read_text(), (
        "refresh it: python cpp/bind/stubs.py > python/samegrad/_core.pyi, then ruff format"
    )


def test_files_have_at_most_500_lines_besides_docstrings():
    long = {
        str(path.relative_to(ROOT)): count
        for path in sources(".py", ".cpp", ".h")
        if (count := _lines_besides_docstrings(path)) > 500
    }
    assert not long


def _lines_besides_docstrings(path):
    lines = len(path.read_text().splitlines())
    if path.suffix != ".py":
        return lines
    return lines - sum(found.documented for found in definitions(path))


@functools.cache  # each rule asks for all files
def definitions(path):
    """Return the module, classes and functions of a file with their numbers of lines."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = 0 if ast.get_docstring(node) is None else 1
            spans = [1 + part[-1].end_lineno - part[0].lineno if part else 0
                     for part in (node.body[:first], node.body[first:])]  # fmt: skip
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            place = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
            name = getattr(node, "name", "")  # the module has none
            found.append(Definition(f"{place} {name}", is_function, *spans))
    return found


class Definition(NamedTuple):
    """A definition, and the lines of its docstring and of its body."""

    place: str
    is_function: bool
    documented: int
    body: int


def test_functions_have_at_most_50_lines():
    long = [
        f"{found.place}: {found.body}"
        for path in sources(".py")
        for found in definitions(path)
        if found.is_function and found.body > 50
    ]
    assert not long


def test_cpp_functions_have_at_most_50_lines():
    """The registrations of the module's names are lists."""
    # clang-format gives the brace that ends a function the indentation of its first line.
    function = re.compile(
        r"^(?P<indent> *)(?!TEST|struct|class|namespace|for|if|while|switch|else|do|[}\"#/])"
        r"(?P<head>\S[^;{}]*\))(?: const| override| noexcept| mutable)*"
        r"(?:\s*:[^;]*?)? \{\n(?P<body>(?:.*\n)*?)(?P=indent)\}",
        re.MULTILINE,
    )
    long = [
        f"{path.relative_to(ROOT)}: {found[0].splitlines()[0].strip()} {lines}"
        for path in sources(".cpp", ".h")
        if "bind" not in path.parts
        for found in function.finditer(path.read_text())
        if found["head"].count("(") == found["head"].count(")")
        and (lines := found["body"].count("\n")) > 50
    ]
    assert not long


def test_cpp_names_operations_of_the_table_by_constants():
    """A misspelled name would be an operation that never occurs."""
    from samegrad import _core

    table = {row["name"] for row in _core.op_table()}
    texts = {path: path.read_text() for path in sources(".cpp", ".h") if "tests" not in path.parts}
    uses = (
        r'\b(?:is_op|op|commuted)<"(\w+)">',  # comparisons and patterns
        # nodes that are added
        r'(?:\bb|builder\(\)|\b(?:call|to|many|reduce)|\(\*(?:trace_|this)\))\(\s*"(\w+)"',
        r'(?:instance\(\)|registry)\.(?:get|find)\(\s*"(\w+)"|with_bias = "(\w+)"',
    )
    found = [name for text in texts.values() for use in uses for name in re.findall(use, text)]
    named = {name if isinstance(name, str) else "".join(name) for name in found}
    assert len(named) > 60 and named <= table, named - table
    layers = {"analysis", "autodiff", "passes", "plan", "runtime"}
    compared = [
        path.name
        for path, text in texts.items()
        if layers & set(path.parts) and re.search(r"op->name [!=]= ", text)
    ]
    assert not compared, compared


def test_no_file_names_a_place_of_one_machine():
    own = pathlib.Path(__file__)
    pattern = re.compile(r"/(?:work|root|home/\w+)/|\bfile:///|DESIGN\.md|PARITY\.md")
    texts = [*sources(".py", ".cpp", ".h", ".ipynb", ".pyi"), ROOT / "README.md"]
    texts += [ROOT / "pyproject.toml", ROOT / "CHANGELOG.md", ROOT / "cpp" / "README.md"]
    texts += (ROOT / "docs").glob("*.md")
    named = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in texts
        if path != own and (found := pattern.search(path.read_text()))
    ]
    assert not named


def test_modules_that_tests_import_have_unique_names():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    first = dict.fromkeys(sys.stdlib_module_names, "the standard library")
    twice = []
    for folder in settings["tool"]["pytest"]["ini_options"]["pythonpath"]:
        files = (ROOT / folder).glob("*.py")
        packages = (file.parent for file in (ROOT / folder).glob("*/__init__.py"))
        for module in (*files, *packages):
            if module.stem == "conftest":
                continue
            if module.stem in first:
                twice.append(f"{module.relative_to(ROOT)}: also in {first[module.stem]}")
            first[module.stem] = folder
    assert not twice
