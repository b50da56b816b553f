"""Strings in models: what reads them runs on the host, per batch, before the compiled step.

A step is traced with strings that have shapes and no characters. The innermost layer without
weights, or else the function, that reads the characters is called outside of the trace. Its results
are further arguments of the step. Layers that hash integers are called in the same way.
"""

from __future__ import annotations

import contextlib
import operator
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np
from keras.src import tree

from samegrad import _core
from samegrad._base.host_read import HostRead
from samegrad._context.python_runs import leave_trace
from samegrad._context.state import init_scope
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad._tensor.text import Text, UnreadText, is_text

_KINDS = frozenset("OSU")  # of NumPy's dtypes that hold strings
_MOST_CALLS = 256  # of one step on the host


class NeedsCall(BaseException):
    """Leaves a trace that needs the result of a call on the host; None: that of any call."""

    def __init__(self, call: Call | None = None) -> None:
        super().__init__()
        self.call = call


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
            lambda leaf: _as_tensor(values[leaf]) if isinstance(leaf, Source) else leaf, self[1:]
        )
        return self.function(*args, **kwargs)


def _as_tensor(value: Any) -> Any:
    return convert_to_tensor(value) if isinstance(value, np.ndarray) else value


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
    if isinstance(a, np.ndarray | Tensor | Text):
        x, y = np.asarray(a), np.asarray(b)
        return x.dtype == y.dtype and np.array_equal(x, y)
    return a is b or (isinstance(a, Source | str | bytes | int | float | bool | slice) and a == b)


class _Trace(threading.local):
    """The trace of this thread that has strings."""

    calls: Calls | None = None


_trace = _Trace()


@contextlib.contextmanager
def _answering(calls: Calls | None) -> Iterator[None]:
    """Return a context in which layers and functions that read strings ask these calls."""
    before, _trace.calls = _trace.calls, calls
    try:
        yield
    finally:
        _trace.calls = before


