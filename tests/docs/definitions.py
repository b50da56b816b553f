"""Find what the sources define: types with their members, functions, constants and ops."""

from __future__ import annotations

import ast
import collections
import pathlib
import re
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMENT_OR_STRING = re.compile(r'//[^\n]*|("(?:\\.|[^"\\\n])*")')
INCLUDE = re.compile(r'^#include "([\w/]+\.def)"', re.MULTILINE)
FUNCTION_POINTER = re.compile(r"\(\*(\w+)\)\([^()]*\)")
NESTED = re.compile(r"\([^()]*\)|\{[^{}]*\}")
TEMPLATE = re.compile(r"<[^<>;{}]*>")
TYPE = re.compile(
    r"\b(?:class|struct|enum(?: class)?) (?:SAMEGRAD_\w+ )?(\w+)(?: final)?(?: :[^;{}()]*)?\s*\{"
    r"|\b(?:using|concept) (\w+) ="
)
# A name between its type or a comma, and its arguments, its value or the next name.
DECLARED = re.compile(r"(?:[\w>&*\]:,{]\s+|[{,]|[ (][&*]+)(\w+)(?=\s*(?:[(=;{,\[}]|:(?!:)|$))")
FUNCTION = re.compile(
    r"^ *(?!return|throw|else|case|co_)[\w:<>,&*\[\] ]+[ &*]~?(?:\w+::)*(\w+)\(", re.MULTILINE
)
CONSTANT = re.compile(r"\b(k[A-Z]\w*|[A-Z]\w+)(?= =|\{|;)|#define (\w+)", re.MULTILINE)
ENTRY = re.compile(r"^ *SAMEGRAD_\w+\((\w+)", re.MULTILINE)
WORD = re.compile(r'"([a-z]\w*|SAMEGRAD_\w+)"')
PYTHON_NAME = re.compile(r"\b(?:def|class) (\w+)|\b(\w+)(?:: |\s?=(?!=))")
EXPORTED = re.compile(r"__all__(?:: [^=]+)? \+?= \[([^\]]*)\]")


def files(folder: str, *suffixes: str) -> Iterator[pathlib.Path]:
    """Return the files of a folder in order."""
    return (path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in suffixes)


class CppDefinitions:
    """The definitions of C++ sources.

    Args:
        sources: Text of each file by its name, as an `#include` has it.

    Attributes:
        types: The types of a namespace.
        members: The members of each type, nested types included, by the type's name.
        names: Functions, constants, macros, entries of tables, and strings such as ops.
    """

    def __init__(self, sources: dict[str, str]) -> None:
        self.types: set[str] = set()
        self.members: dict[str, set[str]] = collections.defaultdict(set)
        self.names: set[str] = set()
        self._entries = {
            name: set(ENTRY.findall(text)) for name, text in sources.items() if ".def" in name
        }
        self.names.update(*self._entries.values())
        for text in sources.values():
            self._read(text)

    def _read(self, source: str) -> None:
        self.names.update(WORD.findall(source))
        code = INCLUDE.sub(r"INCLUDED<\1>;", source)
        code = COMMENT_OR_STRING.sub(lambda found: '""' if found[1] else "", code)
        self.names.update(FUNCTION.findall(code), *CONSTANT.findall(code))
        outer = 0  # the end of the last type of a namespace
        for found in TYPE.finditer(code):
            name = found[1] or found[2]
            if found.start() >= outer:
                self.types.add(name)
            if found[1]:
                end = _end_of_block(code, found.end())
                outer = max(outer, end)
                self._read_type(name, code[found.end() : end])

    def _read_type(self, name: str, body: str) -> None:
        members = _declared(body) | set(re.findall(r"\b(?:class|struct|using) (\w+)", body))
        for table in re.findall(r"INCLUDED<(.*?)>", body):
            members |= self._entries[table]
        self.members[name] |= members
        self.names |= members


class PythonDefinitions:
    """The definitions of Python sources.

    Args:
        sources: Text of each file.

    Attributes:
        names: Classes, functions, arguments and variables.
        exported: The names of every `__all__`.
    """

    def __init__(self, sources: list[str]) -> None:
        self._sources = sources
        text = "\n".join(sources)
        self.names = {name for pair in PYTHON_NAME.findall(text) for name in pair}
        self.exported = set(re.findall(r"\w+", " ".join(EXPORTED.findall(text))))

    def members(self, owner: str) -> set[str]:
        """Return the functions and attributes that the classes of a name define."""
        found: set[str] = set()
        for source in self._sources:
            if re.search(rf"^ *class {owner}\b", source, re.MULTILINE):
                for node in ast.walk(ast.parse(source)):
                    if isinstance(node, ast.ClassDef) and node.name == owner:
                        found.update(*PYTHON_NAME.findall(ast.unparse(node)))
        return found


def _end_of_block(code: str, begin: int) -> int:
    depth = 1
    for found in re.compile("[{}]").finditer(code, begin):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return found.start()
    return len(code)


def _declared(body: str) -> set[str]:
    """Return the names that the body of a type declares, outside of functions and arguments."""
    flat = re.sub(r"\b(?:public|private|protected):", "", body)
    flat, count = FUNCTION_POINTER.sub(r" \1", flat), 1
    while count:
        flat, count = NESTED.subn("\0", flat)
    flat = flat.replace("\0", "(")
    while TEMPLATE.search(flat):
        flat = TEMPLATE.sub("", flat)
    return set(DECLARED.findall("{ " + flat))
