"""Decisions and loops whose condition is a tensor: `cond`, `while_loop`, `case`, `switch_case`.

With a condition that has a value they run Python. Inside a traced function they become part of the
step, and the engine decides each time the step runs. The functions given to them may then be
traced more than once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from samegrad import _core
from samegrad._base.dtypes import as_dtype
from samegrad._base.shown import shown
from samegrad._base.tree import map_structure
from samegrad._context.user_code import converted
from samegrad._control.carried_values import Stacked, describe, holds, same_structure
from samegrad._control.graph_flow import graph_branch, graph_loop
from samegrad._control.growing import shapes_of_variables
from samegrad._control.requirements import add_requirement
from samegrad._tensor.per_replica import TracedPerReplica
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad.errors import InvalidArgumentError


def is_traced(value: Any) -> bool:
    """Tell whether the value is a tensor that gets its value when a step runs.

    Example:
        >>> is_traced(convert_to_tensor(True))
        False
    """
    if hasattr(value, "_as_tensor") and not isinstance(value, TracedPerReplica):
        value = value._as_tensor() if getattr(value, "_is_variable", False) else value
    if isinstance(value, TracedPerReplica):
        return True
    return isinstance(value, Tensor) and value._symbolic


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """Call `true_fn` or `false_fn`, depending on a predicate.

    Args:
        pred: A scalar: a bool, or a number that is compared with zero.
        true_fn: A function without arguments that returns tensors in any structure, or None.
        false_fn: A function without arguments that returns the same structure, dtypes and shapes.
        name: Ignored.

    Returns:
        The result of the chosen function. Gradients flow through it.

    Raises:
        TypeError: A function is missing or cannot be called.
        ValueError: The predicate has more than one element, or the results differ in structure,
            dtype or shape (where the predicate is traced).

    Example:
        >>> import samegrad as tf
        >>> @tf.function
        ... def size(x):
        ...     return tf.cond(x < 0.0, lambda: -x, lambda: x)
        >>> float(size(tf.constant(-3.0))), float(size(tf.constant(2.0)))
        (3.0, 2.0)
    """
    for which, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(function):
            raise TypeError(f"[cond] {which} must be a function: got {shown(function)}.")
    assert true_fn is not None and false_fn is not None
    true_fn, false_fn = converted(true_fn), converted(false_fn)
    if not is_traced(pred):
        return true_fn() if holds("cond", pred) else false_fn()
    (result,) = graph_branch(
        "cond", pred, lambda: (true_fn(),), lambda: (false_fn(),), ("the result",)
    )
    return result


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: int | None = None,
    name: str | None = None,
) -> Any:
    """Repeat `body` while `cond` is true.

    Args:
        cond: A function of the loop variables that returns a scalar.
        body: A function of the loop variables that returns the new ones, of the same structure,
            dtypes and shapes.
        loop_vars: A list or tuple of tensors, or of structures of them.
        shape_invariants: The shapes of the loop variables, in their structure, with None for an
            axis that grows from iteration to iteration. A function with a loop whose tensors do
            grow runs in Python, op by op. In a step of replicas it raises.
        parallel_iterations: Ignored.
        back_prop: False stops gradients at the results.
        swap_memory: Ignored.
        maximum_iterations: The largest number of iterations; default no limit.
        name: Ignored.

    Returns:
        The loop variables after the last iteration. Gradients of first order flow through it.

    Raises:
        TypeError: `cond` or `body` cannot be called.
        RuntimeError: A tensor grows inside `Strategy.run` of a traced step.
        ValueError: There are no loop variables, or an iteration changes their structure, dtype or
            shape.

    Example:
        >>> import samegrad as tf
        >>> @tf.function
        ... def power(x, n):
        ...     i, y = tf.while_loop(
        ...         lambda i, y: i < n, lambda i, y: (i + 1, y * x), (0, tf.ones_like(x)))
        ...     return y
        >>> float(power(tf.constant(3.0), tf.constant(4)))
        81.0
    """
    for which, function in (("cond", cond), ("body", body)):
        if not callable(function):
            raise TypeError(f"[while_loop] {which} must be a function: got {shown(function)}.")
    cond, body = converted(cond), converted(body)
    variables = list(loop_vars) if isinstance(loop_vars, list | tuple) else [loop_vars]
    if not variables:
        raise ValueError("[while_loop] at least one loop variable is needed: got none.")
    limit = None if maximum_iterations is None else int(maximum_iterations)
    values = tuple(map_structure(_as_loop_variable, variable) for variable in variables)
    rounds = 0
    while limit is None or rounds < limit:
        more = cond(*values)
        if is_traced(more):
            left = None if limit is None else limit - rounds
            values = _graph_rounds(cond, body, values, left, shape_invariants)
            break
        if not more:
            break
        values = _round(body, values)
        rounds += 1
    if not back_prop:
        values = map_structure(lambda v: _core.ops.stop_gradient(v), values)
    if not isinstance(loop_vars, list | tuple):
        return values[0]
    return list(values) if isinstance(loop_vars, list) else _as_tuple(loop_vars, values)


def _as_tuple(like: Any, values: tuple[Any, ...]) -> Any:
    return type(like)(*values) if hasattr(like, "_fields") else values


def _as_loop_variable(value: Any) -> Any:
    return value if isinstance(value, TracedPerReplica | Stacked) else convert_to_tensor(value)


def _graph_rounds(
    cond: Callable[..., Any], body: Callable[..., Any], values: tuple[Any, ...], limit: int | None,
    invariants: Any,
) -> tuple[Any, ...]:  # fmt: skip
    names = [f"loop variable {i}" for i in range(len(values))]
    if len(values) == 1 and not isinstance(invariants, list | None):
        invariants = [invariants]
    shapes = shapes_of_variables("while_loop", invariants, values)
    return graph_loop(
        "while_loop", lambda v: cond(*v), lambda v: _round(body, v), names, values, limit, shapes
    )


def _round(body: Callable[..., Any], values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the loop variables after the body, tensors again."""
    done = body(*values)
    if len(values) == 1 and not same_structure(done, [None]) and not same_structure(done, (None,)):
        done = (done,) if same_structure(done, values[0]) else done
    new = tuple(done) if isinstance(done, list | tuple) else (done,)
    if len(new) != len(values) or not all(map(same_structure, new, values)):
        raise ValueError(
            "[while_loop] the body must return the loop variables in their structure: got "
            f"{describe(new)} for {describe(values)}."
        )
    return tuple(map_structure(_as_loop_variable, value) for value in new)


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str | None = None,
) -> Any:
    """Call the function whose predicate is the first to be true.

    Args:
        pred_fn_pairs: Pairs of a predicate and a function, as `cond` takes them.
        default: The function for no true predicate.
        exclusive: Raise if several predicates are true.
        strict: Ignored.
        name: Ignored.

    Returns:
        The result of the chosen function.

    Raises:
        TypeError: An entry is not such a pair, or a function cannot be called.
        ValueError: There are no pairs.
        InvalidArgumentError: No predicate is true and there is no default, or several are true
            and `exclusive` is set.

    Example:
        >>> import samegrad as tf
        >>> x = tf.constant(3)
        >>> tf.case([(x < 2, lambda: "small"), (x < 5, lambda: "medium")], default=lambda: "large")
        'medium'
    """
    pairs = _pairs(pred_fn_pairs, "case")
    if default is not None and not callable(default):
        raise TypeError(f"[case] default must be a function: got {shown(default)}.")
    if exclusive:
        _check_exclusive([pred for pred, _ in pairs])
    if default is None:
        return _first_true(pairs[:-1], lambda: _last(pairs))
    return _first_true(pairs, default)