class Calls:
    """Results of calls on the host in one trace; here that of a step without such calls."""

    def __init__(self) -> None:
        self._layers: list[Any] = []  # those that are being called

    def result(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Return the result of a call.

        Raises:
            NeedsCall: It is not among the arguments of the step.
        """
        raise NeedsCall

    def call(self, read: HostRead, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Return the result of a public function that read a string, or raise `read`.

        Inside a layer without weights the whole layer is called on the host.
        """
        whole = self._layers and not self._layers[-1].trainable_weights
        if whole or _trace.calls is not self:
            raise read
        return self.result(function, args, kwargs)

    def call_layer(self, layer: Any, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Return the outputs of a layer, in the trace or, if it reads strings, on the host."""
        self._layers.append(layer)
        try:
            return call(*args, **kwargs)
        except HostRead as read:
            if read.calls is not self:
                raise
        finally:
            self._layers.pop()
        return self.outputs(layer, args, kwargs)

    def outputs(self, layer: Any, args: Any, kwargs: Any) -> Any:
        """Return the outputs of a layer that is called on the host.

        Raises:
            TypeError: It has weights to train.
        """
        if layer.trainable_weights:
            raise TypeError(
                f"[{type(layer).__name__}] layers with weights get numbers in a compiled step: "
                f"got strings that {layer.name!r} reads; read them in a layer of their own, such "
                "as TextVectorization, or in Dataset.map."
            )
        return self.result(layer, args, kwargs)


def call_layer(layer: Any, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a layer; one that reads strings of a trace is called on the host.

    Args:
        layer: Layer of Keras.
        call: Calls it in the trace.
        args: Positional arguments.
        kwargs: Keyword arguments.
    """
    calls = _trace.calls
    if calls is None:
        return call(*args, **kwargs)
    return calls.call_layer(layer, call, args, kwargs)


def read_value(what: str) -> NoReturn:
    """Leave a layer or function that reads the values of traced strings or integers.

    Args:
        what: What is read, for the message.

    Raises:
        HostRead: The values are read on the host instead.
        NeedsPython: The trace is that of a function, which Python runs then.
        RuntimeError: The trace is neither that of a model's step nor of a function.
    """
    if _trace.calls is not None:
        raise HostRead(_trace.calls)
    refusal = (
        f"[keras.layers] {what} have no values in a trace: got some that are read; call the layer "
        "on data, in Dataset.map or in a model that fit, evaluate or predict compiles."
    )
    leave_trace(refusal)
    raise RuntimeError(refusal)


class OpenText(Text):
    """Strings of a batch that stand for batches with any number of examples."""

    __slots__ = ()


class TracedText(UnreadText):
    """Strings of a traced step: their shape is known, their characters are not.

    Args:
        source: Place of the strings among the arguments of the step; their values in a `Probe`.
        rows: Tensor of the shape of the strings.
    """

    __slots__ = ("rows",)

    def __init__(self, source: Any, rows: Tensor) -> None:
        super().__init__(source)
        self.rows = rows

    def _read(self) -> NoReturn:
        read_value("strings")

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

    def __getitem__(self, key: Any) -> Any:
        return _operated(operator.getitem, self, key)

    def __eq__(self, other: object) -> Any:
        return _operated(operator.eq, self, other)

    def __ne__(self, other: object) -> Any:
        return _operated(operator.ne, self, other)

    def __add__(self, other: Any) -> Any:
        return _operated(operator.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return _operated(operator.add, other, self)

    def __repr__(self) -> str:
        return f"<samegrad.Text: shape={tuple(self.shape)}, traced>"


def _operated(function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """Return the result of an operator of strings, which runs on the host."""
    try:
        return read_value("strings")
    except HostRead as read:
        return read.calls.call(read, function, (left, right), {})


def _is_traced(value: Any) -> bool:
    return isinstance(value, TracedText) or (isinstance(value, Tensor) and value._symbolic)


class _Replay(Calls):
    """Results of calls that are arguments of the step.

    Args:
        calls: The calls, in their order.
        leaves: Leaves of the batch.
        results: Result of each call.
    """

    def __init__(self, calls: list[Call], leaves: list[Any], results: list[Any]) -> None:
        super().__init__()
        self._calls, self._results = calls, results
        self._sources = {id(x): Source(-1, at) for at, x in enumerate(leaves) if _is_traced(x)}
        for number, result in enumerate(results):
            for at, x in enumerate(tree.flatten(result)):
                self._sources[id(x)] = Source(number, at)

    def result(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Return the result of a call.

        Raises:
            NeedsCall: The call is new.
            TypeError: It takes a tensor that the step computes.
        """
        call = Call(function, *_mapped(lambda x: self._source_of(function, x), (args, kwargs)))
        for known, result in zip(self._calls, self._results, strict=True):
            if known.is_same(call):
                return result
        raise NeedsCall(call)

    def _source_of(self, function: Any, value: Any) -> Any:
        if not _is_traced(value):
            return value
        source = self._sources.get(id(value))
        if source is None:
            name = getattr(function, "name", getattr(function, "__name__", "function"))
            raise TypeError(
                f"[{name}] what reads strings or hashes integers runs before the compiled step: "
                "got a tensor that the step computes; pass inputs of the model alone."
            )
        return source


class Probe(Calls):
    """Runs calls at once, for the shapes of their results, in a trace of its own.

    Args:
        trace: Gets the results as arguments. None: they are eager tensors and strings.
        count: Number of examples.
    """

    def __init__(self, trace: _core.Trace | None, count: int) -> None:
        super().__init__()
        self._trace, self._count = trace, count

    def run(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run the function in the trace, or on the host if it reads strings itself."""
        with _answering(self):
            try:
                return function(*args, **kwargs)
            except HostRead:
                return self.result(function, args, kwargs)

    def enter(self, value: Any) -> Any:
        """Return an array or strings as an argument of the trace."""
        if isinstance(value, Text) and self._trace is not None:
            return TracedText(value, self._argument(np.zeros(value._shape, np.uint8)))
        return self._argument(value._numpy()) if isinstance(value, Tensor) else value

    def enter_strings(self, value: Any) -> TracedText | Text:
        """Return strings as an argument of the trace.

        Args:
            value: Strings, or a KerasTensor: its strings have as many words as there are examples.
        """
        if isinstance(value, OpenText):
            rows = value.encoded
            made = Text(rows[np.arange(self._count) % len(rows)]) if value._rank else value
        elif isinstance(value, Text):
            made = value
        else:
            sizes = tuple(self._count if size is None else size for size in value.shape)
            made = Text(np.full(sizes, " ".join(["1"] * self._count), object))
        entered: TracedText | Text = self.enter(made)
        return entered

    def _argument(self, array: Any) -> Any:
        counted = array.ndim and array.shape[0] == self._count
        if self._trace is None:
            return Tensor(array)
        return self._trace.argument([Tensor(array, example_axis=0 if counted else None)])

    def result(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Return the result of a call."""
        args, kwargs = _mapped(self._value_of, (args, kwargs))
        with init_scope(), _answering(None):
            found = function(*args, **kwargs)
        return tree.map_structure(self.enter, found)

    def _value_of(self, leaf: Any) -> Any:
        if isinstance(leaf, TracedText):
            return leaf.source
        if not _is_traced(leaf):
            return leaf
        sizes = [size if type(size) is int else self._count for size in leaf.shape]
        return Tensor(np.zeros(sizes, leaf.dtype.as_numpy_dtype))


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
        elif (
            type(part) is not Tensor
            and part is not None
            and any(isinstance(as_text(leaf), Text) for leaf in tree.flatten(part))
        ):
            return True
    return False


def as_text(leaf: Any) -> Any:
    """Return a string tensor of an array of strings; all else as it is."""
    is_array = isinstance(leaf, np.ndarray) and leaf.dtype.kind in _KINDS
    return Text(leaf) if is_array and is_text(leaf) else leaf


class TextSteps:
    """A compiled step for batches of any structure, with strings or without.

    Args:
        step: Function of a batch.
        compiled: Returns the compiled step of such a function.
    """

    def __init__(self, step: Callable[[Any], Any], compiled: Callable[[Any], Any]) -> None:
        self._step, self._compiled = step, compiled
        self._steps: dict[str, _TextStep] = {}
        self._of_numbers = compiled(self._numbers)
        self._reads_numbers = False

    def __call__(self, batch: Any) -> Any:
        """Run the step on a batch.

        Raises:
            TypeError: The step reads strings that it has computed, or with what has weights.
        """
        if not self._reads_numbers and not has_strings(batch):
            try:
                return self._of_numbers(batch)
            except NeedsCall:
                self._reads_numbers = True
        leaves = [as_text(leaf) for leaf in tree.flatten(batch)]
        structure = tree.map_structure(lambda _: 0, batch)
        texts = [isinstance(leaf, Text) for leaf in leaves]
        key = f"{structure} {texts}"
        if key not in self._steps:
            self._steps[key] = _TextStep(structure, texts, self._step, self._compiled)
        return self._steps[key].run(leaves)

    def _numbers(self, batch: Any) -> Any:
        with _answering(Calls()):
            return self._step(batch)


class _TextStep:
    """A compiled step for batches of one structure, and its calls on the host in their order."""

    def __init__(self, structure: Any, texts: list[bool], step: Any, compiled: Any) -> None:
        self._structure, self._texts, self._step = structure, texts, step
        self._calls: list[Call] = []
        self._text_results: list[Any] = []
        self._run = compiled(self._traced)

    def run(self, leaves: list[Any]) -> Any:
        """Run the step on the leaves of a batch."""
        while True:
            try:
                return self._run(self._arguments(leaves))
            except NeedsCall as need:
                if need.call is None or len(self._calls) == _MOST_CALLS:
                    raise TypeError(
                        f"[Model] a step reads strings with at most {_MOST_CALLS} layers and "
                        f"functions: got more, the last {need.call and need.call.function!r:.80}; "
                        "read them in Dataset.map."
                    ) from None
                self._calls.append(need.call)

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

    def _traced(self, arguments: Any) -> Any:
        """Run the step in a trace."""
        given, found = arguments
        leaves = _entered(-1, given, self._texts)
        results = [
            _entered(number, part, texts)
            for number, (part, texts) in enumerate(zip(found, self._text_results, strict=True))
        ]
        with _answering(_Replay(self._calls, leaves, results)):
            try:
                return self._step(tree.pack_sequence_as(self._structure, leaves))
            except HostRead:
                raise TypeError(
                    "[Model] a compiled step reads strings in layers and functions of tf.strings: "
                    "got strings that are read elsewhere; read them in Dataset.map."
                ) from None


def _entered(call: int, structure: Any, texts: Any) -> Any:
    """Return arguments of a trace, with strings for those that stand for some."""
    leaves = zip(tree.flatten(structure), tree.flatten(texts), strict=True)
    entered = [
        TracedText(Source(call, at), leaf) if text else leaf
        for at, (leaf, text) in enumerate(leaves)
    ]
    return tree.pack_sequence_as(texts, entered)


def _numbers_of(leaf: Any) -> Any:
    if isinstance(leaf, Text):
        return np.zeros(leaf._shape, np.uint8)
    if isinstance(leaf, RaggedTensor):
        raise TypeError(
            "[Model] what reads strings gives dense tensors to a compiled step: got a RaggedTensor;"
            " call to_tensor() in the same layer, or read the strings in Dataset.map."
        )
    return leaf
