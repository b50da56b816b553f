"""Functions of an object that is saved: each call that they were traced for."""

from __future__ import annotations

import contextlib
import inspect
import json
import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from samegrad import _core
from samegrad._base.tree import flatten, map_structure
from samegrad._function.calls import Call
from samegrad._function.concrete import ConcreteFunction
from samegrad._function.export import ExportedProgram, export_program
from samegrad._function.function import BoundFunction, Function
from samegrad._tensor.complex_tensor import ComplexTensor
from samegrad._tensor.spec import TensorSpec
from samegrad._tensor.tensor import is_tensor
from samegrad.saved_model import _values
from samegrad.train._storage import Json


class Program(NamedTuple):
    """Program of one call.

    Attributes:
        name: That of the function.
        graph: The graph, as JSON knows it.
        constants: The arrays that it names.
        cells: The engine's variables, by its slots.
        requirements: Message and error of those cells that a step must meet, by their id.
        inputs: The arguments and the named arguments, as data.
        outputs: The results, as data.
        one_replica: Name and line of what is right on one replica only, if there is something.
    """

    name: str
    graph: Json
    constants: list[Any]
    cells: list[_core.StateVariable]
    requirements: dict[int, tuple[str, str]]
    inputs: Json
    outputs: Json
    one_replica: str | None


class Saveable:
    """One call of a function.

    Args:
        function: The function.
        owner: The object that it is a method of, in a list; or an empty one.
        args: A spec for each tensor, and values of Python.
        kwargs: The same by name.
        op_name: The public function that exports it, for messages.

    Raises:
        TypeError: No other process can pass these arguments.
    """

    def __init__(
        self, function: Function, owner: list[Any], args: Any, kwargs: Mapping[str, Any],
        op_name: str = "saved_model.save",
    ) -> None:  # fmt: skip
        self.function, self._owner, self._op_name = function, owner, op_name
        self._signature = inspect.signature(function.python_function)
        if owner:
            first, *rest = self._signature.parameters.values()
            variadic = first.kind is inspect.Parameter.VAR_POSITIONAL
            self._signature = self._signature.replace(
                parameters=[first, *rest] if variadic else rest
            )
        self._bound = bound(self._signature, tuple(args), dict(kwargs))
        call = self._bound.args, self._bound.kwargs
        self.args, self.kwargs = call
        numbers = iter(range(len(flatten(call))))
        self._places = map_structure(lambda leaf: _place(leaf, numbers, op_name), call)
        what = f"[{op_name}] the arguments of {function._traces.name!r}"
        self.inputs: list[Json] = [_values.encode(part, _tensor, what) for part in self._places]

    @property
    def key(self) -> Any:
        """Equal for calls that are one program."""
        return id(self.function), *map(id, self._owner), json.dumps(self.inputs, sort_keys=True)

    @property
    def parameters(self) -> Json:
        """The parameters of the function, as data."""
        found: list[Json] = []
        for one in self._signature.parameters.values():
            entry: dict[str, Json] = {"name": one.name, "kind": one.kind.name}
            if _is_plain(one.default):
                entry["default"] = one.default
            elif one.default is not inspect.Parameter.empty:
                entry["optional"] = True
            found.append(entry)
        return found

    def program(self, args: Any, kwargs: Any) -> ExportedProgram:
        """Return the program for arguments like those of this call."""
        return export_program(self.function, (*self._owner, *args), kwargs, self._op_name)

    def input_names(self) -> list[str]:
        """Return the name of each tensor in a signature: of its spec, or of its parameter."""
        places = bound(self._signature, *self._places).arguments
        names: dict[int, str] = {}
        for name, value in places.items():
            kind = self._signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                value = {f"{name}_{at}": part for at, part in enumerate(value)}
            _name_tensors(value, name, names)
        wanted = [names[index] for index in sorted(names)]
        found: list[str] = []
        for at, name in enumerate(wanted):
            own, number = name, at
            while own in found or (own != name and own in wanted):
                own, number = f"{name}_{number}", number + 1
            found.append(own)
        return found


def _name_tensors(value: Any, name: str, names: dict[int, str]) -> None:
    if isinstance(value, _values.Tensor):
        names[value.index] = (value.spec.name or name).split(":")[0]
    elif isinstance(value, Mapping):
        for key, part in value.items():
            _name_tensors(part, str(key), names)
    elif isinstance(value, list | tuple):
        parts = value.parts if isinstance(value, ComplexTensor) else value
        for at, part in enumerate(parts):
            _name_tensors(part, f"{name}_{at}" if at else name, names)


