"""Sizes of a traced graph as ONNX computes them from the shapes of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from samegrad.export._builder import Builder
from samegrad.export._values import Ref, Value, slice_bounds

_ALL = 2**63 - 1


class Sizes:
    """Symbols of a traced graph.

    Args:
        builder: Where they are computed: before all else, once each.
        symbols: The graph's, as data.
        arguments: Source and value of each argument.
    """

    def __init__(self, builder: Builder, symbols: Any, arguments: Sequence[tuple[Any, Value]]):
        self._builder, self._symbols = builder, symbols
        self._arguments = arguments
        self._known: dict[str, Ref] = {}

    def is_input(self, name: str) -> bool:
        """Return whether a symbol counts examples."""
        return bool(self._symbols[int(name[1:])]["kind"] == "input")

    def of(self, size: int | str) -> Ref:
        """Return a size, an int64 vector of one element."""
        if not isinstance(size, str):
            return self._builder.integers([size])
        if size not in self._known:
            with self._builder.scope(self._builder.main):
                self._known[size] = self._computed(size, self._symbols[int(size[1:])])
        return self._known[size]

    def vector(self, sizes: Sequence[int | str]) -> Ref:
        """Return several sizes, an int64 vector."""
        if all(not isinstance(size, str) for size in sizes):
            return self._builder.integers([int(size) for size in sizes])
        return self._builder.op("Concat", *map(self.of, sizes), axis=0)

    def _computed(self, name: str, symbol: Any) -> Ref:
        b, kind = self._builder, symbol["kind"]
        if kind in ("input", "length"):
            return self._given(name)
        if kind == "size":
            return self.polynomial(symbol["size"])
        parts = [self.of(part) for part in symbol["parts"]]
        if kind == "quotient":
            return b.op("Div", parts[0], b.integers([symbol["range"][2]]))
        if kind == "slice":
            begin, end, step = symbol["range"]
            bounds = slice_bounds([begin], [end], [step])
            zero, one = b.constant(0, "int64"), b.constant(1, "int64")
            numbers = b.op("Range", zero, b.scalar(parts[0]), one)
            return b.op("Shape", b.op("Slice", numbers, *map(b.integers, (*bounds, [0], [step]))))
        return self._sum(parts)  # of several, or of all replicas, which are one

    def _sum(self, parts: Sequence[Ref]) -> Ref:
        total = parts[0]
        for part in parts[1:]:
            total = self._builder.op("Add", total, part)
        return total

    def polynomial(self, terms: Any) -> Ref:
        """Return a sum of products of symbols, an int64 vector of one element."""
        b = self._builder
        found = []
        for coefficient, factors in terms:
            term = b.integers([coefficient])
            for factor in factors:
                term = b.op("Mul", term, self.of(factor))
            found.append(term)
        return self._sum(found or [b.integers([0])])

    def _given(self, name: str) -> Ref:
        for source, value in self._arguments:
            axis, rows, symbol = source.get("examples", (None, None, None))
            if symbol == name and rows == 1:
                return self._builder.size_at(value, axis)
            if symbol == name and isinstance(rows, int):
                size = self._builder.size_at(value, axis)
                return self._builder.op("Div", size, self._builder.integers([rows]))
            if name in source["shape"]:
                return self._builder.size_at(value, source["shape"].index(name))
        raise AssertionError(f"no argument has the size {name}")


def value_of(symbols: Any, counts: dict[str, int], size: Any) -> int:
    """Return a polynomial of symbols for given counts, by the same rules in Python."""
    total = 0
    for coefficient, factors in size:
        term = coefficient
        for factor in factors:
            term *= _count(symbols, counts, factor)
        total += term
    return total


def _count(symbols: Any, counts: dict[str, int], name: str) -> int:
    symbol = symbols[int(name[1:])]
    kind = symbol["kind"]
    if kind in ("input", "length"):
        return counts[name]
    if kind == "size":
        return value_of(symbols, counts, symbol["size"])
    parts = [_count(symbols, counts, part) for part in symbol["parts"]]
    if kind == "quotient":
        return int(parts[0] // symbol["range"][2])
    if kind == "slice":
        begin, end, step = symbol["range"]
        absent = (_ALL, -_ALL - 1)
        first, last = (None if n in absent else n for n in (begin, end))
        return len(range(parts[0])[first:last:step])
    return sum(parts)
