"""Objects that own variables, and find those of all that they hold."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from samegrad import nest
from samegrad._autodiff.variable import Variable
from samegrad._base.shown import shown
from samegrad._base.tracebacks import keep_user_frames
from samegrad._context.scopes import name_scope
from samegrad.train._trackable import is_trackable, restore_pending

__all__ = ["Module"]


class Module:
    """A named object that owns variables, other modules and layers of Keras.

    What it owns are its attributes, and members of lists, tuples and dicts of them. A checkpoint of
    a module stores them under the names of the attributes.

    Args:
        name: A Python identifier; None: the name of the class in snake case.

    Raises:
        ValueError: The name is not an identifier.

    Example:
        >>> import samegrad as tf
        >>> class Scale(tf.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.factor = tf.Variable(2.0, name="factor")
        ...         self.calls = tf.Variable(0, trainable=False, name="calls")
        ...     def __call__(self, x):
        ...         self.calls.assign_add(1)
        ...         return self.factor * x
        >>> scale = Scale()
        >>> float(scale(3.0)), scale.name, [v.name for v in scale.trainable_variables]
        (6.0, 'scale', ['factor:0'])
    """

    def __init__(self, name: str | None = None) -> None:
        name = _snake_case(type(self).__name__) if name is None else name
        if not (isinstance(name, str) and name.isidentifier()):
            raise ValueError(
                f"[Module] a name must be a Python identifier: got {shown(name)}. Choose one of "
                "letters, digits and underscores."
            )
        self._name = name

    @property
    def name(self) -> str:
        """The name given, or that of the class in snake case."""
        try:
            return str(self._name)
        except AttributeError:
            raise AttributeError(
                f"[{type(self).__name__}] a module must be initialized before its name is asked "
                "for: call super().__init__() in its __init__."
            ) from None

    @property
    def name_scope(self) -> name_scope:
        """A scope of the module's name, for variables that are made in it."""
        return name_scope(self.name)

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a method so that it runs in the module's name scope.

        Args:
            method: Method of the class.

        Returns:
            Method that enters `name_scope` first.

        Example:
            >>> import samegrad as tf
            >>> class Scale(tf.Module):
            ...     @tf.Module.with_name_scope
            ...     def build(self):
            ...         return tf.Variable(1.0, name="factor")
            >>> Scale().build().name
            'scale/factor:0'
        """

        @functools.wraps(method)
        def scoped(self: Module, *args: Any, **options: Any) -> Any:
            try:
                with self.name_scope:
                    return method(self, *args, **options)
            except Exception as error:
                keep_user_frames(error)
                raise

        return scoped

    @property
    def variables(self) -> tuple[Any, ...]:
        """All variables, each once: its own by the names of its attributes, then its modules'."""
        return _each_once(self, lambda owner: owner.variables)

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        """The variables that are trained."""
        found = _each_once(self, lambda owner: owner.trainable_variables)
        return tuple(v for v in found if v.trainable)

    @property
    def non_trainable_variables(self) -> tuple[Any, ...]:
        """The other variables."""
        trained = {id(v) for v in self.trainable_variables}
        return tuple(v for v in self.variables if id(v) not in trained)

    @property
    def submodules(self) -> tuple[Module, ...]:
        """All modules in it, however deep."""
        return tuple(part for part in _walk(self) if isinstance(part, Module))[1:]

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if _has_state(value):
            restore_pending(self)

    def _checkpoint_state(self) -> Mapping[str, Any]:
        parts = {name: _with_state(value) for name, value in sorted(vars(self).items())}
        return {name: part for name, part in parts.items() if part is not None}

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        raise AssertionError("a module has no values beside its variables")


def _snake_case(name: str) -> str:
    spaced = re.sub(r"([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])", r"\1\3_\2\4", name)
    return spaced.lower()


def _is_layer(value: Any) -> bool:
    """Tell if it owns variables like a layer of Keras."""
    return hasattr(value, "trainable_variables") and hasattr(value, "variables")


def _walk(root: Module) -> Iterator[Any]:
    """The module, what it owns, and what the modules in it own: each object once."""
    seen: set[int] = {id(root)}
    modules: list[Module] = [root]
    while modules:
        module = modules.pop(0)
        yield module
        inner: list[Module] = []
        for name in sorted(vars(module)):
            for part in nest.flatten(vars(module)[name]):
                if id(part) in seen:
                    continue
                seen.add(id(part))
                if isinstance(part, Module):
                    inner.append(part)
                elif isinstance(part, Variable) or _is_layer(part):
                    yield part
        modules = inner + modules


def _each_once(root: Module, of_layer: Callable[[Any], Any]) -> tuple[Any, ...]:
    found: dict[int, Any] = {}
    for part in _walk(root):
        if isinstance(part, Module):
            continue
        for variable in [part] if isinstance(part, Variable) else of_layer(part):
            found.setdefault(id(variable), variable)
    return tuple(found.values())


def _has_state(value: Any) -> bool:
    return any(is_trackable(part) for part in nest.flatten(value))


def _with_state(value: Any) -> Any:
    """The value without what has no state: numbers, names, functions; None if that is all."""
    if is_trackable(value):
        return value
    if isinstance(value, Mapping):
        kept = {name: _with_state(part) for name, part in value.items()}
        return {name: part for name, part in kept.items() if part is not None} or None
    if isinstance(value, list | tuple):
        # By its place, so that what has no state may come or go behind it.
        kept = {str(i): _with_state(part) for i, part in enumerate(value)}
        return {name: part for name, part in kept.items() if part is not None} or None
    return None
