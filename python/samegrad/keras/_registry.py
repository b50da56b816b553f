"""Objects by name or by configuration: what arguments like `activation="relu"` mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from samegrad._shown import shown

T = TypeVar("T")


def find(kind: str, names: Mapping[str, Callable[..., T]], identifier: object) -> T:
    """The object that an argument asks for, made if the argument names its class.

    Args:
        kind: What is looked for, for messages.
        names: Classes (or functions that make objects) by name.
        identifier: A name, {"class_name": ..., "config": {...}}, a class, or the object itself.

    Returns:
        The object.

    Raises:
        ValueError: There is no such name.

    Example:
        >>> find("Greeting", {"hello": lambda: "Hello!"}, "hello")
        'Hello!'
    """
    if isinstance(identifier, str):
        return _named(kind, names, identifier)()
    if isinstance(identifier, dict) and "class_name" in identifier:
        return _named(kind, names, identifier["class_name"])(**identifier.get("config", {}))
    made: Any = identifier() if isinstance(identifier, type) else identifier
    if callable(made):
        return made  # type: ignore[no-any-return]
    raise ValueError(
        f"[{kind}] a name, a configuration or a function is needed: got {shown(identifier)}; names "
        f"are {', '.join(sorted(names))}."
    )


def _named(kind: str, names: Mapping[str, Callable[..., T]], name: str) -> Callable[..., T]:
    if name not in names:
        raise ValueError(
            f"[{kind}] no such name: got {shown(name)}; there are {', '.join(sorted(names))}."
        )
    return names[name]
