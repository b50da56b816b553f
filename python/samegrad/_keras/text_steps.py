"""Strings in models: what reads them runs on the host, per batch, before the compiled step.

A step is traced with strings that have shapes and no characters. The innermost layer that reads
the characters is called outside of the trace, and its results are further arguments of the step.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from keras.src import tree

from samegrad import _core
from samegrad._context.state import init_scope
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad._tensor.text import Text, is_text

_KINDS = frozenset("OSU")  # of NumPy's dtypes that hold strings


class TextRead(BaseException):
    """Leaves a layer that reads the characters of traced strings.

    It does not derive from Exception, so that handlers of user code let it pass.
    """


class NeedsCall(BaseException):
    """Leaves a trace that needs the result of a call on the host."""

    def __init__(self, call: Call) -> None:
        super().__init__(call.function)
        self.call = call


class TracedText(Text):
    """Strings of a traced step: their shape is known, their characters are not.

    Args:
        calls: Answers calls of layers that read the characters.
        source: Place of the strings among the arguments and results of calls.
        rows: Tensor of the shape of the strings.
    """

    __slots__ = ("calls", "rows", "source")
    _symbolic = True

    def __init__(self, calls: Any, source: Any, rows: Tensor) -> None:
        self.calls, self.source, self.rows = calls, source, rows
        self._origin = None

    @property
    def _bytes(self) -> Any:
        raise TextRead

    @property
    def _decoded(self) -> Any:
        raise TextRead

    @property
    def shape(self) -> Any:
        """The sizes of the axes."""
        return self.rows.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.rows._rank

    @property
    def _shape(self) -> Any:
        return self.rows._shape

    @property
    def _rank(self) -> int:
        return self.rows._rank

    def on_host(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Return the result of a call with these strings among its arguments.

        Args:
            function: Layer, or function of strings.
            args: Positional arguments.
            kwargs: Keyword arguments.
        """
        return self.calls.result(function, args, kwargs)

    def __repr__(self) -> str:
        return f"<samegrad.Text: shape={tuple(self.shape)}, without values>"


class Source(NamedTuple):
    """Place of an argument of a call: a leaf of the batch, or of the result of an earlier call."""

    call: int  # -1: the batch
    leaf: int


class Call(NamedTuple):
    """A call on the host: a layer or function, and its arguments with sources in them."""

    function: Any
    args: Any
    kwargs: Any

    def is_same(self, other: Call) -> bool:
        """Tell if it is a call of the same function with the same arguments."""
        return self.function is other.function and _equal(self[1:], other[1:])

    def run(self, values: dict[Source, Any]) -> Any:
        """Return the result for the values of the sources."""
        args, kwargs = _mapped(
            lambda leaf: values[leaf] if isinstance(leaf, Source) else leaf, self[1:]
        )
        return self.function(*args, **kwargs)


def _mapped(function: Callable[[Any], Any], structure: Any) -> Any:
    """Map the leaves of lists, tuples and dicts; a source is a leaf."""
    if isinstance(structure, dict):
        return {name: _mapped(function, part) for name, part in structure.items()}
    if type(structure) in (list, tuple):
        return type(structure)(_mapped(function, part) for part in structure)
    return function(structure)


