"""Arguments bound to the parameters of a function, as Python binds them but sooner."""

from __future__ import annotations

import inspect
from typing import Any

_PLAIN, _REST = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_KEYWORD
_MISSING = inspect.Parameter.empty
_MAX_KNOWN = 4096
_Known = tuple[dict[str, Any], frozenset[str], tuple[str, ...]]
_known: dict[int, tuple[inspect.Signature, _Known]] = {}


def parameters_of(signature: inspect.Signature) -> _Known:
    """The defaults of plain parameters, which must be given, and the name of `**kwargs`.

    No call fits where there are parameters of other kinds. Python makes the properties of a
    parameter anew whenever they are asked for.

    Args:
        signature: Of a function.

    Example:
        >>> names = parameters_of(inspect.signature(lambda x, training=None, **more: x))
        >>> list(names[0]), names[1], names[2]
        (['x', 'training'], frozenset({'x'}), ('more',))
    """
    # The signature is kept, so that no other one gets its id.
    known = _known.get(id(signature))
    if known is None:
        parts = list(signature.parameters.values())
        rest = tuple(part.name for part in parts if part.kind is _REST)
        plain = {part.name: part.default for part in parts if part.kind is _PLAIN}
        required = {name for name, default in plain.items() if default is _MISSING}
        if len(plain) + len(rest) < len(parts):
            required.add("")
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        known = _known[id(signature)] = signature, (plain, frozenset(required), rest)
    return known[1]


def bound(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Bind a call's arguments by name, without the defaults and with them.

    Args:
        signature: Signature of the function.
        args: Positional arguments.
        kwargs: Keyword arguments.

    Returns:
        Dicts of the arguments, without and with defaults.

    Raises:
        TypeError: The arguments do not fit the signature.

    Example:
        >>> bound(inspect.signature(lambda x, training=None: x), (1,), {})
        ({'x': 1}, {'x': 1, 'training': None})
    """
    plain, required, rest = parameters_of(signature)
    given = {**dict(zip(plain, args, strict=False)), **kwargs}
    fits = len(given) == len(args) + len(kwargs) and required <= given.keys() <= plain.keys()
    if not fits:
        return _bound(signature, args, kwargs)
    if len(kwargs) > 1:  # in the order of the parameters
        given = {name: given[name] for name in plain if name in given}
    return given, {**plain, **given, **{name: {} for name in rest}}


def _bound(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Bind like `bound`, by Python's own binding."""
    found = signature.bind(*args, **kwargs)
    given = dict(found.arguments)
    found.apply_defaults()
    return given, found.arguments
