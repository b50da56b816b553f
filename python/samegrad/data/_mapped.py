"""A user's function of elements: run by Python, or, where that gives the same, by the engine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from samegrad import _core
from samegrad._context import state as _context
from samegrad._control.requirements import check_all
from samegrad._function.function import BoundFunction, Function
from samegrad._function.trace import TracedProgram
from samegrad._tensor.complex_tensor import is_complex, to_complex
from samegrad._tensor.host_values import HostCall, HostCalls, HostTensor, HostText, NotRecordedError
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad._tensor.text import Text, is_text, text_of
from samegrad.data._makers import (
    CONSTANT,
    HOST,
    PROGRAM,
    HostValues,
    Maker,
    Results,
    maker_of,
)
from samegrad.data._purity import NotPureError, Reads
from samegrad.data._random import data_function
from samegrad.data._structure import Structure, fill, is_made, leaves_of, map_leaves

# How many elements of one kind Python makes before a program is made for the others.
_FIRST_BY_PYTHON = 8
# How many elements of a new program are made by Python as well, and compared.
_COMPARED = 2
# Programs of one function: of decoded images of other sizes, say.
_MOST_PROGRAMS = 8
# How often it is traced again because what it reads of the outside has changed.
_MOST_CHANGES = 3


def to_element(value: Any, who: str) -> Structure:
    """Convert a user function's result to tensors as leaves; data is copied."""

    def to_leaf(leaf: Any) -> Any:
        if is_made(leaf):
            return leaf
        try:
            if is_text(leaf):
                return text_of(leaf, who)
            if is_complex(leaf):
                return to_complex(leaf, who)
            return convert_to_tensor(leaf)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"[{who}] elements are tensors, arrays, numbers, or tuples and dicts of them: got "
                f"{type(leaf).__name__} {leaf!r:.80}."
            ) from error

    if type(value) is tuple and all(type(leaf) is Tensor for leaf in value):
        return value
    if value is None:
        raise TypeError(
            f"[{who}] elements are tensors, arrays, numbers, or tuples and dicts of them: got "
            "NoneType; the function must return something."
        )
    return map_leaves(to_leaf, value)


def call(function: Callable[..., Any], element: Structure) -> Any:
    """function(element), a tuple as several arguments."""
    try:
        return function(*element) if type(element) is tuple else function(element)
    except StopIteration as error:
        raise RuntimeError("[Dataset] the function raised StopIteration.") from error


def by_python(
    function: Callable[..., Any], seed: int, position: int, element: Structure
) -> Structure:
    """The function's element for the one of that number; it draws by seed and number."""
    with data_function(seed, position):
        found = call(function, element)
        # A list of results has as many components, as in TensorFlow; deeper ones are stacked.
        return to_element(tuple(found) if isinstance(found, list) else found, "Dataset.map")


