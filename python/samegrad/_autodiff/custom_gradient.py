"""Gradients that the program gives itself, and values computed twice instead of kept."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from samegrad import _core
from samegrad._autodiff.tape import GradientTape
from samegrad._autodiff.variable import Variable, variable_of
from samegrad._base.dtypes import as_dtype
from samegrad._base.shown import shown
from samegrad._base.tracebacks import keep_user_frames
from samegrad._base.tree import flatten, map_structure
from samegrad._context import state as _context
from samegrad._context.user_code import converted
from samegrad._control.carried_values import can_be_tensor
from samegrad._tensor.sizes import may_be_as_large
from samegrad._tensor.tensor import Tensor, convert_to_tensor

# Gradient functions that are traced inside one another: they may call each other forever.
_DEEPEST = 6
# By the numbers of the engine's kinds of errors.
_KINDS = (ValueError, TypeError, RuntimeError, IndexError, NotImplementedError)


class _Decorated:
    """A function whose calls are made by another one, methods included."""

    def __init__(self, function: Callable[..., Any], call: Callable[..., Any]) -> None:
        self._function = function
        self._call = call
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._call(self._function, args, kwargs)
        except Exception as error:
            keep_user_frames(error)
            raise

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        return _Decorated(self._function.__get__(instance, owner), self._call)


def custom_gradient(f: Callable[..., Any] | None = None) -> Any:
    """Decorate a function with its own gradient function.

    Args:
        f: A function of tensors (in any structure, with other arguments) that returns a pair: the
            result, tensors in any structure, and `grad_fn`. `grad_fn` takes the gradient by each
            tensor of the result, of its shape and dtype (zeros where nothing flows). It returns the
            gradient by each tensor among the arguments (arrays, numbers and variables count; named
            arguments do not), of the argument's shape and dtype, or None. If `f` reads trainable
            variables that are not its arguments, `grad_fn` must take `variables` as well, a list of
            them, and return a pair: the gradients by the arguments, and a list of those by the
            variables.

    Returns:
        A function with the arguments of `f` that returns its result. Derivatives of higher order
        are those of what `grad_fn` computes. In a `samegrad.function` and in `strategy.run`,
        `grad_fn` is traced with the call; errors in it are raised when a gradient is taken.

    Raises:
        TypeError: `f` is not a function, does not return such a pair, or its gradient function
            lacks `variables`; a gradient has another dtype.
        ValueError: The number of gradients is not that of the arguments, or a gradient has another
            shape.

    Example:
        >>> import samegrad as tf
        >>> @tf.custom_gradient
        ... def log1pexp(x):
        ...     e = tf.exp(x)
        ...     return tf.math.log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))
        >>> x = tf.constant(100.0)
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = log1pexp(x)
        >>> float(tape.gradient(y, x))
        1.0
    """
    if f is None:
        return custom_gradient
    if not callable(f):
        raise TypeError(f"[custom_gradient] f must be a function: got {shown(f)}.")
    return _Decorated(f, _call_with_gradient)


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose gradient is that of the identity.

    Args:
        f: A function of tensors, which returns tensors of their shapes.

    Returns:
        A function with the results of `f`; gradients pass through it unchanged.

    Raises:
        TypeError: `f` is not a function.

    Example:
        >>> import samegrad as tf
        >>> x, rounded = tf.Variable(2.6), grad_pass_through(tf.round)
        >>> with tf.GradientTape() as tape:
        ...     y = rounded(x)
        >>> float(y), float(tape.gradient(y, x))
        (3.0, 1.0)
    """
    if not callable(f):
        raise TypeError(f"[grad_pass_through] a function is needed: got {shown(f)}.")

    @custom_gradient
    def passing(*args: Any, **kwargs: Any) -> Any:
        def gradient(*upstream: Any) -> Any:
            return upstream[0] if len(upstream) == 1 else upstream

        return f(*args, **kwargs), gradient

    return functools.wraps(f)(passing) if hasattr(f, "__name__") else passing


