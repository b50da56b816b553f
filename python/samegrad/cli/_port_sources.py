"""Programs as syntax trees: Python files, and notebooks cell by cell."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from samegrad._base.file_errors import explained_errors
from samegrad.cli._errors import CommandError

# Cell magics after which the rest of the cell is Python; after others it is not.
_PYTHON_CELLS = ("time", "timeit", "capture", "prun")
_MAGIC = re.compile(r"\s*([!%?]|[\w.]+(\[[^\]]*\])?\?\??\s*$)")
_ASSIGNED_MAGIC = re.compile(r"(\s*[\w, ]+=\s*)[!%]")


@dataclass(frozen=True)
class Piece:
    """A file, or a cell of a notebook (counted from 1, cells of code only)."""

    path: str
    cell: int | None
    tree: ast.Module

    def place(self, line: int) -> str:
        """Return the position of a line: `file:line` or `file:cell:line`.

        Example:
            >>> Piece("a.ipynb", 2, ast.Module([], [])).place(3)
            'a.ipynb:cell 2:3'
        """
        return _place(self.path, self.cell, line)


def read(path: str) -> list[Piece]:
    """The parts of a program in the order in which they run.

    Args:
        path: A Python file, or a notebook by the name's end `.ipynb`.

    Returns:
        One piece for a file, one per cell of code for a notebook.

    Raises:
        OSError: It cannot be read.
        CommandError: It is not Python, or not a notebook.
    """
    remedy = "Check that this user may read it, or give another path"
    with explained_errors("port-check", "read", Path(path), remedy):
        data = Path(path).read_bytes()
    if path.endswith(".ipynb"):
        return list(_cells(path, data))
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = io.TextIOWrapper(io.BytesIO(data), encoding, newline=None).read()
    except (SyntaxError, UnicodeDecodeError) as error:
        raise CommandError(
            f"[port-check] a file of Python text is needed: {path}: {error}. Save it as UTF-8."
        ) from error
    return [Piece(path, None, _parse(text, path, None))]


def _cells(path: str, data: bytes) -> Iterator[Piece]:
    try:
        notebook = json.loads(data.decode("utf-8"))
        if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
            raise ValueError("it has no list of cells")
        sources = [_source(cell) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise CommandError(
            f"[port-check] a notebook of format 4 is needed: {path}: {what}. Save it again with "
            "Jupyter."
        ) from error
    for number, source in enumerate(sources, 1):
        yield Piece(path, number, _parse(without_magics(source), path, number))


def _source(cell: dict[str, Any]) -> str:
    source = cell["source"]
    text = "".join(source) if isinstance(source, list) else source
    if not isinstance(text, str):
        raise ValueError("a cell's source is not text")
    return text


def _parse(text: str, path: str, cell: int | None) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the program, not about its names
            return ast.parse(text)
    except SyntaxError as error:
        place = _place(path, cell, error.lineno or 1)
        raise CommandError(
            f"[port-check] Python is needed: {place}: {error.msg}. Correct the line."
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:  # NUL bytes; too deep for Python
        place = path if cell is None else f"{path}:cell {cell}"
        raise CommandError(f"[port-check] Python is needed: {place}: {error}.") from error


def _place(path: str, cell: int | None, line: int) -> str:
    return f"{path}:{line}" if cell is None else f"{path}:cell {cell}:{line}"


def without_magics(source: str) -> str:
    r"""A cell's Python: IPython's own lines become `pass`, so that all lines keep their number.

    Example:
        >>> print(without_magics("%matplotlib inline\nfiles = !ls\nx = (7\n  % 3)"))
        pass
        files = None
        x = (7
          % 3)
    """
    lines = source.splitlines()
    first = next((place for place, line in enumerate(lines) if line.strip()), 0)
    if lines and lines[first].startswith("%%"):
        name = re.match(r"%%(\w*)", lines[first])
        if name is None or name[1] not in _PYTHON_CELLS:
            return ""
    kept: list[str] = []
    statement: list[str] = []  # its lines so far
    shell = False  # in a magic that goes on after a backslash
    for line in lines:
        if not statement and (shell or _MAGIC.match(line)):
            kept.append("" if shell else line[: len(line) - len(line.lstrip())] + "pass")
            shell = line.rstrip().endswith("\\")
            continue
        assigned = None if statement else _ASSIGNED_MAGIC.match(line)
        line = f"{assigned[1]}None" if assigned else line
        kept.append(line)
        statement = [*statement, line] if _is_open([*statement, line]) else []
    return "\n".join(kept)


def _is_open(lines: list[str]) -> bool:
    """Return True if a bracket, a string or a backslash continues the statement."""
    if lines[-1].endswith("\\"):
        return True
    text = "\n".join(lines).lstrip() + "\n"
    try:
        for _ in tokenize.generate_tokens(io.StringIO(text).readline):
            pass
    except tokenize.TokenError as error:
        return "EOF" in str(error) or "unterminated triple" in str(error)
    except SyntaxError:
        pass  # the parser will say it better
    return False
