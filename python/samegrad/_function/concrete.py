"""Functions for arguments of one signature: `Function.get_concrete_function`."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from samegrad._base.shown import shown
from samegrad._base.tracebacks import keep_user_frames
from samegrad._base.tree import flatten, is_nested, map_structure
from samegrad._function.signature import conform, open_axes, stand_in
from samegrad._tensor.spec import TensorSpec
from samegrad._tensor.tensor import Tensor, is_tensor

if TYPE_CHECKING:
    from samegrad._function.function import Function


class ConcreteFunction:
    """A function for one signature: a call passes the tensors, all else is what it was made with.

    Args:
        function: The function.
        args: Tensors or `TensorSpec`s, and values of Python.
        kwargs: The same by name.

    Example:
        >>> import samegrad as tf
        >>> power = tf.function(lambda x, n: x**n)
        >>> cube = power.get_concrete_function(tf.TensorSpec([], tf.float32), 3)
        >>> float(cube(tf.constant(2.0)))
        8.0
    """

    def __init__(self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._function = function
        self._bound = inspect.signature(function.python_function).bind(*args, **kwargs)
        try:
            self._bound.arguments = map_structure(_spec_of, dict(self._bound.arguments))
        except RecursionError:
            raise ValueError(
                "[get_concrete_function] an argument is nested too deep, or contains itself: got "
                f"{shown(args)}; make it flat."
            ) from None
        self._names = [
            name
            for name, value in self._bound.arguments.items()
            if any(isinstance(leaf, TensorSpec) for leaf in flatten(value))
        ]
        leaves = flatten((self._bound.args, self._bound.kwargs))
        self._lengths = [open_axes(leaf) for leaf in leaves if isinstance(leaf, TensorSpec)]
        self._results = self._traced()

    @property
    def name(self) -> str:
        """The name of the function."""
        return str(getattr(self._function, "__name__", "function"))

    @property
    def inputs(self) -> list[TensorSpec]:
        """The specs of the tensors that a call passes."""
        leaves = [leaf for name in self._names for leaf in flatten(self._bound.arguments[name])]
        return [leaf for leaf in leaves if isinstance(leaf, TensorSpec)]

    @property
    def structured_input_signature(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of the trace: specs for tensors, Python values as they are."""
        return self._bound.args, self._bound.kwargs

    @property
    def structured_outputs(self) -> Any:
        """Specs of the results, in their structure."""
        return self._results

    @property
    def outputs(self) -> list[TensorSpec]:
        """Specs of all tensors among the results."""
        return [leaf for leaf in flatten(self._results) if isinstance(leaf, TensorSpec)]

    @property
    def output_shapes(self) -> Any:
        """The shapes of the results, in their structure."""
        return map_structure(lambda s: getattr(s, "shape", None), self._results)

    @property
    def output_dtypes(self) -> Any:
        """The dtypes of the results, in their structure."""
        return map_structure(lambda s: getattr(s, "dtype", None), self._results)

    def _traced(self) -> Any:
        """Specs of the results, of a trace that calls will find."""
        stands = [stand_in(spec) for spec in self.inputs]
        if None in [None if stand is None else 0 for stand in stands]:
            return None  # each call's rank has a trace of its own
        filled = self._filled(iter(stands))
        result = self._function._result_of(filled.args, filled.kwargs, self._lengths)
        return map_structure(lambda leaf: _spec_of(leaf) if is_tensor(leaf) else leaf, result)

    def _filled(self, tensors: Any) -> inspect.BoundArguments:
        def fill(leaf: Any) -> Any:
            return next(tensors) if isinstance(leaf, TensorSpec) else leaf

        made = {name: map_structure(fill, self._bound.arguments[name]) for name in self._names}
        arguments = dict(self._bound.arguments) | made
        return inspect.BoundArguments(self._bound.signature, arguments)

    def _given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Return the tensors of a call, in the order of `inputs`."""
        by_name = [name for name in self._names if name not in kwargs]
        fixed = {n: v for n, v in self._bound.arguments.items() if n not in self._names}
        if len(args) > len(by_name) and len(args) == len(self._bound.arguments) - len(kwargs):
            names = [n for n in self._bound.arguments if n not in kwargs]
            by_name = names
        values = dict(zip(by_name, args, strict=False)) | kwargs
        if len(args) <= len(by_name) and set(self._names) <= set(values):
            changed = [n for n in values if n not in self._names and values[n] != fixed.get(n)]
            if not changed:
                return [leaf for name in self._names for leaf in self._tensors_of(name, values)]
        if not kwargs and len(args) == len(self.inputs):  # one after the other, without structure
            return list(args)
        raise TypeError(
            f"[{self.name}] a concrete function takes its tensors, {', '.join(self._names)}, and "
            f"nothing else: got {len(args)} arguments {shown(list(args))}"
            f"{' and ' + ', '.join(kwargs) if kwargs else ''}; call the samegrad.function for "
            "other arguments."
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the results for tensors that have the specs.

        Raises:
            TypeError: A tensor is missing, or has another dtype or shape.
        """
        try:
            return self._called(args, kwargs)
        except Exception as error:
            keep_user_frames(error)
            raise

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given, specs = self._given(args, kwargs), self.inputs
        if len(given) != len(specs):
            raise TypeError(
                f"[{self.name}] a concrete function takes {len(specs)} tensors: got {len(given)}; "
                "pass one for each of its inputs."
            )
        pairs = zip(given, specs, strict=True)
        tensors = [conform(value, spec, self.name) for value, spec in pairs]
        filled = self._filled(iter(tensors))
        return self._function._called(filled.args, filled.kwargs, self._lengths)

    def _tensors_of(self, name: str, values: dict[str, Any]) -> list[Any]:
        """Return what a call passes for the tensors of one argument."""
        template, found = self._bound.arguments[name], []

        def take(leaf: Any, value: Any) -> None:
            if isinstance(leaf, TensorSpec):
                found.append(value)

        if is_nested(template):
            map_structure(take, template, values[name])
        else:
            take(template, values[name])
        return found

    def __repr__(self) -> str:
        signature = ", ".join(f"{n}={shown(v)}" for n, v in self._bound.arguments.items())
        return f"<samegrad.ConcreteFunction {self.name}({signature})>"


def _spec_of(value: Any) -> Any:
    if not is_tensor(value) or hasattr(value, "assign_add"):  # a variable stays itself
        return value
    tensor: Tensor = value if isinstance(value, Tensor) else value._as_tensor()
    return TensorSpec.from_tensor(tensor)
