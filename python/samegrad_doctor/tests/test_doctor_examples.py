"""The examples: names of the doctor exist, and each runs where its frameworks are installed."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
# What each prints, in order.
SAID = {
    "accelerate_loop.py": ("mean of the micro-batches' means", "build_count: correct"),
    "accumulation.py": ("mean of the micro-batches' means", "one_mean: correct"),
    "lightning_module.py": ("mean of the replicas' means",),
    "main_script.py": ("mean of the replicas' means", "diff:"),
    "optax_step.py": ("mean of the replicas' means", "one_mean: correct"),
    "transformers_trainer.py": ("mean of the micro-batches' means",),
}


def imports_of(tree: ast.Module) -> list[tuple[str, str | None]]:
    """Return the modules of a file, and the names taken from them."""
    found: list[tuple[str, str | None]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(str(node.module), alias.name) for alias in node.names]
    return found


def test_every_example_has_an_expectation() -> None:
    assert {path.name for path in FOLDER.glob("*.py")} == SAID.keys()


@pytest.mark.parametrize("name", SAID)
def test_names_that_an_example_imports_exist(name: str) -> None:
    tree = ast.parse((FOLDER / name).read_text())
    imported = imports_of(tree)
    assert ("samegrad_doctor", "diagnose") in imported
    for module, member in imported:
        if importlib.util.find_spec(module.partition(".")[0]) is not None:
            assert member is None or _has(module, member), (module, member)


def _has(module: str, member: str) -> bool:
    found = importlib.import_module(module)
    return hasattr(found, member) or importlib.util.find_spec(f"{module}.{member}") is not None


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", SAID)
def test_an_example_says_what_is_wrong(name: str) -> None:
    tops = {module.partition(".")[0] for module, _ in imports_of(ast.parse(
        (FOLDER / name).read_text()))}  # fmt: skip
    for top in sorted(tops):
        if importlib.util.find_spec(top) is None:
            pytest.skip(f"{top} is not installed")
    done = subprocess.run(
        [sys.executable, str(FOLDER / name), *(["--check"] if name == "main_script.py" else [])],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    at = [done.stdout.find(words) for words in SAID[name]]
    assert -1 not in at and at == sorted(at), done.stdout