def _is_plain(value: Any) -> bool:
    return value is None or type(value) in (bool, int, float, str)


def bound(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> inspect.BoundArguments:
    """Return the arguments of a call with the defaults that are plain values."""
    found = signature.bind(*args, **kwargs)
    for name, parameter in signature.parameters.items():
        if name not in found.arguments and _is_plain(parameter.default):
            found.arguments[name] = parameter.default
    order = [name for name in signature.parameters if name in found.arguments]
    found.arguments = {name: found.arguments[name] for name in order}
    return found


def _place(leaf: Any, numbers: Any, op_name: str) -> Any:
    if isinstance(leaf, TensorSpec):
        if leaf.shape.rank is None:
            raise TypeError(
                f"[{op_name}] a function is exported for tensors of known rank: got a shape of "
                "None; give the sizes, None for those that vary."
            )
        return _values.Tensor(next(numbers), leaf)
    return leaf() if isinstance(leaf, weakref.ref) else leaf


def _tensor(leaf: Any) -> _values.Tensor | None:
    return leaf if isinstance(leaf, _values.Tensor) else None


def saveables(function: Any, op_name: str = "saved_model.save") -> list[Saveable]:
    """Return the calls of a function that are exported.

    Args:
        function: A `tf.function`, one of its methods or concrete functions, or a loaded function.
        op_name: The public function that exports it, for messages.

    Raises:
        TypeError: It is not a `tf.function`, or was called with what no other process can pass.
    """
    made = partial(Saveable, op_name=op_name)
    if isinstance(function, Function):
        return _calls(function, [], made)
    if isinstance(function, BoundFunction):
        return _calls(function._function, [function._owner], made)
    if isinstance(function, ConcreteFunction):
        args, kwargs = function.structured_input_signature
        owner = [args[0]] if args and not _is_argument(args[0]) else []
        return [made(function._function, owner, args[len(owner) :], kwargs)]
    if hasattr(function, "_saved_calls"):
        return [made(one, [], args, kwargs) for one, args, kwargs in function._saved_calls()]
    raise TypeError(f"[{op_name}] a function is a tf.function: got {function!r:.60}.")


def _is_argument(value: Any) -> bool:
    return all(isinstance(leaf, TensorSpec) or _is_plain(leaf) for leaf in flatten(value))


def _calls(function: Function, owner: list[Any], made: Callable[..., Saveable]) -> list[Saveable]:
    if function.input_signature is not None:
        return [made(function, owner, function.input_signature, {})]
    calls = function._traces.calls
    found: dict[Any, Saveable] = {}
    for args, kwargs in _of(owner, calls.all):
        one = made(function, owner, args, kwargs)
        found.setdefault(one.key, one)
    if found:
        return list(found.values())
    for args, kwargs in _of(owner, calls.inner):
        with contextlib.suppress(TypeError):  # the program that called it contains it
            one = made(function, owner, args, kwargs)
            found.setdefault(one.key, one)
    return list(found.values())


def _of(owner: list[Any], calls: list[Call]) -> Iterator[tuple[Any, Any]]:
    """The calls of a method of one object, without it; those of a function."""
    for args, kwargs in calls:
        if not owner:
            yield args, kwargs
        elif args and isinstance(args[0], weakref.ref) and args[0]() is owner[0]:
            yield args[1:], kwargs


def exported(one: Saveable) -> Program:
    """Return the program of a call."""
    name = one.function._traces.name
    traced = one.program(one.args, one.kwargs)
    numbers = iter(range(len(flatten(traced.result))))

    def place(leaf: Any) -> Any:
        if not is_tensor(leaf):
            return leaf
        tensor = leaf if isinstance(leaf, _core.Tensor) else leaf._as_tensor()
        return _values.Tensor(next(numbers), TensorSpec.from_tensor(tensor))

    outputs = map_structure(place, traced.result)
    return Program(
        name,
        traced.graph,
        [np.asarray(constant.numpy()) for constant in traced.constants],
        traced.cells,
        {id(r._met): (r._message, r._error.__name__) for r in traced.requirements},
        one.inputs,
        _values.encode(outputs, _tensor, f"[{one._op_name}] the results of {name!r}"),
        traced.one_replica,
    )
