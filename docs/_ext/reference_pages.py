"""Write the reference pages of the site from the sources and from the tests' tables."""

from __future__ import annotations

import argparse
import ast
import collections
import importlib
import inspect
import json
import lzma
import pathlib
import re
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import decided
from public_names import PublicName, is_ours, names_of, public_modules

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
Pages = dict[str, str]
Programs = Mapping[str, Sequence[pathlib.Path]]


def write_pages(folder: pathlib.Path, programs: Programs) -> dict[str, pathlib.Path]:
    """Write the pages that have changed, and return the file of each page."""
    texts = {
        **api_pages(),
        **program_pages(programs),
        "reference/command-options": command_options(),
        "reference/errors": errors(),
        "reference/ops": ops(),
        "reference/failure-modes": failure_modes(),
        "reference/coverage": coverage(),
    }
    files = {name: folder / f"{name}.rst" for name in texts}
    for name, file in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text("utf-8") != texts[name]:
            file.write_text(texts[name], "utf-8")
    return files


def plain(text: str) -> str:
    """Return one line of reStructuredText; single backticks mark code."""
    return escape(re.sub(r"([\\_<>])(?=[^`]*(?:`[^`]*`[^`]*)*$)", r"\\\1", " ".join(text.split())))


def escape(line: str) -> str:
    """Escape stars and bars outside of code, and separate code from the letters next to it."""
    pieces = re.split(r"(`[^`]*`)", line)
    pieces[::2] = [re.sub(r"(?<!\\)([*|])", r"\\\1", piece) for piece in pieces[::2]]
    return re.sub(r"(?<=`)\0(?=\w)", "\\ ", "\0".join(pieces)).replace("\0", "")


def code(text: str) -> str:
    """Return inline code; nothing if the text is empty."""
    return f":literal:`{text}`" if text else ""


def section(title: str, line: str = "-") -> str:
    """Return a heading."""
    return f"{title}\n{line * len(title)}\n\n"


def directive(name: str, options: Iterable[str] = (), body: Iterable[str] = ()) -> str:
    """Return a directive."""
    lines = [f".. {name}", *(f"   {line}" for line in options), ""]
    return "\n".join([*lines, *(f"   {line}" if line else "" for line in body), "", ""])


