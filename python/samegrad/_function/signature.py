"""Signatures of functions: what `input_signature` and concrete functions take."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from samegrad._base.shown import shown
from samegrad._base.tree import flatten, map_structure, values
from samegrad._tensor.complex_tensor import ComplexTensor, to_complex
from samegrad._tensor.spec import TensorSpec
from samegrad._tensor.tensor import Tensor, constant, convert_to_tensor


def conform(value: Any, spec: TensorSpec, who: str) -> Any:
    """The value as a tensor that has the spec; rows of which any number may come count examples.

    Raises:
        TypeError: It does not have the spec.
    """
    if getattr(value, "_is_per_replica", False):
        return value
    if not isinstance(value, Tensor):
        try:
            plain = not (hasattr(type(value), "_as_tensor") or isinstance(value, np.generic))
            value = convert_to_tensor(value, spec.dtype if plain else None)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"[{who}] an argument must have its signature {spec}: got {shown(value)}; pass a "
                "tensor of that dtype."
            ) from error
    if not spec.is_compatible_with(value):
        raise TypeError(
            f"[{who}] an argument must have its signature {spec}: got shape "
            f"{tuple(value._shape)} and dtype {value._dtype}; reshape or cast it, or give "
            "another signature."
        )
    any_rows = spec.shape.rank and spec.shape[0] is None
    if any_rows and not value._symbolic and value._example_axis is None:
        return value._as_examples(0, 1)
    return value


class InputSignature:
    """The `input_signature` of a function, common to all its calls.

    Args:
        specs: A spec for each positional argument, in its structure; a TensorSpec at each leaf.
        function: The function.
        who: The name of the function in errors.

    Attributes:
        lengths: Per array of a call, bits of the axes whose sizes are open.

    Raises:
        TypeError: The specs are not a sequence of specs, or the function takes fewer arguments.
    """

    def __init__(self, specs: Sequence[Any], function: Callable[..., Any], who: str) -> None:
        if not isinstance(specs, list | tuple):
            raise TypeError(
                f"[function] input_signature must be a list or tuple, one spec for each argument: "
                f"got {shown(specs)}; pass [tf.TensorSpec(shape, dtype)]."
            )
        map_structure(_check_spec, list(specs))
        self._specs, self._who = tuple(specs), who
        self.lengths = [open_axes(spec) for spec in flatten(tuple(specs))]
        self._signature = inspect.signature(function)
        names = list(self._signature.parameters)
        # Of a function in a class, the object comes first.
        self._own = 1 if names and names[0] == "self" else 0
        self._names = names[self._own : self._own + len(specs)]
        if len(self._names) < len(specs) and not _takes_more(self._signature):
            raise TypeError(
                f"[{who}] input_signature has a spec for each argument: got {len(specs)} for "
                f"{len(names) - self._own}; leave the others out."
            )

    @property
    def specs(self) -> tuple[Any, ...]:
        """The spec, or the structure of specs, of each argument."""
        return self._specs

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return all positional arguments of a call, as tensors.

        Raises:
            TypeError: An argument is missing, one too many, or has another dtype or shape.
        """
        own, given = args[: self._own], list(args[self._own :])
        more = dict(kwargs)
        for name in self._names[len(given) :]:
            if name in more:
                given.append(more.pop(name))
        if len(given) != len(self._specs) or more:
            got = f"{len(given)} of them" + (f" and {', '.join(more)}" if more else "")
            raise TypeError(
                f"[{self._who}] the call has as many arguments as input_signature has specs, "
                f"{len(self._specs)}: got {got}; leave input_signature out to pass others."
            )
        pairs = zip(self._specs, given, strict=True)
        return (*own, *(self._bound(spec, value) for spec, value in pairs))

    def _bound(self, spec: Any, value: Any) -> Any:
        if not values.is_nested(spec):
            return self._conform(spec, value)
        try:
            return values.map_structure(self._conform, spec, value)
        except (KeyError, ValueError) as error:
            raise TypeError(
                f"[{self._who}] an argument must have the structure of its signature {spec}: got "
                f"{shown(value)}; pass the same lists, tuples and keys."
            ) from error

    def _conform(self, spec: Any, value: Any) -> Any:
        if not isinstance(spec, ComplexTensor):
            return conform(value, spec, self._who)
        pairs = zip(to_complex(value, self._who, spec.dtype).parts, spec.parts, strict=True)
        return ComplexTensor(*(conform(part, own, self._who) for part, own in pairs))


def open_axes(spec: TensorSpec) -> int:
    """Return the bits of the axes whose size is None.

    Example:
        >>> open_axes(TensorSpec([None, 3, None], "float32"))
        5
    """
    sizes = () if spec.shape.rank is None else spec.shape
    return sum(1 << axis for axis, size in enumerate(sizes) if size is None)


def _check_spec(spec: Any) -> None:
    if not isinstance(spec, TensorSpec):
        raise TypeError(
            f"[function] input_signature has a TensorSpec for each tensor: got {shown(spec)}; "
            "pass tf.TensorSpec(shape, dtype)."
        )


def _takes_more(signature: inspect.Signature) -> bool:
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    return inspect.Parameter.VAR_POSITIONAL in kinds


def stand_in(spec: TensorSpec) -> Tensor | None:
    """Return zeros for a trace that serves every tensor of the spec; None for an unknown rank.

    Example:
        >>> stand_in(TensorSpec((2,), "float32")).numpy()
        array([0., 0.], dtype=float32)
    """
    if spec.shape.rank is None:
        return None
    # Lengths that no other size is likely to have: nothing is then taken for granted by chance.
    sizes = [_LENGTH + axis if size is None else size for axis, size in enumerate(spec.shape)]
    if sizes and spec.shape[0] is None:
        return constant(0, spec.dtype, (2, *sizes[1:]))._as_examples(0, 1)
    return constant(0, spec.dtype, tuple(sizes))


_LENGTH = 37