def _equal(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_equal(a[name], b[name]) for name in a)
    if type(a) in (list, tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    return a is b or (isinstance(a, Source | str | int | float | bool) and a == b)


# How many traces with strings are open, in all threads: calls of layers look for strings then.
_open_traces = 0


@contextlib.contextmanager
def tracing_strings() -> Iterator[None]:
    """Return a context in which calls of layers look for traced strings."""
    global _open_traces
    _open_traces += 1
    try:
        yield
    finally:
        _open_traces -= 1


def call_layer(layer: Any, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a layer; one that reads traced strings is called on the host.

    Args:
        layer: Layer of Keras.
        call: Calls it in the trace.
        args: Positional arguments.
        kwargs: Keyword arguments.
    """
    if not _open_traces:
        return call(*args, **kwargs)
    texts = [x for x in tree.flatten((args, kwargs)) if isinstance(x, TracedText)]
    if not texts:
        return call(*args, **kwargs)
    with contextlib.suppress(TextRead):
        return call(*args, **kwargs)
    if layer.trainable_weights:
        raise TypeError(
            f"[{type(layer).__name__}] a layer that reads strings in a compiled step must have no "
            f"weights to train: got {layer.name!r}; read them in a layer of their own, such as "
            "TextVectorization, or in Dataset.map."
        )
    return texts[0].on_host(layer, args, kwargs)


class _Replay:
    """Results of the calls on the host in the trace of a step for batches."""

    def __init__(self, calls: list[Call], leaves: list[Any], results: list[Any]) -> None:
        self._calls, self._results = calls, results
        self._sources = {id(x): Source(-1, at) for at, x in enumerate(leaves) if _is_number(x)}

    def result(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Return the result of a call.

        Raises:
            NeedsCall: The call is new.
        """
        call = Call(function, *_mapped(lambda x: self._source_of(function, x), (args, kwargs)))
        for known, result in zip(self._calls, self._results, strict=True):
            if known.is_same(call):
                return result
        raise NeedsCall(call)

    def _source_of(self, function: Any, value: Any) -> Any:
        if isinstance(value, TracedText):
            return value.source
        if not _is_number(value):
            return value
        source = self._sources.get(id(value))
        if source is None:
            name = getattr(function, "name", getattr(function, "__name__", "function"))
            raise TypeError(
                f"[{name}] layers that read strings run before the compiled step: got a tensor "
                "that the step computes; pass strings and inputs of the model only."
            )
        return source


def _is_number(value: Any) -> bool:
    return isinstance(value, Tensor) and value._symbolic


class Probe:
    """Answers calls at once, for the shapes of their results, in a trace of its own.

    Args:
        trace: Gets the results as arguments.
        count: Number of examples.
    """

    def __init__(self, trace: _core.Trace, count: int) -> None:
        self._trace, self._count = trace, count

    def enter(self, value: Any) -> Any:
        """Return an array or strings as an argument of the trace."""
        if isinstance(value, Text):
            return TracedText(self, value, self._argument(np.zeros(value._shape, np.uint8)))
        return self._argument(value._numpy()) if isinstance(value, Tensor) else value

    def _argument(self, array: Any) -> Any:
        counted = array.ndim and array.shape[0] == self._count
        return self._trace.argument([Tensor(array, example_axis=0 if counted else None)])

    def result(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Return the result of a call."""
        with init_scope():
            found = Call(function, args, kwargs)
            made = found.function(*_mapped(_value_of, args), **_mapped(_value_of, kwargs))
        return tree.map_structure(self.enter, made)


def _value_of(leaf: Any) -> Any:
    if isinstance(leaf, TracedText):
        return leaf.source
    if isinstance(leaf, Tensor) and leaf._symbolic:
        return convert_to_tensor(np.zeros(tuple(map(int, leaf._shape)), leaf._dtype))
    return leaf


def probe_text(value: Any, count: int) -> Text:
    """Return strings whose shapes those of results are found by.

    Args:
        value: Strings, of which so many examples are taken, or a KerasTensor: its strings have so
            many words.
        count: Number that stands for sizes that are None.
    """
    if isinstance(value, Text):
        sizes = (count, *value._shape[1:]) if value._rank else ()
        return Text(np.resize(value.encoded, sizes))
    sizes = tuple(count if size is None else size for size in value.shape)
    return Text(np.full(sizes, " ".join(["1"] * count), object))


def has_strings(batch: Any) -> bool:
    """Tell if a batch has strings.

    Args:
        batch: Structure of arrays.
    """
    parts = batch if type(batch) is tuple else (batch,)
    for part in parts:
        if type(part) is np.ndarray:
            if part.dtype.kind in _KINDS:
                return True
        elif type(part) is not Tensor and part is not None:
            return any(isinstance(as_text(leaf), Text) for leaf in tree.flatten(part))
    return False


def as_text(leaf: Any) -> Any:
    """Return a string tensor of an array of strings; all else as it is."""
    is_array = isinstance(leaf, np.ndarray) and leaf.dtype.kind in _KINDS
    return Text(leaf) if is_array and is_text(leaf) else leaf


class TextSteps:
    """Compiled steps for batches with strings, one for each structure of batches.

    Args:
        compiled: Returns the compiled step whose argument a function turns into a batch.
    """

    def __init__(self, compiled: Callable[[Callable[[Any], Any]], Callable[[Any], Any]]) -> None:
        self._compiled = compiled
        self._steps: dict[Any, _TextStep] = {}

    def __call__(self, batch: Any) -> Any:
        """Run the step on a batch.

        Raises:
            TypeError: The step reads strings elsewhere than in layers.
        """
        leaves = [as_text(leaf) for leaf in tree.flatten(batch)]
        structure = tree.map_structure(lambda _: 0, batch)
        texts = [isinstance(leaf, Text) for leaf in leaves]
        key = f"{structure} {texts}"
        if key not in self._steps:
            self._steps[key] = _TextStep(structure, texts, self._compiled)
        return self._steps[key].run(leaves)


class _TextStep:
    """A compiled step for batches of one structure, and its calls on the host in their order."""

    def __init__(self, structure: Any, texts: list[bool], compiled: Any) -> None:
        self._structure, self._texts = structure, texts
        self._calls: list[Call] = []
        self._text_results: list[Any] = []
        self._step = compiled(self._entered)

    def run(self, leaves: list[Any]) -> Any:
        """Run the step on the leaves of a batch."""
        while True:
            try:
                with tracing_strings():
                    return self._step(self._arguments(leaves))
            except NeedsCall as need:
                self._calls.append(need.call)
            except TextRead:
                raise TypeError(
                    "[Model] a compiled step reads strings in layers alone: got strings that are "
                    "read elsewhere; read them in a layer such as TextVectorization, or in "
                    "Dataset.map."
                ) from None

    def _arguments(self, leaves: list[Any]) -> Any:
        """Return the leaves, and the results of the calls; zeros stand for strings."""
        values = {Source(-1, at): leaf for at, leaf in enumerate(leaves)}
        results, self._text_results = [], []
        for number, call in enumerate(self._calls):
            found = call.run(values)
            for at, leaf in enumerate(tree.flatten(found)):
                values[Source(number, at)] = leaf
            self._text_results.append(tree.map_structure(lambda x: isinstance(x, Text), found))
            results.append(found)
        return tree.map_structure(_numbers_of, (leaves, results))

    def _entered(self, arguments: Any) -> Any:
        """Return the batch of a trace."""
        given, found = arguments
        results: list[Any] = []
        replay = _Replay(self._calls, given, results)

        def enter(call: int, structure: Any, texts: Any) -> Any:
            leaves = [
                TracedText(replay, Source(call, at), x) if text else x
                for at, (x, text) in enumerate(
                    zip(tree.flatten(structure), tree.flatten(texts), strict=True)
                )
            ]
            return tree.pack_sequence_as(texts, leaves)

        results += [
            enter(number, part, texts)
            for number, (part, texts) in enumerate(zip(found, self._text_results, strict=True))
        ]
        return tree.pack_sequence_as(self._structure, enter(-1, given, self._texts))


def _numbers_of(leaf: Any) -> Any:
    if isinstance(leaf, Text):
        return np.zeros(leaf._shape, np.uint8)
    if isinstance(leaf, RaggedTensor):
        raise TypeError(
            "[Model] layers that read strings return dense tensors in a compiled step: got a "
            "RaggedTensor; leave out ragged=True."
        )
    return leaf
