"""Extract prose (docstrings, comments, messages, Markdown) with its position in the sources."""

from __future__ import annotations

import ast
import dataclasses
import functools
import io
import json
import pathlib
import re
import tokenize
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
SENTENCE_END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`*\[\d])")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
CODE_FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.DOTALL | re.MULTILINE)
CPP_STRING_OR_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Text:
    """A piece of prose.

    Attributes:
        path: file, relative to the repository.
        line: its first line.
        kind: "docstring", "comment", "message" or "markdown".
        text: the words.
    """

    path: str
    line: int
    kind: str
    text: str


def texts(*folders: str) -> Iterator[Text]:
    """Yield the prose of every source file below `folders`, which may name single files."""
    for folder in folders:
        base = ROOT / folder
        for path in [base] if base.is_file() else sorted(base.rglob("*")):
            if path.suffix in READERS and not SKIPPED & set(path.parts):
                name = str(path.relative_to(ROOT))
                yield from _texts_of(path.suffix, name, path.read_text())


@functools.cache  # each measure asks for all files
def _texts_of(suffix: str, name: str, source: str) -> tuple[Text, ...]:
    return tuple(READERS[suffix](name, source))


def of_python(name: str, source: str) -> Iterator[Text]:
    """Yield docstrings, comments and string constants of several words."""
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = set()
    for node in nodes:
        if isinstance(node, DOCUMENTED) and (docstring := ast.get_docstring(node)) is not None:
            docstrings.add(id(node.body[0].value))
            yield Text(name, node.body[0].lineno, "docstring", docstring)
    for node in nodes:
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and " " in node.value and id(node) not in docstrings:
            yield Text(name, node.lineno, "message", node.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(name, token.start[0], "comment", token.string.lstrip("#: "))


def of_cpp(name: str, source: str) -> Iterator[Text]:
    """Yield comments, consecutive lines as one, and string literals of several words."""
    words, first, last = "", 0, -1
    for found in CPP_STRING_OR_COMMENT.finditer(source):
        line = source.count("\n", 0, found.start()) + 1
        if found[0].startswith('"'):
            if " " in found[0]:
                yield Text(name, line, "message", found[0][1:-1])
            continue
        if line != last + 1 and words:
            yield Text(name, first, "comment", words)
            words = ""
        first = first if words else line
        words = f"{words} {found[0].strip('/*! ')}".strip()
        last = line + found[0].count("\n")
    if words:
        yield Text(name, first, "comment", words)


def of_notebook(name: str, source: str) -> Iterator[Text]:
    """Yield the paragraphs of Markdown cells, and the comments of code cells."""
    for number, cell in enumerate(json.loads(source)["cells"], 1):
        lines = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            for text in of_markdown(name, lines):
                yield dataclasses.replace(text, line=number)
        else:
            for comment in re.findall(r"(?:^|\s)# (.*)", lines):
                yield Text(name, number, "comment", comment)


def of_markdown(name: str, source: str) -> Iterator[Text]:
    """Yield the paragraphs, list items and table rows outside of code blocks."""
    plain = CODE_FENCE.sub(lambda block: "\n" * block[0].count("\n"), source)
    line = 1
    for block in re.split(r"(\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\.)\s))", plain):
        if block.strip():
            yield Text(name, line, "markdown", block.strip())
        line += block.count("\n")


def sentences(text: str) -> list[str]:
    """Split a paragraph into sentences; a table row and a heading have none."""
    if text.startswith(("|", "#", "<", "[^")):
        return []
    plain = re.sub(r"^\s*(?:[-*]|\d+\.)\s+", "", text)
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", plain)
    plain = re.sub(r"`[^`]*`", "code", plain)
    found = [part.strip() for part in SENTENCE_END.split(plain)]
    return [part for part in found if len(part.split()) > 2]


SKIPPED = {"__pycache__", "expected_failures.txt", ".ipynb_checkpoints"}
READERS = {
    ".py": of_python,
    ".cpp": of_cpp,
    ".h": of_cpp,
    ".def": of_cpp,
    ".md": of_markdown,
    ".ipynb": of_notebook,
}
