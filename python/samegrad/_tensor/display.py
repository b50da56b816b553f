"""Text and HTML of tensors, values per replica and specs, for terminals and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from samegrad._base.shown import shown
from samegrad._core import Tensor

_MOST = 8  # rows, columns, replicas; of more, the first and the last are shown
_FIRST, _LAST = 4, 3
_MOST_LINES = 6  # of one component
_ELEMENTS = 32  # from which on NumPy abbreviates a component


def ends(count: int) -> list[int | None]:
    """Return the positions to show of `count`: all, or the first and the last around None.

    Example:
        >>> ends(3), ends(20)
        ([0, 1, 2], [0, 1, 2, 3, None, 17, 18, 19])
    """
    if count <= _MOST:
        return [*range(count)]
    return [*range(_FIRST), None, *range(count - _LAST, count)]


def per_replica_text(values: Sequence[Any]) -> str:
    """Return the `repr` of the components of a value per replica, abbreviated as by NumPy."""
    with np.printoptions(threshold=_ELEMENTS, edgeitems=2):
        lines = ["  ..." if i is None else f"  {i}: {_cut(repr(values[i]))}"
                 for i in ends(len(values))]  # fmt: skip
    return "\n".join(["PerReplica:{", *lines, "}"])


def _cut(text: str, most: int = _MOST_LINES) -> str:
    lines = text.split("\n")
    if len(lines) > most:
        lines = [*lines[: most - 3], " ...", *lines[-2:]]
    return "\n".join(lines)


def table(title: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return an HTML table of texts, which are escaped.

    Example:
        >>> table("x < y", [], [["1", "2"]])
        '<div>x &lt; y<table><tr><td>1</td><td>2</td></tr></table></div>'
    """
    lines = [("th", head), *(("td", row) for row in rows)]
    cells = ["".join(f"<{tag}>{escape(text)}</{tag}>" for text in line) for tag, line in lines]
    body = "".join(f"<tr>{line}</tr>" for line in cells if line)
    return f"<div>{escape(title)}<table>{body}</table></div>"


def tensor_html(tensor: Tensor) -> str:
    """Return a tensor as a notebook shows it: a table of a matrix, text of other ranks."""
    if not tensor._made or tensor._symbolic:
        return f"<pre>{escape(repr(tensor))}</pre>"
    array = tensor._view()
    title = f"samegrad.Tensor: shape={array.shape}, dtype={tensor._dtype}"
    if array.ndim != 2 or not array.size:
        with np.printoptions(threshold=_ELEMENTS, edgeitems=2):
            return f"<div>{escape(title)}<pre>{escape(_cut(str(array), 20))}</pre></div>"
    columns = ends(array.shape[1])
    rows = [
        ["..." if row is None or column is None else _number(array[row, column])
         for column in columns]
        for row in ends(array.shape[0])
    ]  # fmt: skip
    return table(title, [], rows)


def _number(value: Any) -> str:
    exact = value.dtype == bool or np.issubdtype(value.dtype, np.integer)
    return str(value) if exact else f"{value:.6g}"


def per_replica_html(values: Sequence[Any]) -> str:
    """Return a value per replica as a notebook shows it: a row for each replica."""
    head = ["replica", "shape", "dtype", "values"]
    rows = [["..."] * 4 if i is None else [str(i), *_summary(values[i])] for i in ends(len(values))]
    return table(f"PerReplica: {len(values)} replicas", head, rows)


def _summary(value: Any) -> tuple[str, str, str]:
    """Return shape, dtype and values of a component, in one line each."""
    if not isinstance(value, Tensor):
        return "", type(value).__name__, shown(value)
    if value._symbolic:
        return str(value.shape), str(value._dtype), "traced"
    with np.printoptions(threshold=_MOST, edgeitems=2):
        text = " ".join(str(value._view()).split())
    return (
        str(tuple(value._shape)),
        str(value._dtype),
        text if len(text) < 80 else text[:77] + "...",
    )


def specs_html(title: str, spec: Any) -> str:
    """Return the specs of a structure as a notebook shows them: a row for each component."""
    rows = [
        [path, str(getattr(leaf, "shape", "")), getattr(leaf, "dtype", leaf)]
        for path, leaf in _components(spec, "element")
    ]
    return table(title, ["component", "shape", "dtype"], [[str(x) for x in row] for row in rows])


def _components(spec: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(spec, Mapping):
        for key, part in spec.items():
            yield from _components(part, f"{path}[{key!r}]")
    elif type(spec) is tuple or hasattr(spec, "_fields"):
        for position, part in enumerate(spec):
            yield from _components(part, f"{path}[{position}]")
    else:
        yield path, spec


__all__ = ["ends", "per_replica_html", "per_replica_text", "specs_html", "table", "tensor_html"]