class MappedFunction:
    """A function of `Dataset.map`.

    The first elements are made by Python. If the function does nothing but compute (`Reads`), it
    is traced then, once for each kind of elements: calls of the host's functions, for text and
    files, and a program of the engine. Where the engine has all of those functions, too, it makes
    elements without Python and its lock, so that threads work side by side. Elements have the same
    bits in any way, their draws too; where an element fails, Python makes it, for the error that
    belongs to it.

    Args:
        function: The user's. Of a `tf.function`, whose steps would sample by themselves, the
            function that it decorates.
        by_python: Whether Python makes all elements: those that are batches.

    Attributes:
        python: The user's function.
        why_python: Why Python makes all elements; None: it does not, or nobody knows yet.
    """

    def __init__(self, function: Callable[..., Any], by_python: bool = False) -> None:
        self.python = _undecorated(function)
        self._reads: Reads | None = None
        self._changes = 0
        self._kinds: dict[Any, _Kind] = {}
        self._maker: Maker | None = None
        self._making = threading.Lock()
        self.why_python = "the elements are batches" if by_python else None

    @property
    def program_count(self) -> int:
        """Return the number of programs that compute elements; 0 if Python does."""
        kinds = [] if self.why_python else self._kinds.values()
        return sum(len(kind.programs) for kind in kinds if not kind.by_python)

    def by_engine(self, seed: int, taken: list[tuple[int, Structure]]) -> list[Any]:
        """The elements for those of these numbers that the engine alone makes; None for others."""
        maker = self._maker
        if maker is None or not _programs_run() or not maker.reads.still_hold():
            return [None] * len(taken)
        return maker.made(seed, taken)

    def __call__(self, seed: int, position: int, element: Structure) -> Structure:
        """The element that the user's function makes of the one of that number."""
        if self._maker is not None:
            (made,) = self.by_engine(seed, [(position, element)])
            if made is not None:
                return made
        return self.with_python(seed, position, element)

    def with_python(self, seed: int, position: int, element: Structure) -> Structure:
        """The same, for elements that the engine alone does not make."""
        if self.why_python is None:
            kind, reads = self._kind_of(element), self._reads
            if kind.ready and reads is not None and reads.still_hold():
                made = self._by_program(kind, reads, seed, position, element)
                if made is not None:
                    return made
            elif not kind.by_python:
                self._count(kind, element)
        return by_python(self.python, seed, position, element)

    def _kind_of(self, element: Structure) -> _Kind:
        flat = type(element) is tuple
        parts = element if flat else (element,)
        key: Any = tuple([_signature(part) for part in parts])
        if None in key:  # nested
            flat, shape = False, map_leaves(lambda _: 0, element)
            key = repr(shape), *[_signature(part) or type(part) for part in leaves_of(element)]
        known = self._kinds.get((flat, key))
        if known is None:
            known = self._kinds.setdefault((flat, key), _Kind(flat))
            known.by_python = len(self._kinds) > _MOST_PROGRAMS
        return known

    def _count(self, kind: _Kind, element: Structure) -> None:
        kind.seen += 1
        if kind.seen > _FIRST_BY_PYTHON and self._making.acquire(blocking=False):
            try:
                if kind.ready and self._reads is not None and not self._reads.still_hold():
                    self._forget()
                elif not kind.ready:
                    self._make(kind, element)
            finally:
                self._making.release()

    def _forget(self) -> None:
        """Drop the programs, because a value that the function reads has changed."""
        self._changes += 1
        self._reads, self._kinds, self._maker = None, {}, None
        if self._changes > _MOST_CHANGES:
            self.why_python = "what it reads of the outside changes"

    def _make(self, kind: _Kind, element: Structure) -> None:
        try:
            if self._reads is None:
                self._reads = Reads(self.python)
            kind.begin(_Recording(self.python, element))
        except NotPureError as reason:
            self.why_python = str(reason)
        except Exception as reason:  # whatever it is, Python raises it when it computes the element
            kind.by_python, kind.why = True, f"{type(reason).__name__}: {reason}"

    def _by_program(
        self, kind: _Kind, reads: Reads, seed: int, position: int, element: Structure
    ) -> Structure | None:
        if not _programs_run():
            return None
        try:
            values = kind.host_values(element)
            program = kind.program_for(values)
            if program is None:
                self._add(kind, element, values)
                return None
            made = program.run(seed, position, values)
        except Exception:  # Python says what is wrong, with the same element
            return None
        if program.compared < _COMPARED:
            expected, draws = _with_draws(self.python, seed, position, element)
            if draws != program.draws or not _same(made, expected):
                kind.by_python, kind.ready = True, False
                kind.why, self._maker = "a traced element differs", None
            program.compared += 1
            return expected
        if not program.offered:
            program.offered = True
            self._maker = kind.maker(element, reads) or self._maker
        return made

    def _add(self, kind: _Kind, element: Structure, values: list[Any]) -> None:
        """Count an element whose host's values have shapes that no program is for."""
        if kind.is_due(values) and self._making.acquire(blocking=False):
            try:
                kind.add(_Recording(self.python, element))
            except Exception as reason:
                kind.by_python, kind.ready = True, False
                kind.why = f"{type(reason).__name__}: {reason}"
            finally:
                self._making.release()


def _undecorated(function: Any) -> Any:
    decorated = isinstance(function, Function | BoundFunction)
    return function.python_function if decorated and not function.input_signature else function