def contents(pages: Iterable[str]) -> str:
    """Return a hidden table of contents."""
    return directive("toctree::", [":hidden:"], [f"/{page}" for page in pages])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with a head."""
    cells = [cell for row in (head, *rows) for cell in enumerate(row)]
    lines = [f"{'  -' if column else '* -'} {text}" for column, text in cells]
    return directive("list-table::", [":header-rows: 1"], lines)


def first_line(value: Any) -> str:
    """Return the first sentence of a docstring."""
    text = inspect.cleandoc(getattr(value, "__doc__", None) or "").split("\n\n")[0]
    return re.split(r"(?<=\.)\s", " ".join(text.split()))[0]


# ---- API ----


def api_pages() -> Pages:
    """Return one page for each public module, and their index."""
    modules = public_modules()
    homes = _homes(modules)
    below = {module.__name__: [] for module in modules}
    for name in list(below)[1:]:
        below[name.rpartition(".")[0]].append(name)
    pages = {f"reference/{name}": _module_page(importlib.import_module(name), homes, below[name])
             for name in below}  # fmt: skip
    tops = sorted(["samegrad", *below["samegrad"]])
    found = [importlib.import_module(name) for name in tops]
    rows = [
        (
            f":doc:`{m.__name__} </reference/{m.__name__}>`",
            plain(first_line(m)),
            str(len(m.__all__)),
        )
        for m in found
    ]
    text = section("API", "=") + "Pages show full names. Programs say `import samegrad as tf`.\n\n"
    text += table(["module", "contents", "names"], rows)
    return pages | {"reference/api": text + contents(f"reference/{name}" for name in tops)}


def _homes(modules: Sequence[types.ModuleType]) -> dict[int, str]:
    """Return the name under which each object is documented."""
    found: dict[int, list[tuple[Any, str]]] = collections.defaultdict(list)
    for module in modules:
        for name in module.__all__:
            value, depth = getattr(module, name), module.__name__.count(".")
            other = getattr(value, "__name__", name) != name
            below = depth if depth or inspect.isclass(value) else 9  # math.abs rather than abs
            rank = (".keras" in module.__name__, other, below)
            found[_identity(value)].append((rank, f"{module.__name__}.{name}"))
    return {key: min(names, key=lambda name: name[0])[1] for key, names in found.items()}


def _identity(value: Any) -> int:
    return id(inspect.unwrap(value)) if callable(value) else id(value)


def _module_page(module: types.ModuleType, homes: dict[int, str], below: Sequence[str]) -> str:
    own, listed, documented = [], [], ""
    for name in sorted(module.__all__, key=str.lower):
        path, value = f"{module.__name__}.{name}", getattr(module, name)
        members = list(names_of(path, value))
        if not members or (home := homes[_identity(value)]) != path:
            listed.append((f":anchor:`{path}`", _described(value, home if members else "")))
            continue
        own.append(name)
        documented += _documented(members, homes)
    # The pages of the API and of Keras list their modules; a page more in the sidebar costs time.
    nested = below and module.__name__ not in ("samegrad", "samegrad.keras")
    text = ":orphan:\n\n" if ".keras." in module.__name__ else ""
    text += section(module.__name__, "=") + directive(f"automodule:: {module.__name__}")
    text += directive("autosummary::", [":nosignatures:"], own) if own else ""
    text += table(["also here" if own else "name", ""], listed) if listed else ""
    return text + documented + (contents(f"reference/{name}" for name in below) if nested else "")


def _described(value: Any, home: str) -> str:
    if home:
        return f"the same as `{home}`"
    if inspect.ismodule(value):
        return (
            f":doc:`module </reference/{value.__name__}>`" if is_ours(value.__name__) else "module"
        )
    of_type = inspect.isclass(value) or inspect.isroutine(value)
    return plain(first_line(value)) if of_type else code(repr(value)[:80])


def _documented(members: Sequence[PublicName], homes: dict[int, str]) -> str:
    """Return the directive of a function, or of a class with the members that are new in it."""
    path = members[0].name
    if members[0].kind != "class":
        return directive(f"autofunction:: {path}")
    members[0].value.__name__ = path.rpartition(".")[2]  # autodoc documents no aliases
    # Inverted: a static method may be a function of a module as well.
    names = [m.name for m in members[1:] if homes.setdefault(~id(m.value), m.name) == m.name]
    options = [f":members: {', '.join(name.rpartition('.')[2] for name in names)}"] * bool(names)
    bases = [homes[id(base)] for base in members[0].value.__mro__[1:] if id(base) in homes]
    body = [f"It has the members of `{bases[0]}`."] if bases else []
    return directive(f"autoclass:: {path}", [":undoc-members:", *options], ["", *body])


def escape_docstring(*event: Any) -> None:
    """Escape a docstring that napoleon has read: its markup is inline code and tables."""
    lines, in_code = event[-1], False
    # Napoleon takes the words before a colon for the type of the result.
    text = re.sub(r"^(\s*:returns: )\*(.+?)\* -- ", r"\1\2: ", "\n".join(lines), flags=re.MULTILINE)
    lines.clear()
    for number, piece in enumerate(re.split(r"((?:^\|.*\n)+)", text, flags=re.MULTILINE)):
        if number % 2:
            head, _, *rows = (line.strip("| ").split(" | ") for line in piece.splitlines())
            piece = table(head, [[plain(cell) for cell in row] for row in rows])
        for line in piece.splitlines():
            in_code = bool(line.strip()) and (in_code or line.lstrip().startswith(">>>"))
            lines.append(line if in_code or number % 2 else escape(line))


# ---- Commands, errors, ops, failure modes ----


def command_options() -> str:
    """Return the options of all commands."""
    from samegrad import cli

    commands = argparse.ArgumentParser(prog="samegrad").add_subparsers()
    cli._add_commands(commands)
    text = section("Command options", "=")
    text += "`samegrad COMMAND --help` prints them. Examples: :doc:`/commands`.\n\n"
    for name, command in commands.choices.items():
        command.formatter_class = lambda prog: argparse.HelpFormatter(prog, width=76)
        text += section(f"samegrad {name}") + f"{plain(command.description)}\n\n"
        usage = command.format_usage().rstrip().splitlines()
        text += directive("code-block:: text", body=usage) + directive(f"program:: samegrad {name}")
        formatter = command._get_formatter()
        for action in [action for action in command._actions if action.dest != "help"]:
            value = formatter._format_args(action, (action.dest or "").upper())
            flags = [f"{flag} {value}".strip() for flag in action.option_strings] or [value]
            words = plain(formatter._expand_help(action)) if action.help else ""
            text += directive(f"option:: {', '.join(flags)}", body=[words])
    return text


def errors() -> str:
    """Return the table of errors and warnings."""
    from samegrad import errors as module

    text = section("Errors", "=")
    text += "You can catch an error by any of its classes. Codes are TensorFlow's.\n\n"
    kinds = {name: getattr(module, name) for name in sorted(module.__all__)}
    rows = [
        (
            code(f"samegrad.errors.{name}"),
            ", ".join(code(base.__name__) for base in kind.__mro__[1:-2]),
            str(getattr(kind, "error_code", "")),
            plain(first_line(kind)),
        )
        for name, kind in kinds.items()
        if inspect.isclass(kind)
    ]
    return text + table(["class", "is also", "code", "meaning"], rows)


def ops() -> str:
    """Return the op table of the engine."""
    from samegrad import _core

    traits = ("differentiable", "backward", "elementwise", "collective", "may_raise", "random")
    text = section("Op table", "=")
    text += "A traced step consists of these ops. Public functions call them.\n\n"
    rows = []
    for op in _core.op_table():
        attributes = [attr["name"] if isinstance(attr, dict) else attr for attr in op["attrs"]]
        arguments = ", ".join(map(code, [*op["operands"], *attributes]))
        properties = ", ".join(trait.replace("_", " ") for trait in traits if op[trait])
        rows.append((code(op["name"]), arguments, plain(op["doc"]), properties))
    return text + table(["op", "operands, attributes", "meaning", "properties"], rows)


def failure_modes() -> str:
    """Return the doctor's catalogue."""
    from samegrad_doctor import CATALOGUE

    text = section("Failure modes", "=") + "The doctor tells these failure modes apart.\n\n"
    for mode in CATALOGUE:
        fixes = {name: mode.fix_for(name) for name in ("samegrad", "pytorch", "jax", "tensorflow")}
        text += section(mode.name) + f"{plain(mode.sentence)}\n\n"
        text += directive("code-block:: text", body=[mode.formula]) if mode.formula else ""
        text += "\n".join(f":{name}: {plain(fix)}" for name, fix in fixes.items()) + "\n\n"
    return text


