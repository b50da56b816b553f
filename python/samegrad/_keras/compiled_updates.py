"""Compiled updates of optimizers outside of functions.

An update outside of functions calls an operation at a time, each through Keras's Python code. From
the third update of the same variables on, it is one compiled program with the same bits, as
`torch.optim` has fused updates.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from keras.src.backend.common.stateless_scope import in_stateless_scope
from keras.src.backend.common.variables import get_autocast_scope

import samegrad as tf
from samegrad import _core
from samegrad._context import state as _context
from samegrad._context.weak import WeakIds
from samegrad._keras.variable import Variable
from samegrad._tensor.tensor import Tensor, convert_to_tensor

_Update = Callable[[Any, Sequence[Any], Sequence[Any], Any], None]

_UPDATES_BEFORE = 2  # of the same variables: a program of a few steps compiles nothing
_CONSTANTS = frozenset({bool, int, float, str, type(None)})
_MOST_PROGRAMS = 8  # of an optimizer: its sets of variables, and values of its attributes


class _Program:
    """The update of a set of variables by one state of an optimizer's attributes.

    Attributes:
        pinned: Objects whose identities are in the key.
        calls: Updates before there was a function.
        function: Compiled update, called with the learning rate and the gradients.
    """

    def __init__(self, pinned: list[Any]) -> None:
        self.pinned = pinned
        self.calls = 0
        self.function: Callable[..., Any] | None = None


_programs: WeakIds[dict[Hashable, _Program]] = WeakIds()


def update_compiled(
    optimizer: Any,
    update: _Update,
    gradients: Sequence[Any],
    variables: Sequence[Any],
    learning_rate: Any,
) -> None:
    """Call `update`, by a compiled program if the same variables were updated before.

    Args:
        optimizer: Optimizer, built for the variables.
        update: Function of the optimizer, gradients, variables and the learning rate.
        gradients: One tensor per variable.
        variables: Variables of Keras.
        learning_rate: Number or scalar tensor.
    """
    program = None
    if _may_compile(optimizer, gradients, variables):
        program = _program_of(optimizer, variables)
        if program.function is None and program.calls == _UPDATES_BEFORE:
            program.function = _compiled(optimizer, update, variables)
        program.calls += 1
    if program is not None and program.function is not None:
        program.function(convert_to_tensor(learning_rate), *gradients)
    else:
        update(optimizer, gradients, variables, learning_rate)


def _may_compile(optimizer: Any, gradients: Sequence[Any], variables: Sequence[Any]) -> bool:
    if _core.tracing() or _context.settings.functions_run_eagerly or in_stateless_scope():
        return False
    if _context.current().strategy is not None or get_autocast_scope() is not None:
        return False
    if not type(optimizer).update_step.__module__.startswith("keras.src.optimizers."):
        return False  # the program's own Python code runs in each step
    return all(map(_is_plain, gradients, variables))


def _is_plain(gradient: Any, variable: Any) -> bool:
    return (
        type(gradient) is Tensor
        and not gradient._varying
        and not gradient._recorded  # by a tape around the update
        and type(variable).assign is Variable.assign
        and variable._value is not None
    )


def _program_of(optimizer: Any, variables: Sequence[Any]) -> _Program:
    programs = _programs.get(optimizer)
    if programs is None:
        programs = {}
        _programs.set(optimizer, programs)
    # What an update reads: numbers by value; variables, and lists of slots, by identity.
    read = [*vars(optimizer).values(), *variables, *(v._value for v in variables)]
    key = tuple([x if type(x) in _CONSTANTS else (id(x),) for x in read])
    program = programs.get(key)
    if program is None:
        if len(programs) == _MOST_PROGRAMS:
            del programs[next(iter(programs))]
        program = programs[key] = _Program(read)
    return program


def _compiled(optimizer: Any, update: _Update, variables: Sequence[Any]) -> Callable[..., Any]:
    """Return the update as a function, which does not keep the optimizer alive."""
    of, fixed = weakref.ref(optimizer), list(variables)

    def compiled_update(learning_rate: Tensor, *gradients: Tensor) -> None:
        update(of(), gradients, fixed, learning_rate)

    return tf.function(compiled_update, autograph=False)