def _programs_run() -> bool:
    return not (_context.settings.functions_run_eagerly or _core.checks_numerics())


class _Kind:
    """Elements of one structure, shapes and dtypes.

    Attributes:
        flat: Whether they are tuples of tensors and text.
        seen: How many there were before there was a program.
        ready: Whether there are programs.
        by_python: Whether Python makes them all; `why` says the reason.
        calls: Of the host's functions, for each element.
        programs: By shapes and dtypes of what the host gives them.
    """

    def __init__(self, flat: bool) -> None:
        self.flat = flat
        self.seen = 0
        self.ready = self.by_python = False
        self.why = ""
        self.calls: list[HostCall] = []
        self.programs: dict[Any, _Program] = {}
        self._native: list[tuple[Any, int] | None] = []
        self._texts: set[int] = set()  # the slots of calls that give text
        self._entered: list[int] = []
        self._missed: dict[Any, int] = {}

    def begin(self, recording: _Recording) -> None:
        self.calls, self._native = recording.calls, recording.native
        self._texts = recording.texts
        self._entered = recording.entered
        self.programs = {self._key(recording.values): recording.program}
        self.ready = True

    def host_values(self, element: Structure) -> list[Any]:
        """The element's leaves, and what the host's functions make of them."""
        values = list(element) if self.flat else leaves_of(element)
        for host_call in self.calls:
            values.append(host_call.made(values))
        return values

    def program_for(self, values: list[Any]) -> _Program | None:
        return self.programs.get(self._key(values))

    def is_due(self, values: list[Any]) -> bool:
        key = self._key(values)
        count = self._missed[key] = self._missed.get(key, 0) + 1
        if len(self._missed) > 4 * _MOST_PROGRAMS:  # as good as all are different
            self.by_python, self.ready, self.why = True, False, "decoded sizes differ"
        return count > _FIRST_BY_PYTHON and len(self.programs) < _MOST_PROGRAMS

    def add(self, recording: _Recording) -> None:
        if recording.calls != self.calls or recording.entered != self._entered:
            raise NotRecordedError("the calls of the host's functions depend on sizes")
        self.programs[self._key(recording.values)] = recording.program

    def maker(self, element: Structure, reads: Reads) -> Maker | None:
        """The engine's way to make elements like this one; None: Python has to take part."""
        checked = [(k, p) for k, p in self.programs.items() if p.runs_without_python]
        if not checked:
            return None
        first = checked[0][1]
        programs = [(k, p.step) for k, p in checked if p.gives_what(first)]
        values = HostValues(list(element) if self.flat else [element], self.calls, self._native)
        results = Results(self._entered, programs, first.places, first.template)
        return maker_of(values, results, self.flat, self._texts, reads)

    def _key(self, values: list[Any]) -> Any:
        return tuple([(values[n]._shape, values[n]._dtype) for n in self._entered])


class _Recording:
    """Trace of a function's call with one element."""

    def __init__(self, function: Callable[..., Any], element: Structure) -> None:
        self._function, self._element = function, element
        self._places: list[tuple[str, Any]] = []
        self._outputs: list[Tensor] = []
        self._template: Structure = None
        with _context.changed(strategy=None, replica_context=None):
            program = TracedProgram(self._traced, (), {}, 1)
        if program.fixed or program.has_lengths:
            raise NotRecordedError("there is no program of fixed sizes")
        self.program = _Program(program, self.entered, self._places, self._template, self._draws)

    def _traced(self) -> list[Tensor]:
        trace = _core.current_trace()
        trace.draw_as_data()
        host = HostCalls(trace)
        given = map_leaves(host.given, self._element)
        found = call(self._function, given)
        found = tuple(found) if isinstance(found, list) else found
        made = found if isinstance(found, HostText | HostTensor) else map_leaves(_to_leaf, found)
        self._template = made
        self._places = [self._place(host, leaf) for leaf in leaves_of(made)]
        self._draws = trace.data_draws
        self.calls, self.native = host.calls, host.native
        self.entered, self.values = host.entered, host.values
        called = range(len(host.values) - len(host.calls), len(host.values))
        self.texts = {n for n in called if type(host.values[n]) is Text}
        return self._outputs

    def _place(self, host: HostCalls, leaf: Any) -> tuple[str, Any]:
        slot = host.slot_of(leaf)
        if slot is not None:
            return HOST, slot
        if isinstance(leaf, Text) or (type(leaf) is Tensor and not leaf._symbolic):
            return CONSTANT, leaf
        if type(leaf) is not Tensor or leaf._example_axis is not None:
            raise NotRecordedError(f"{type(leaf).__name__} is not a plain tensor")
        self._outputs.append(leaf)
        return PROGRAM, len(self._outputs) - 1