# ---- Coverage, examples ----


def coverage() -> str:
    """Return what the tests compare with TensorFlow and Keras."""
    keras, tensorflow = TESTS / "keras_conformance", TESTS / "tf_conformance"
    names = _packed(keras / "keras_names.txt.xz")
    older, now = (sum(line.startswith(kind) for line in names) for kind in ("older", "now"))
    refused = len((keras / "keras_names_refused.txt").read_text("utf-8").split())
    suite = len(_packed(keras / "suite" / "passes_with_tensorflow.txt.xz"))
    failures = re.findall(
        r"^# (.+)\n((?:[^#\n].*\n?)+)",
        (keras / "suite" / "expected_failures.txt").read_text("utf-8"),
        re.MULTILINE,
    )
    failing = sum(tests.count("::test_") for _, tests in failures)
    answers = len(json.loads((tensorflow / "tensorflow_manners.json").read_text("utf-8")))
    different = len(decided.OURS) + len(decided.LACKING)
    public = (TESTS / "unit" / "cli" / "public_programs.md").read_text("utf-8")
    programs, running = re.findall(r"(\d+) programs: (\d+) run", public)[0]
    rows = [
        ("names of Keras 3", now, now),
        ("names of Keras 2 only; the others name a replacement", older, older - refused),
        ("tests of Keras that pass on TensorFlow", suite, suite - failing),
        ("programs with TensorFlow's recorded answer", answers, answers - different),
        (":doc:`public programs </public-programs>`", programs, running),
    ]
    text = section("Coverage", "=") + "The tests compare samegrad with TensorFlow and Keras.\n\n"
    text += table(
        ["compared", "number", "available or equal"], [tuple(map(str, row)) for row in rows]
    )
    text += section("Tests of Keras that fail")
    rows = [(plain(reason), str(tests.count("::test_"))) for reason, tests in failures]
    return text + table(["reason", "tests"], rows)


def _packed(file: pathlib.Path) -> list[str]:
    return lzma.decompress(file.read_bytes()).decode().splitlines()


def program_pages(programs: Programs) -> Pages:
    """Return a page for each program of a folder, and one that lists them."""
    titles = {"examples": "Examples", "doctor-examples": "Examples of the doctor", "jobs": "Jobs"}
    pages: Pages = {}
    for folder, files in programs.items():
        rows = []
        for file in files:
            name = f"{folder}/{file.stem}"
            tree = ast.parse(file.read_text("utf-8") if file.suffix == ".py" else "")
            docstring = (ast.get_docstring(tree) or "").split("\n\n")[0]
            included = directive(f"literalinclude:: /../{file.relative_to(ROOT)}")
            pages[name] = section(file.name, "=") + included
            rows.append((f":doc:`{file.name} </{name}>`", plain(docstring)))
        pages[folder] = section(titles[folder], "=") + table(["program", ""], rows)
        pages[folder] += contents(f"{folder}/{file.stem}" for file in files)
    return pages
