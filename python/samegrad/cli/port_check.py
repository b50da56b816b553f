"""`samegrad port-check`: which names of a TensorFlow program samegrad lacks."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from samegrad._base.shown import did_you_mean
from samegrad._surface.missing_names import explain, look_up
from samegrad.cli._errors import CommandError
from samegrad.cli._port_scan import AVERAGE, BACKEND, COMPUTE, KERAS_FIRST, Use, scan
from samegrad.cli._port_sources import read

_RESOLVER = "distribute.cluster_resolver.TPUClusterResolver"
_NO_TPU = (
    "it raises ValueError, as there is no TPU: use distribute.MirroredStrategy(replicas=8), or "
    "catch the error"
)
_VERSION = "samegrad counts its versions on its own: leave the comparison out"
_OF_KERAS = {
    KERAS_FIRST: "Keras chooses its backend there: import samegrad above it",
    BACKEND: "Keras runs on samegrad where nothing else is chosen: leave it out",
}
EXIT_COMPLETE = 0
EXIT_MISSING = 1


@dataclass(frozen=True)
class Missing:
    """A name that is not there.

    Attributes:
        place: File and line; in notebooks the cell (of code, from 1) and its line.
        name: With `tf.`; of an argument `tf.function(argument=)`. Functions of the program without.
        remedy: What is there instead, or why nothing is.
    """

    place: str
    name: str
    remedy: str

    def __str__(self) -> str:
        end = "" if self.remedy.endswith("?") else "."
        return f"{self.place}: {self.name}: {self.remedy}{end}"


def run(paths: Sequence[str]) -> int:
    """Print a line per missing name, and a summary.

    Args:
        paths: Python files and notebooks. They are read, not run.

    Returns:
        0 nothing is missing, 1 something is.

    Raises:
        OSError: A file cannot be read.
        CommandError: One is neither Python nor a notebook.
    """
    programs = [_uses(path) for path in paths]
    missing = [found for uses in programs for found in missing_names(uses)]
    looked_up = {(use.path, use.keyword) for uses in programs for use in uses}
    for found in missing:
        print(found)
    if missing:
        print(f"{_count(len({found.name for found in missing}))} missing of {len(looked_up)}.")
        return EXIT_MISSING
    if looked_up:
        names = len(looked_up)
        print(
            f"Nothing is missing of {_count(names)}; objects are followed from where they are made."
        )
    else:
        print("No name of TensorFlow is used.")
    return EXIT_COMPLETE


def _uses(path: str) -> list[Use]:
    try:
        return scan(read(path))
    except RecursionError as error:
        raise CommandError(
            f"[port-check] statements must not be nested hundreds of levels deep: {path}. Split "
            "the longest chain of elif or of calls."
        ) from error


def _count(names: int) -> str:
    return "1 name" if names == 1 else f"{names} names"


def missing_names(uses: Iterable[Use]) -> list[Missing]:
    r"""Those of the uses whose name or argument does not exist, each once per line.

    Example:
        >>> import ast
        >>> from samegrad.cli._port_sources import Piece
        >>> program = ast.parse("import tensorflow as tf\ntf.Variable(1.0, nam='v')")
        >>> print(*missing_names(scan([Piece("a.py", None, program)])))
        a.py:2: tf.Variable(nam=): did you mean 'name'?
    """
    found = []
    for use in uses:
        place = use.piece.place(use.line)
        there, rest = look_up(use.path)
        if use.path.startswith("__version__."):
            found.append(Missing(place, "tf.__version__", _VERSION))
        elif use.path in _OF_KERAS:
            found.append(Missing(place, use.path, _OF_KERAS[use.path]))
        elif use.path in (AVERAGE, COMPUTE):
            found.append(Missing(place, use.path, explain(use.path)))
        elif use.path in (_RESOLVER, f"{_RESOLVER}.connect") and not use.falls_back:
            found.append(Missing(place, f"tf.{_RESOLVER}", _NO_TPU))
        elif rest and use.keyword is None:
            name = _until_a_class(use.path, len(rest))
            found.append(Missing(place, f"tf.{name.replace('()', '')}", explain(name)))
        elif not rest and use.keyword is not None:
            known = _keywords(there)
            if known is not None and use.keyword not in known:
                name = f"tf.{use.path.replace('()', '')}({use.keyword}=)"
                found.append(Missing(place, name, _nearest(use.keyword, known)))
    return list(dict.fromkeys(found))


def _until_a_class(path: str, missing: int) -> str:
    """The name up to its first missing class or constant: what follows is that one's attribute."""
    parts = path.split(".")
    for end in range(len(parts) - missing, len(parts)):
        if parts[end][:1].isupper():
            return ".".join(parts[: end + 1])
    return path


def _nearest(keyword: str, known: Sequence[str]) -> str:
    near = did_you_mean(keyword, known)
    return near or f"there is no such argument: it takes {', '.join(known) or 'none'}"


def _keywords(thing: Any) -> list[str] | None:
    """Return the keyword arguments of a function or class; None for any, or without a signature."""
    if not isinstance(thing, type):
        names, takes_more = _parameters(thing) if callable(thing) else ([], True)
        return None if takes_more else names
    names = []
    further = getattr(thing, "_further_arguments", None)  # those of its **kwargs
    for kind in thing.__mro__:  # **kwargs are the arguments of the next class
        if kind is not object and "__new__" in vars(kind) and "__init__" not in vars(kind):
            given, takes_more = _parameters(vars(kind)["__new__"].__func__)
            if not takes_more:
                return [name for name in given if name != "cls"]
        if "__init__" in vars(kind):
            own, takes_more = _parameters(vars(kind)["__init__"])
            names += [name for name in own if name not in names]
            if not takes_more:
                return [*names, *(further or ())]
            names += _taken_out(vars(kind)["__init__"])
        if kind.__name__ == "Model":  # of the functional API
            names += ["inputs", "outputs", "name"]
    return None if further is None else [*names, *further]


def _taken_out(function: Any) -> list[str]:
    """Return the older names that a function still takes in its **kwargs."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    texts = [text for text in code.co_consts if isinstance(text, str)] if code else []
    return [text for text in texts if text.isidentifier()]


def _parameters(function: Any) -> tuple[list[str], bool]:
    """Return names that a call may give, and True if it may also give others."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C++
        return [], True
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    names = [p.name for p in parameters if p.kind in named and p.name != "self"]
    return names, any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