def recompute_grad(f: Callable[..., Any]) -> Any:
    """Decorate a function so that its intermediate values are recomputed for its gradient.

    It costs one more run of `f`. Only arguments and results are in memory between the call and the
    gradient. `Function.explain` tells the memory that a compiled step needs. Values that pass
    through a loop over examples, tile by tile, need no memory anyway. Random samples are the same
    in both runs, except those of a `samegrad.function` that eager code calls in `f`.

    Args:
        f: A function of tensors in any structure, and of named arguments that are not
            differentiated, that returns tensors in any structure. It may read variables. An
            assignment in it runs once more.

    Returns:
        A function with the arguments and the result of `f`.

    Raises:
        TypeError: `f` is not a function.

    Example:
        >>> import samegrad as tf
        >>> x = tf.constant(2.0)
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = tf.recompute_grad(lambda x: tf.exp(tf.square(x)))(x)
        >>> round(float(tape.gradient(y, x)), 3)
        218.393
    """
    if not callable(f):
        raise TypeError(f"[recompute_grad] f must be a function: got {shown(f)}.")
    return _Decorated(f, _call_and_forget)


def _call_with_gradient(f: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    given = _tensors_of(args)
    first = _core.count_reads()
    made = converted(f)(*args, **kwargs)
    if not isinstance(made, tuple | list) or len(made) != 2 or not callable(made[1]):
        raise TypeError(
            f"[custom_gradient] {_name(f)} must return its result and a gradient function: got "
            f"{shown(made)}."
        )
    result, grad_fn = made
    variables = _variables_read(first, given)
    if variables and not _takes_variables(grad_fn):
        raise TypeError(
            f"[custom_gradient] {_name(f)} reads {shown(variables[0].name)}, a trainable variable: "
            "its gradient function must take variables=None and return a pair (gradients of the "
            "arguments, gradients of the variables)."
        )

    def gradients(cts: Sequence[Tensor]) -> Any:
        if not variables:
            return converted(grad_fn)(*cts), []
        pair = converted(grad_fn)(*cts, variables=list(variables))
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(
                f"[custom_gradient] the gradient function of {_name(f)} must return a pair "
                f"(gradients of the arguments, gradients of the variables): got {shown(pair)}."
            )
        return pair

    return _with_gradient(f, result, given, variables, gradients)


def _call_and_forget(f: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    given = _tensors_of(args)
    draws = _core.draws()
    if draws is None:  # no tape
        return f(*args, **kwargs)
    if _core.tracing():
        first = _core.count_reads()
        result = converted(f)(*args, **kwargs)
        variables = _variables_read(first, given)
    else:  # a tape of its own, which is dropped with what it keeps
        with _core.no_trace(), GradientTape():
            _core.count_reads()
            first_draw = _drawn()[2]
            result = f(*args, **kwargs)
            variables = _variables_read(0, given)
            step, drew, _ = _drawn()  # the step is taken by the first draw
            draws = step, drew, first_draw

    def gradients(cts: Sequence[Tensor]) -> Any:
        now = _drawn()
        _core.set_draws(draws)
        found = _compute_again(converted(f), args, kwargs, variables, cts)
        _core.set_draws(now)
        return found[: len(given)], found[len(given) :]

    return _with_gradient(f, result, given, variables, gradients)


def _drawn() -> tuple[int, bool, int]:
    draws = _core.draws()
    assert draws is not None  # something is being recorded
    return draws


def _compute_again(
    f: Callable[..., Any], args: Any, kwargs: dict[str, Any], variables: list[Variable],
    cts: Sequence[Tensor],
) -> list[Tensor | None]:  # fmt: skip
    """Return the gradients by tensors among the arguments and by variables, of a second run."""
    copies: list[Tensor] = []

    def copied(leaf: Any) -> Any:
        if not can_be_tensor(leaf):
            return leaf
        copies.append(_core.ops.computed_again(convert_to_tensor(leaf), cts[0]))
        return leaf if isinstance(leaf, Variable) else copies[-1]

    with GradientTape(watch_accessed_variables=False) as tape:
        again = map_structure(copied, args)
        sources = [
            leaf if isinstance(leaf, Variable) else copy
            for leaf, copy in zip(_tensors_of(args), copies, strict=True)
        ]
        tape.watch([s for s in [*sources, *variables] if as_dtype(s.dtype).is_floating])
        results = [convert_to_tensor(leaf) for leaf in flatten(f(*again, **kwargs))]
    floats = [i for i, result in enumerate(results) if as_dtype(result._dtype).is_floating]
    found = tape.gradient(
        [results[i] for i in floats], [*sources, *variables], [cts[i] for i in floats]
    )
    return list(found)


def _with_gradient(
    f: Callable[..., Any], result: Any, given: list[Any], variables: list[Variable],
    gradients: Callable[[Sequence[Tensor]], Any],
) -> Any:  # fmt: skip
    """Return the result, with this derivative by the given values and by the variables."""
    who = _name(f)
    values = [convert_to_tensor(leaf) for leaf in flatten(result)]
    sources = [convert_to_tensor(source) for source in given]
    read = [variable._as_tensor() for variable in variables]

    def checked(cts: Sequence[Tensor]) -> list[Tensor | None]:
        of_arguments, of_variables = gradients(cts)
        return [
            *_as_gradients(who, "argument", flatten(of_arguments), sources),
            *_as_gradients(who, "variable", flatten(of_variables), read),
        ]

    def rule(*cts: Tensor) -> Any:
        # Eager code calls it when a gradient is taken; else it is traced now, perhaps for nothing.
        return _traced_rule(who, checked, cts) if _core.tracing() else checked(cts)

    outputs = iter(_core.with_gradient(values, sources + read, rule))
    return map_structure(lambda _: next(outputs), result)


def _traced_rule(
    who: str, gradients: Callable[[Sequence[Tensor]], Any], cts: Sequence[Tensor]
) -> Any:
    """Return the gradients, or the error that whoever wants them is to see."""
    depth = _context.current().open_gradients
    if depth == _DEEPEST:
        text = (
            f"[custom_gradient] in a function, gradient functions are traced {_DEEPEST} deep where "
            f"they call each other, and {who} is deeper: take derivatives of lower order, or take "
            "them in eager code."
        )
        return _KINDS.index(NotImplementedError), text
    try:
        with _context.changed(open_gradients=depth + 1):
            return gradients(cts)
    except Exception as error:
        kind = next((i for i, known in enumerate(_KINDS) if isinstance(error, known)), 2)
        own = str(error).startswith("[")
        text = str(error) if own else f"{type(error).__name__}: {error}"
        return kind, text if own else f"[custom_gradient] the gradient function of {who}: {text}"


def _as_gradients(
    who: str, what: str, gradients: list[Any], sources: Sequence[Tensor]
) -> list[Tensor | None]:
    if len(gradients) != len(sources):
        raise ValueError(
            f"[custom_gradient] the gradient function of {who} must return one gradient for each "
            f"{what}, {len(sources)}: got {len(gradients)}."
        )
    return [
        _as_gradient(who, f"{what} {i}", gradient, source)
        for i, (gradient, source) in enumerate(zip(gradients, sources, strict=True))
    ]


def _as_gradient(who: str, what: str, gradient: Any, source: Tensor) -> Tensor | None:
    if gradient is None or not as_dtype(source._dtype).is_floating:
        return None
    number = isinstance(gradient, int | float)
    tensor = convert_to_tensor(gradient, source._dtype if number else None)
    if tensor._dtype != source._dtype:
        raise TypeError(
            f"[custom_gradient] the gradient of {who} by {what} must be {source._dtype} as that "
            f"is: got {tensor._dtype}; convert it with samegrad.cast."
        )
    if not may_be_as_large(tensor, source):
        raise ValueError(
            f"[custom_gradient] the gradient of {who} by {what} must have its shape "
            f"{source._shape}: got {tensor._shape}; sum over the axes that were broadcast."
        )
    return tensor


def _tensors_of(args: Any) -> list[Any]:
    return [leaf for leaf in flatten(args) if can_be_tensor(leaf)]


def _variables_read(first: int, given: list[Any]) -> list[Variable]:
    """Return the trainable variables read since then, each once, without the arguments."""
    found: list[Variable] = []
    for cell in _core.reads_since(first):
        variable = variable_of(cell)
        if variable is None or not variable.trainable:
            continue
        if not any(variable is other for other in [*found, *given]):
            found.append(variable)
    return found


def _takes_variables(grad_fn: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(grad_fn).parameters
    except (TypeError, ValueError):  # written in C: the call will tell
        return True
    named = parameters.get("variables")
    by_name = named is not None and named.kind is not inspect.Parameter.VAR_POSITIONAL
    return by_name or any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())


def _name(f: Callable[..., Any]) -> str:
    return str(getattr(f, "__name__", type(f).__name__))


__all__ = ["custom_gradient", "grad_pass_through", "recompute_grad"]
