"""Elements that the engine makes alone, blocks of them without Python's lock."""

from __future__ import annotations

from typing import Any, NamedTuple

from samegrad import _core
from samegrad._tensor.host_values import HostCall
from samegrad._tensor.tensor import Tensor
from samegrad._tensor.text import Text
from samegrad.data._purity import Reads
from samegrad.data._structure import Structure, fill

# Where a component of a result comes from.
PROGRAM, HOST, CONSTANT = "program", "host", "constant"


class HostValues(NamedTuple):
    """Leaves of an element, and host functions' results, as inputs of programs."""

    leaves: list[Any]  # of an element like those to come
    calls: list[HostCall]  # the values behind the leaves, in their order
    native: list[tuple[Any, int] | None]  # of each call, the engine's function and its slot


class Results(NamedTuple):
    """Destination of the computed values."""

    entered: list[int]  # the slots that programs take
    programs: list[tuple[Any, Any]]  # (shape, dtype) of each argument, and the step
    components: list[tuple[str, Any]]
    template: Structure  # None: a tuple of the components


class Maker:
    """The engine's way to make elements of one kind.

    Args:
        engine: Makes the components of results of (position, values) each, or None.
        calls: What Python makes of an element's leaves, before; None where the engine does.
        flat: Whether elements are tuples of leaves; else they are one leaf.
        template: The structure of results; None: they are tuples of the components.
        reads: What the function has read of the outside.
    """

    def __init__(
        self, engine: _core.ElementMaker, calls: list[HostCall | None], flat: bool,
        template: Structure, reads: Reads,
    ) -> None:  # fmt: skip
        self._engine, self._template, self.reads = engine, template, reads
        self._calls = calls if any(calls) else []
        self._as_they_are = flat and not self._calls

    def made(self, seed: int, taken: list[tuple[int, Structure]]) -> list[Any]:
        """The results; None where Python has to make one."""
        given = taken if self._as_they_are else [(n, self._values(e)) for n, e in taken]
        found: list[Any] = self._engine.make(seed, given)
        if self._template is None:
            return found
        return [None if parts is None else fill(self._template, list(parts)) for parts in found]

    def _values(self, element: Structure) -> tuple[Any, ...]:
        values: list[Any] = list(element) if type(element) is tuple else [element]
        try:
            for host_call in self._calls:
                values.append(None if host_call is None else host_call.made(values))
        except Exception:  # which comes again, where Python makes the element
            return ()
        return tuple(values)


def maker_of(
    values: HostValues, results: Results, flat: bool, texts: set[int], reads: Reads
) -> Maker | None:
    """The engine's way, or None where it cannot make whole elements.

    Args:
        values: Of the host.
        results: What becomes of them.
        flat: As for `Maker`.
        texts: The slots of calls that give text, which the engine hands to its functions alone.
        reads: As for `Maker`.
    """
    if not all(map(_is_plain, values.leaves)):
        return None
    first = len(values.leaves)
    native = {first + n: found for n, found in enumerate(values.native) if found is not None}
    python = [None if first + n in native else call for n, call in enumerate(values.calls)]
    if any(call is not None and call.slots & set(native) for call in python):
        return None  # Python would have to wait for the engine
    if any(where is HOST and what in texts & set(native) for where, what in results.components):
        return None
    engine = _core.ElementMaker(
        [(leaf._dtype, leaf._shape) if type(leaf) is Tensor else None for leaf in values.leaves],
        first + len(values.calls),
        [(function, slot, to) for to, (function, slot) in native.items()],
        results.entered,
        [([(dtype, shape) for shape, dtype in key], step) for key, step in results.programs],
        results.components,
    )
    return Maker(engine, python, flat, results.template, reads)


def _is_plain(leaf: Any) -> bool:
    """Tell if the engine takes the leaf as a value: a tensor, or one string."""
    return type(leaf) is Tensor or (type(leaf) is Text and not leaf._rank)
