"""From a traced graph as data to the nodes of a format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from samegrad.export import _control, _elementwise, _indexing, _movement, _reductions, _windows
from samegrad.export._builder import Builder, Scope
from samegrad.export._sizes import Sizes, value_of
from samegrad.export._table import REFUSED, Call, Target
from samegrad.export._values import Dim, Missing, Ref, RefusedError, Value

_ROWS_OF = (_control, _elementwise, _indexing, _movement, _reductions, _windows)
# Counts of examples and lengths for which guards are tried.
_TRIED = (1, 2, 3, 4, 5, 7, 8, 16, 31, 64, 1000)
_OPPOSITES = {"== 0": "Equal", "!= 0": "Equal", "< 0": "Less", "<= 0": "LessOrEqual",
              "> 0": "Greater", ">= 0": "GreaterOrEqual"}  # fmt: skip


class OpenSizeError(ValueError):
    """Error: an operation of the program needs a size that the signature leaves open."""


class Port(NamedTuple):
    """Input or output of a program; an open size is a name or None."""

    name: str
    dtype: str
    shape: list[Dim]


class Program(NamedTuple):
    """Nodes of a whole model.

    Attributes:
        nodes: They name the inputs, the outputs, the arrays and each other.
        inputs: In the order of the signature.
        outputs: In the order of the results.
        arrays: Elements and dtype of each weight, by its name.
    """

    nodes: Scope
    inputs: list[Port]
    outputs: list[Port]
    arrays: dict[str, Any]


class Converter:
    """Model of one program.

    Args:
        graph: The graph, as data.
        arrays: The elements of its constants.
        variables: The elements of its variables; None: a requirement of the program.
        inputs: The names of its inputs.
        outputs: The numbers of the results by their names.
        line: The user's line of an operation, by its name.
        target: The format.
    """

    def __init__(
        self, graph: Any, arrays: Sequence[Any], variables: Sequence[Any], inputs: Sequence[str],
        outputs: dict[str, int], line: Callable[[str], str], target: Target,
    ) -> None:  # fmt: skip
        self._graph, self._arrays, self._variables = graph, arrays, variables
        self._inputs, self._outputs = list(inputs), outputs
        self._line, self._target = line, target
        self._builder = Builder(target.format, target.opset, {*inputs, *outputs})
        self._shared: dict[Any, Value] = {}
        self._outermost = ""  # operation whose body is converted
        main = graph["sources"]
        found = [(one, self._input(one)) for one in main if "argument" in one]
        self._given = {one["argument"]: value for one, value in found}
        self._sizes = Sizes(self._builder, graph["symbols"], found)

    def program(self) -> Program:
        """Return the nodes, inputs, outputs and weights."""
        b = self._builder
        arguments = [self._given.get(at) for at in range(self._graph["arguments"])]
        results = self._run(self._graph, arguments)
        self._check_updates()
        named = []
        checked = self._guards()
        for name, index in self._outputs.items():
            value = results[index]
            ref = self._guarded(b.plain(value), value, checked)
            b.emit("Identity", [ref], [Ref(name, value.dtype)])
            named.append(self._port(name, value.dtype, value.shape))
        inputs = [
            self._port(self._inputs[one["argument"]], one["dtype"], self._dims(one))
            for one in sorted(
                (one for one in self._graph["sources"] if "argument" in one),
                key=lambda one: one["argument"],
            )
        ]
        return Program(b.main, inputs, named, b.initializers)

    # ---- sources ----

    def _dims(self, source: Any) -> list[Dim]:
        axis, rows, symbol = source.get("examples", (None, None, None))
        return [
            (symbol if rows == 1 else None) if at == axis else size
            for at, size in enumerate(source["shape"])
        ]

    def _input(self, source: Any) -> Value:
        ref = Ref(self._inputs[source["argument"]], source["dtype"])
        return Value(ref.dtype, tuple(self._dims(source)), ref, None, None, self._builder.main)

    def _array(self, key: Any, array: Any, dtype: str) -> Value:
        if key not in self._shared:
            shape = tuple(int(size) for size in array.shape)
            self._shared[key] = Value(dtype, shape, None, None, array, self._builder.main)
        return self._shared[key]

    def _source(self, source: Any, arguments: Sequence[Any]) -> Any:
        if "argument" in source:
            return arguments[source["argument"]]
        if "constant" in source:
            number = source["constant"]
            return self._array(("constant", number), self._arrays[number], source["dtype"])
        slot = source["variable"]
        if self._variables[slot] is None:
            return Missing("it reads a check of the program")
        return self._array(("variable", slot), self._variables[slot], source["dtype"])

    # ---- nodes ----

    def _run(self, graph: Any, arguments: Sequence[Any]) -> list[Any]:
        values: list[Any] = [self._source(one, arguments) for one in graph["sources"]]
        needed = _needed(graph)
        for node in graph["nodes"]:
            first = len(values)
            if needed.isdisjoint(range(first, first + node["results"])):
                values += [None] * node["results"]
                continue
            values += self._converted(node, [values[index] for index in node["inputs"]])
        return [values[index] for index in graph["outputs"]]

    def _converted(self, node: Any, inputs: list[Any]) -> list[Any]:
        name = node["operation"]
        outer, self._outermost = self._outermost, self._outermost or name
        self._builder.location = name
        try:
            if name not in self._target.rows:
                reason = REFUSED.get(name, "it has no row in the table of {format}")
                raise RefusedError(reason.format(format=self._target.format))
            regions = [_region(self._run, body) for body in node.get("regions", [])]
            call = Call(
                self._builder, self._sizes, inputs, node.get("attributes", {}), regions,
                node["results"],
            )  # fmt: skip
            found = self._target.rows[name](call)
        except RefusedError as error:
            line = self._line(name) or self._line(self._outermost)
            raise NotImplementedError(
                f"[{self._target.function}] the operation {name!r} cannot be exported, as "
                f"{error}{line}; leave it out of functions that are exported."
            ) from None
        self._outermost = outer
        results = list(found) if isinstance(found, list) else [found]
        missing = Missing(f"{self._target.format} lacks this result")
        return results + [missing] * (node["results"] - len(results))

    def _check_updates(self) -> None:
        """Refuse updates of variables that the results follow from, as a model has no state."""
        needed = _needed(self._graph)
        read = {one["variable"] for at, one in enumerate(self._graph["sources"])
                if "variable" in one and at in needed}  # fmt: skip
        for slot, _ in [*self._graph["writes"], *self._graph["rereads"]]:
            if self._variables[slot] is not None and slot in read:
                raise NotImplementedError(
                    f"[{self._target.function}] an exported function assigns no variables that it "
                    f"reads: got an update of {self._graph['variables'][slot]!r}; export the "
                    "inference of the model."
                )

    # ---- guards ----

    def _guards(self) -> list[Ref]:
        """Return a 1 for each guard that not all sizes meet, and an error at its run otherwise."""
        b, symbols = self._builder, self._graph["symbols"]
        free = [f"s{at}" for at, one in enumerate(symbols) if one["kind"] in ("input", "length")]
        found = []
        for guard in self._graph["guards"]:
            self._check_open(guard, free)
            if all(_holds(guard, value_of(symbols, counts, guard["size"]))
                   for counts in _tried(free)):  # fmt: skip
                continue
            size = b.scalar(self._sizes.polynomial(guard["size"]))
            relation, zero = guard["relation"], b.constant(0, "int64")
            holds = b.op(_OPPOSITES[relation], size, zero, dtype="bool")
            if relation == "!= 0":
                holds = b.op("Not", holds)
            b.location = f"sizes must meet: {relation} at {guard['line']}"
            index = b.op("Where", holds, zero, b.constant(1, "int64"), dtype="int64")
            found.append(b.op("Gather", b.integers([1]), index, axis=0))
        return found

    def _check_open(self, guard: Any, free: Sequence[str]) -> None:
        """Refuse a length that the trace took to be a certain number.

        Raises:
            OpenSizeError: The guard holds for one length only.
        """
        symbols, size = self._graph["symbols"], guard["size"]
        if guard["relation"] != "== 0":
            return
        base = dict.fromkeys(free, 7)
        at = value_of(symbols, base, size)
        ours = [name for name in free if value_of(symbols, {**base, name: 1000}, size) != at]
        if len(ours) != 1:
            return
        found = [n for n in range(2000) if value_of(symbols, {**base, ours[0]: n}, size) == 0]
        if len(found) <= 1:
            raise OpenSizeError(
                f"[{self._target.function}] an operation needs the size of an axis when it is "
                f"traced: got an open size ({guard['line']}); give input_signature with that size."
            )

    def _guarded(self, ref: Ref, value: Value, checked: list[Ref]) -> Ref:
        b = self._builder
        for one in checked:
            sizes = b.op("Mul", b.op("Shape", ref, dtype="int64"), one)
            ref = b.op("Reshape", ref, sizes, allowzero=1)
        return ref

    # ---- names ----

    def _port(self, name: str, dtype: str, shape: Sequence[Dim]) -> Port:
        sizes = [self._dim_name(size) if isinstance(size, str) else size for size in shape]
        return Port(name, dtype, sizes)

    def _dim_name(self, symbol: str) -> str:
        symbols = self._graph["symbols"]
        kind = symbols[int(symbol[1:])]["kind"]
        stem = {"input": "batch", "length": "length"}.get(kind, "size")
        same = [at for at, one in enumerate(symbols) if one["kind"] == kind]
        index = same.index(int(symbol[1:]))
        return stem if index == 0 and kind in ("input", "length") else f"{stem}_{index}"


def _region(run: Any, body: Any) -> Callable[..., list[Any]]:
    return lambda arguments: list(run(body, arguments))


def _needed(graph: Any) -> set[int]:
    """Return the numbers of the values that the results follow from."""
    needed = set(graph["outputs"])
    end = len(graph["sources"]) + sum(node["results"] for node in graph["nodes"])
    for node in reversed(graph["nodes"]):
        start = end - node["results"]
        if not needed.isdisjoint(range(start, end)):
            needed.update(node["inputs"])
        end = start
    return needed


def _tried(free: Sequence[str]) -> Iterator[dict[str, int]]:
    """Yield counts of all free symbols: equal ones, and all pairs of the first two."""
    for number in _TRIED:
        yield dict.fromkeys(free, number)
        for name in free:
            for other in _TRIED:
                yield {**dict.fromkeys(free, number), name: other}


def _holds(guard: Any, number: int) -> bool:
    relations = {
        "== 0": number == 0, "!= 0": number != 0, "< 0": number < 0, "<= 0": number <= 0,
        "> 0": number > 0, ">= 0": number >= 0,
    }  # fmt: skip
    return relations[guard["relation"]]


def line_finder(text: str) -> Callable[[str], str]:
    """Return a function from an operation's name to its line in the user's program.

    Args:
        text: The printed trace.
    """

    def find(name: str) -> str:
        found = re.search(rf"= {re.escape(name)}\(.*# (.+)$", text, re.MULTILINE)
        return f" ({found.group(1)})" if found else ""

    return find
