"""`saved_model.load`: objects, variables and functions from a folder, which may hold anything."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any

import numpy as np

from samegrad import _core, errors
from samegrad._autodiff.aggregation import VariableAggregation, VariableSynchronization
from samegrad._autodiff.variable import Variable
from samegrad._base.dtypes import numpy_dtype
from samegrad._base.location import warn
from samegrad._base.numerics import numerics
from samegrad._tensor.tensor import constant
from samegrad.saved_model import _folder, _values
from samegrad.saved_model._loaded import (
    COLLECTIONS,
    LoadedCallable,
    LoadedFunction,
    LoadedObject,
    LoadedProgram,
    SignatureFunction,
    Signatures,
    is_attribute,
)
from samegrad.train._storage import Array

_INLINE = 4096
_DEEPEST = 256
_KINDS = {kind.name: kind for kind in inspect._ParameterKind}


def load(export_dir: str | os.PathLike[str], tags: Any = None, options: Any = None) -> Any:
    """Make the objects of a folder that `save` wrote.

    Variables are made in the scope of the present strategy, whatever the number of replicas was
    when they were saved. Functions compute with the bits of those that were saved. They have
    gradients, and are called in `Strategy.run` and in functions like any other.

    Args:
        export_dir: The folder.
        tags: Ignored: a folder holds one model.
        options: A `LoadOptions`, which changes nothing.

    Returns:
        An object with the attributes that were saved, and `signatures`: a dict of functions by
        name, which take tensors by name and return a dict.

    Raises:
        FileNotFoundError: There is no saved model.
        CorruptSavedModelError: A file is missing, truncated or altered.
        ValueError: An operation is not known here, or of another version.

    Example:
        >>> import samegrad as tf, tempfile
        >>> module = tf.Module()
        >>> module.w = tf.Variable(3.0)
        >>> module.scale = tf.function(
        ...     lambda x: {"y": module.w * x},
        ...     input_signature=[tf.TensorSpec([None], tf.float32, "x")],
        ... )
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tf.saved_model.save(module, folder + "/scale")
        ...     with tf.distribute.MirroredStrategy(replicas=2).scope():
        ...         loaded = tf.saved_model.load(folder + "/scale")
        >>> loaded.signatures["serving_default"](x=tf.constant([1.0, 2.0]))["y"].numpy()
        array([3., 6.], dtype=float32)
    """
    arrays, model = _folder.read(export_dir)
    path = Path(os.path.abspath(export_dir)) / _folder.DOCUMENT
    try:
        return _Reader(arrays, model).root()
    except (KeyError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        raise _folder.corrupt(path, f"{type(error).__name__}: {error!s:.120}") from None
    except _DamagedError as error:
        raise _folder.corrupt(path, str(error)) from None
    except (TypeError, ValueError) as error:  # an operation refuses its operands
        raise _folder.CorruptSavedModelError(
            f"[saved_model.load] {path} must hold programs that run here: got {error!s:.400}"
        ) from error


class _DamagedError(Exception):
    """Description of what is wrong with a document."""


def _check(holds: bool, found: str) -> None:
    if not holds:
        raise _DamagedError(found)


def _dict(value: Any) -> dict[str, Any]:
    _check(isinstance(value, dict), f"an object is {value!r:.80}")
    return value  # type: ignore[no-any-return]


def _list(value: Any) -> list[Any]:
    _check(isinstance(value, list), f"a list is {value!r:.80}")
    return value  # type: ignore[no-any-return]


def _string(value: Any) -> str:
    _check(isinstance(value, str), f"a string is {value!r:.80}")
    return value  # type: ignore[no-any-return]


class _Reader:
    """The objects of a document.

    Args:
        arrays: Those of the folder.
        model: The document.
    """

    def __init__(self, arrays: dict[str, Array], model: dict[str, Any]) -> None:
        self._arrays = arrays
        self._entries = [_dict(entry) for entry in _list(model["objects"])]
        self._made: dict[int, Any] = {}
        self._programs = _list(model["programs"])
        self._loaded: dict[int, LoadedProgram] = {}
        self._signatures = _dict(model["signatures"])
        self._numerics = _dict(model["numerics"])
        _check(all(type(n) is int for n in self._numerics.values()), "versions are numbers")

    def root(self) -> Any:
        _check(bool(self._entries) and self._entries[0].get("kind") == "object", "it has no root")
        # All is checked before the first variable is made.
        programs = [self._graph(number) for number in range(len(self._programs))]
        values = [self._checked(entry) for entry in self._entries]
        variables = [place for place, value in enumerate(values) if value is not None]
        for place in sorted(variables, key=lambda place: self._entries[place]["created"]):
            self._made[place] = _variable(self._entries[place], values[place])
        for number, parts in enumerate(programs):
            self._loaded[number] = self._program(number, parts)
        root = self._object(0, 0)
        signatures = {name: self._signature(_dict(s)) for name, s in self._signatures.items()}
        object.__setattr__(root, "signatures", Signatures(signatures))
        if self._numerics != numerics():
            warn(
                f"[saved_model.load] the model was saved with the numerics {self._numerics}: got "
                f"{numerics()} here, so results agree within rounding, not to the bit; install "
                "the version that saved it to have the same bits."
            )
        return root

    def _array(self, name: Any) -> Array:
        _check(isinstance(name, str) and name in self._arrays, f"there is no array {name!r:.60}")
        return self._arrays[name]

    def _checked(self, entry: dict[str, Any]) -> Array | None:
        """Return the value of an entry that is a variable."""
        if entry.get("kind") != "variable":
            return None
        for name in ("name", "synchronization", "aggregation"):
            _string(entry[name])
        _check(isinstance(entry["trainable"], bool), "a variable is trainable or not")
        _check(type(entry["created"]) is int, "variables have an order")
        _check(entry["synchronization"] in VariableSynchronization.__members__, "synchronization")
        _check(entry["aggregation"] in VariableAggregation.__members__, "aggregation")
        return self._array(entry["array"])

    def _graph(self, number: int) -> tuple[_core.SavedProgram, Any, Any]:
        """Return the verified graph of a program, its inputs and its outputs."""
        data = _dict(self._programs[number])
        constants = [constant(self._constant(one)) for one in _list(data["constants"])]
        try:
            program = _core.SavedProgram(_dict(data["graph"]), constants)
        except MemoryError as error:  # of a shape: nothing has run
            raise _DamagedError(str(error)) from None
        inputs = [_values.decode(part) for part in _list(data["inputs"])]
        outputs = _values.decode(data["outputs"])
        whole = len(inputs) == 2 and isinstance(inputs[0], tuple) and isinstance(inputs[1], dict)
        _check(whole, "a program has arguments and named ones")
        given = _values.tensors_of(inputs)
        _check(
            sorted(t.index for t in given) == list(range(program.arguments)),
            "a program has other arguments than its graph",
        )
        results = {t.index for t in _values.tensors_of(outputs)}
        _check(
            all(0 <= index < program.outputs for index in results),
            "a program has other results than its graph",
        )
        _check(program.variables == len(_list(data["variables"])), "a program has other variables")
        return program, inputs, outputs

    def _constant(self, data: Any) -> Array:
        data = _dict(data)
        if "array" in data:
            return self._array(data["array"])
        shape, content = _list(data["shape"]), bytes.fromhex(_string(data["bytes"]))
        sizes = all(type(size) is int and 0 <= size <= _INLINE for size in shape)
        _check(sizes and len(shape) <= 8, f"a constant has the shape {shape!r:.60}")
        _check(_values.is_dtype(data["dtype"]), f"a constant is of {data['dtype']!r:.40}")
        kind = numpy_dtype(data["dtype"])
        count = int(np.prod(shape, dtype=np.float64))
        _check(count * kind.itemsize == len(content) <= _INLINE, "a constant has other bytes")
        return np.frombuffer(content, kind).reshape(shape).copy()

    def _program(self, number: int, parts: tuple[_core.SavedProgram, Any, Any]) -> LoadedProgram:
        data = self._programs[number]
        cells = [self._cell(_dict(one)) for one in data["variables"]]
        only = data["one_replica"] and _string(data["one_replica"])
        return LoadedProgram(_string(data["name"]), parts[0], cells, *parts[1:], only)

    def _cell(self, data: dict[str, Any]) -> Any:
        if "object" in data:
            place = data["object"]
            _check(type(place) is int, f"a variable is {place!r:.40}")
            found = self._made.get(place)
            _check(isinstance(found, Variable), f"object {place} is not a variable")
            return found
        kind = getattr(errors, _string(data["error"]), None) or _ERRORS.get(data["error"])
        _check(isinstance(kind, type) and issubclass(kind, Exception), "an assertion has no error")
        return _string(data["message"]), kind

    def _object(self, place: Any, depth: int) -> Any:
        inside = type(place) is int and 0 <= place < len(self._entries)
        _check(inside and depth < _DEEPEST, f"an object is {place!r:.40}")
        if place not in self._made:
            entry = self._entries[place]
            make = _MAKERS.get(_string(entry["kind"]))
            _check(make is not None, f"an object is a {entry['kind']!r:.40}")
            make(self, place, entry, depth)  # type: ignore[misc]
        return self._made[place]

    def _children(self, entry: dict[str, Any], depth: int) -> list[tuple[str, Any]]:
        children = _dict(entry["children"])
        return [(name, self._object(place, depth + 1)) for name, place in children.items()]

    def _plain(self, place: int, entry: dict[str, Any], depth: int) -> None:
        called = "__call__" in _dict(entry["children"])
        made = (LoadedCallable if called else LoadedObject).__new__(
            LoadedCallable if called else LoadedObject
        )
        name = entry.get("name", "module")
        made.__dict__["_name"] = _string(name) if _string(name).isidentifier() else "module"
        self._made[place] = made
        lists = made.__dict__["_collections"] = dict[str, Any]()
        for child, value in self._children(entry, depth):
            _check(is_attribute(child), f"an attribute is called {child!r:.60}")
            own = made.__dict__ if child not in COLLECTIONS else lists
            own[child] = value
        for name, places in _dict(entry.get("collections", {})).items():
            found = [self._object(place, depth + 1) for place in _list(places)]
            variables = all(isinstance(one, Variable) for one in found)
            _check(variables and name in COLLECTIONS, "a list of variables holds others")
            lists[name] = tuple(found)

    def _dictionary(self, place: int, entry: dict[str, Any], depth: int) -> None:
        made: dict[str, Any] = {}
        self._made[place] = made
        made.update(self._children(entry, depth))

    def _sequence(self, place: int, entry: dict[str, Any], depth: int) -> None:
        children = _dict(entry["children"])
        _check(
            sorted(children) == sorted(str(i) for i in range(len(children))),
            "a list has gaps",
        )
        if entry["kind"] == "list":
            made: list[Any] = []
            self._made[place] = made
        found = [self._object(children[str(i)], depth + 1) for i in range(len(children))]
        if entry["kind"] == "list":
            made.extend(found)
        else:
            self._made[place] = tuple(found)

    def _function(self, place: int, entry: dict[str, Any], depth: int) -> None:
        signature = inspect.Signature([_parameter(_dict(p)) for p in _list(entry["parameters"])])
        programs = [self._program_at(number) for number in _list(entry["programs"])]
        name = _string(entry["name"])
        self._made[place] = LoadedFunction(name, signature, programs)

    def _program_at(self, number: Any) -> LoadedProgram:
        _check(type(number) is int and number in self._loaded, f"a program is {number!r:.40}")
        return self._loaded[number]

    def _signature(self, data: dict[str, Any]) -> SignatureFunction:
        program = self._program_at(data["program"])
        inputs = [_string(name) for name in _list(data["inputs"])]
        _check(len(set(inputs)) == len(program.specs) == len(inputs), "a signature's inputs")
        results = {t.index for t in _values.tensors_of(program.outputs)}
        outputs = _dict(data["outputs"])
        known = all(type(i) is int and i in results for i in outputs.values())
        _check(known, "a signature's outputs")
        return SignatureFunction(program, inputs, outputs)


_MAKERS = {
    "object": _Reader._plain,
    "dict": _Reader._dictionary,
    "list": _Reader._sequence,
    "tuple": _Reader._sequence,
    "function": _Reader._function,
}
_ERRORS: dict[str, type[Exception]] = {
    kind.__name__: kind for kind in (ValueError, TypeError, AssertionError, RuntimeError)
}


def _parameter(data: dict[str, Any]) -> inspect.Parameter:
    name, kind = _string(data["name"]), _KINDS.get(_string(data["kind"]))
    _check(kind is not None and name.isidentifier(), f"a parameter is {data!r:.80}")
    default = data.get("default", inspect.Parameter.empty)
    if data.get("optional"):
        default = _LEFT_OUT
    return inspect.Parameter(name, kind, default=default)  # type: ignore[arg-type]


_LEFT_OUT = object()  # the default of a parameter that is an object


def _variable(entry: dict[str, Any], value: Any) -> Variable:
    return Variable(
        value,
        trainable=entry["trainable"],
        name=entry["name"],
        synchronization=VariableSynchronization[entry["synchronization"]],
        aggregation=VariableAggregation[entry["aggregation"]],
    )