def _pairs(given: Any, who: str) -> list[tuple[Any, Callable[[], Any]]]:
    pairs = list(given.items()) if isinstance(given, Mapping) else list(given)
    if not pairs:
        raise ValueError(f"[{who}] at least one function is needed: got none.")
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not callable(pair[1]):
            raise TypeError(f"[{who}] pairs end with a function: got {shown(pair)}.")
    return pairs


def _first_true(
    pairs: Sequence[tuple[Any, Callable[[], Any]]], otherwise: Callable[[], Any]
) -> Any:
    if not pairs:
        return otherwise()
    (pred, function), rest = pairs[0], pairs[1:]
    return cond(pred, function, lambda: _first_true(rest, otherwise))


def _last(pairs: Sequence[tuple[Any, Callable[[], Any]]]) -> Any:
    pred, function = pairs[-1]
    require(pred, lambda: "[case] no predicate is true and there is no default: give one.")
    return function()


def _check_exclusive(predicates: list[Any]) -> None:
    count: Any = 0
    for pred in predicates:
        count = count + cond(pred, lambda: convert_to_tensor(1), lambda: convert_to_tensor(0))
    require(count <= 1, lambda: "[case] several predicates are true, with exclusive=True.")


def require(
    condition: Any, message: Callable[[], Any], error: type[Exception] | None = None
) -> None:
    """Raise unless a condition is true.

    Args:
        condition: One element; with a traced one the error comes when a step ran that did not meet
            it.
        message: Returns what the error says.
        error: Its class; default `InvalidArgumentError`.
    """
    if is_traced(condition):
        add_requirement(condition, str(message()), error or InvalidArgumentError)
    elif not condition:
        raise (error or InvalidArgumentError)(message())


def switch_case(
    branch_index: Any,
    branch_fns: Any,
    default: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """Call the function with the number `branch_index`.

    Args:
        branch_index: An integer scalar.
        branch_fns: A list of functions, or pairs of (or a dict from) numbers and functions.
        default: The function for other numbers; default the one with the largest number.
        name: Ignored.

    Returns:
        The result of the chosen function.

    Raises:
        TypeError: The index is not an integer, or a function cannot be called.
        ValueError: There are no functions, or a number has two.

    Example:
        >>> import samegrad as tf
        >>> tf.switch_case(tf.constant(1), [lambda: "a", lambda: "b"])
        'b'
    """
    given = branch_fns
    if not isinstance(given, Mapping) and all(callable(function) for function in given):
        given = list(enumerate(given))
    pairs = _pairs(given, "switch_case")
    keys = [key for key, _ in pairs]
    if not all(isinstance(key, int) for key in keys) or len(set(keys)) != len(keys):
        raise ValueError(f"[switch_case] the numbers must be integers, each once: got {keys}.")
    index = convert_to_tensor(branch_index)
    if not as_dtype(index._dtype).is_integer:
        raise TypeError(f"[switch_case] branch_index must be an integer: got {describe(index)}.")
    if default is None:
        last = max(keys)
        default = dict(pairs)[last]
        pairs = [pair for pair in pairs if pair[0] != last]
    return _first_true([(index == key, function) for key, function in pairs], default)


__all__ = ["case", "cond", "switch_case", "while_loop"]