class _Program:
    """A traced function for one kind of elements and of host's values.

    Attributes:
        step: What the engine runs.
        places: Of each component of a result, where it comes from, and which it is there.
        template: The structure of results; None: they are tuples of the components.
        draws: How many draws it makes.
        compared: How many of its elements were compared with Python's.
        offered: Whether the engine was asked to make elements with it alone.
    """

    def __init__(
        self,
        traced: TracedProgram,
        entered: list[int],
        places: list[tuple[str, Any]],
        template: Structure,
        draws: int,
    ) -> None:
        self.step, self._constants = traced._step, traced._constants
        self._requirements = traced._requirements
        self._entered, self.places = list(entered), places
        self.template = None if _is_flat(template) else template
        self.draws, self.compared, self.offered = draws, 0, False

    @property
    def runs_without_python(self) -> bool:
        """Tell if it was compared and leaves nothing for Python to evaluate."""
        return self.compared >= _COMPARED and not self._requirements

    def gives_what(self, other: _Program) -> bool:
        """Tell if its results consist of the same components as the other's."""
        pairs = zip(self.places, other.places, strict=True)
        return all(a == b and (x is y if a is CONSTANT else x == y) for (a, x), (b, y) in pairs)

    def run(self, seed: int, position: int, values: list[Any]) -> Structure:
        arguments = _core.Arguments(tuple([values[n] for n in self._entered]), {}, [])
        with data_function(seed, position):
            outputs = self.step.run(arguments, self._constants)
        if self._requirements:
            check_all(self._requirements)
        leaves = [
            outputs[what] if where is PROGRAM else values[what] if where is HOST else what
            for where, what in self.places
        ]
        return tuple(leaves) if self.template is None else fill(self.template, leaves)


def _signature(leaf: Any) -> Any:
    """Shape and dtype of a tensor, the shape of text; None for all else."""
    kind = type(leaf)
    if kind is Tensor:
        return leaf._shape, leaf._dtype
    return leaf._bytes.shape if kind is Text else None


def _is_flat(element: Structure) -> bool:
    return type(element) is tuple and all(
        isinstance(x, Tensor | Text | HostTensor) for x in element
    )


def _to_leaf(leaf: Any) -> Any:
    if isinstance(leaf, HostText | HostTensor):
        return leaf
    return to_element(leaf, "Dataset.map")


def _with_draws(
    function: Callable[..., Any], seed: int, position: int, element: Structure
) -> tuple[Structure, int]:
    """Python's element, and how many draws outside of steps it took; -1: others."""
    with data_function(seed, position):
        state = _core.random_state()
        first = state.step
        found = call(function, element)
        made = to_element(tuple(found) if isinstance(found, list) else found, "Dataset.map")
        draws = int(state.ordinal)
        return made, draws if state.step - first == draws else -1


def _same(made: Structure, expected: Structure) -> bool:
    if map_leaves(lambda _: 0, made) != map_leaves(lambda _: 0, expected):
        return False
    return all(map(_same_leaf, leaves_of(made), leaves_of(expected)))


def _same_leaf(made: Any, expected: Any) -> bool:
    if type(made) is not type(expected) or made._shape != expected._shape:
        return False
    if isinstance(made, Text):
        return bool((made.encoded == expected.encoded).all())
    same: bool = made._view().tobytes() == expected._view().tobytes()
    return made._dtype == expected._dtype and same
