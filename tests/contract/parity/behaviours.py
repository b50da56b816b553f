"""The table of what users of tf.distribute rely on, and the test that holds each line.

python tests/contract/parity/behaviours.py > tests/contract/parity/BEHAVIOURS.md
"""

from __future__ import annotations

import ast
from pathlib import Path

HERE = Path(__file__).resolve().parent


def table() -> str:
    """The markdown, one line per test, in the order of the files."""
    lines = ["# What users of tf.distribute rely on", "", "| behaviour | test |", "| --- | --- |"]
    for path in sorted(HERE.glob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.FunctionDef):
                continue
            behaviours = [
                ast.literal_eval(mark.args[0])
                for mark in node.decorator_list
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.parity"
            ]
            lines += [
                f"| {text.replace('|', chr(92) + '|')} | `{path.name}::{node.name}` |"
                for text in behaviours
            ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
