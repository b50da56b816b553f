"""Atomic building and changes of Keras's objects."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from samegrad import _core
from samegrad._autodiff.variable import Variable as EngineVariable
from samegrad._autodiff.variable import step_of
from samegrad._keras.scopes import before_call, keep_pending, keeping_scopes, put_back


def building(owner: Any, build: Callable[[], object]) -> None:
    """Give an object its parts: after an exception it has those that it had before.

    The numbers that first values were drawn with are given back, so that another try draws the
    same. This is not a context manager: one that is written as a generator, and is interrupted as
    it ends, ends once more when it is freed, and would take from the object what it got meanwhile.

    Args:
        owner: A layer, an optimizer or a metric.
        build: Makes the parts.
    """
    tracker = getattr(owner, "_tracker", None)
    held = [] if tracker is None else [tracker.stored_ids, vars(tracker)]
    held += [value for value in vars(owner).values() if isinstance(value, list | dict)]
    before, scopes = [_copied(container) for container in held], before_call()
    with _core.all_or_nothing(owner):
        try:
            build()
        except BaseException:
            for container, content in zip(held, before, strict=True):
                _restore(container, content)
            put_back(scopes)
            raise
    keep_pending()


def _copied(container: Any) -> Any:
    if isinstance(container, list):
        return list(container)
    return {key: set(part) if isinstance(part, set) else part for key, part in container.items()}


def _restore(container: Any, content: Any) -> None:
    # Not by their own methods: those track what is put in.
    if isinstance(container, list):
        list.__setitem__(container, slice(None), content)
    else:
        dict.clear(container)
        dict.update(container, content)


def changing(variables: Any) -> Any:
    """Inside, eager code changes all of these variables, or after an exception none.

    Args:
        variables: Of Keras or samegrad; those without a value are left out.
    """
    if _core.tracing():  # what is traced becomes one step of the engine
        return step_of()
    inner = [v if isinstance(v, EngineVariable) else getattr(v, "_value", None) for v in variables]
    return step_of(*(variable for variable in inner if isinstance(variable, EngineVariable)))


def as_one_change(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method of a metric, which changes all of the metric's variables or none."""

    @functools.wraps(method)
    @keeping_scopes
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        with changing(self.variables):
            return method(self, *args, **kwargs)

    return whole
