"""Aggregation: one value of what the replicas assign to a variable, or hold copies of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samegrad import _core
from samegrad._base.dtypes import DType, as_dtype
from samegrad._base.enums import Choice
from samegrad._context import state as _context
from samegrad._ops.indexed_slices import IndexedSlices
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad.errors import WrongTypeError

if TYPE_CHECKING:
    from samegrad._autodiff.variable import Variable
    from samegrad.distribute._replica_context import ReplicaContext

_ops = _core.ops


class VariableSynchronization(Choice):
    """Time at which the copies of a variable become equal."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(Choice):
    """Rule by which the values that the replicas assign become one value."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


def assigning_replicas(variable: Variable) -> ReplicaContext | None:
    """Return the context of several replicas that assign to one copy; None where there is one."""
    return None if variable._cell.component_count > 1 else _context.reducing_context()


def aggregated(variable: Variable, value: Tensor) -> Tensor:
    """Return the one value that the variable gets of what its replicas assign.

    Raises:
        WrongTypeError: A sum of bools.
    """
    context = assigning_replicas(variable)
    if context is None or variable.aggregation is VariableAggregation.NONE:
        return value
    if variable.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
        return _ops.collective_broadcast(value)
    check_dtype(variable._cell.name, variable.aggregation, variable.dtype)
    reduced: Tensor = context.all_reduce(variable.aggregation.name.lower(), value)
    return reduced


def aggregated_rows(
    variable: Variable, op_name: str, indices: Tensor, rows: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the indices and rows by which the variable changes, of those that its replicas give.

    A sum takes the rows of all replicas, a mean divides them by the number of replicas; then they
    change the variable as the rows of one device do. A variable that belongs to no strategy is
    changed by the rows of each replica in turn.

    Raises:
        NotImplementedError: The rows do not add to the variable or multiply it, and there is no
            first replica that decides.
    """
    aggregation, in_turn = variable.aggregation, variable._strategy is None
    sums = aggregation in (VariableAggregation.SUM, VariableAggregation.MEAN)
    if sums and not in_turn and op_name.endswith(("update", "max", "min")):
        _refuse_rows(variable, op_name)
    context = assigning_replicas(variable)
    if context is None or (aggregation is VariableAggregation.NONE and not in_turn):
        return indices, rows
    if aggregation is VariableAggregation.ONLY_FIRST_REPLICA and not in_turn:
        return _ops.collective_broadcast(indices), _ops.collective_broadcast(rows)
    if indices._rank == 1:
        indices, rows = _ops.expand_dims(indices, axes=(0,)), _ops.expand_dims(rows, axes=(0,))
    op = "sum" if in_turn else aggregation.name.lower()
    slices = context.all_reduce(op, IndexedSlices(rows, indices))
    return slices.indices, slices.values


def _refuse_rows(variable: Variable, op_name: str) -> None:
    if _context.inside_run():
        raise NotImplementedError(
            f"[{variable._cell.name}] {op_name} inside strategy.run needs aggregation NONE or "
            f"ONLY_FIRST_REPLICA: got {variable.aggregation.name}; create the variable with one of "
            "these, or use assign, whose values are aggregated."
        )


def of_copies(variable: Variable) -> Tensor:
    """Return the one value of a variable of which each replica may have a copy.

    Raises:
        WrongTypeError: A sum of bools.
        ValueError: There is no aggregation, and the copies differ.
    """
    if _core.tracing():
        return _of_copies_in_step(variable)
    copies = variable._cell.components()
    total: Tensor = copies[0]
    if len(copies) == 1 or variable.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
        return total
    if variable.aggregation is VariableAggregation.NONE:
        if any(copy.numpy().tobytes() != total.numpy().tobytes() for copy in copies[1:]):
            raise _no_one_value(variable)
        return total
    check_dtype(variable._cell.name, variable.aggregation, variable.dtype)
    for copy in copies[1:]:
        total = _ops.add(total, copy)
    if variable.aggregation is VariableAggregation.MEAN:
        total = total / float(len(copies))
    return total


def _of_copies_in_step(variable: Variable) -> Tensor:
    """Return the same of the copies that a traced function finds when it runs."""
    if variable.aggregation is VariableAggregation.NONE:
        raise _no_one_value(variable)
    assert variable._strategy is not None
    variable._strategy.join_trace()
    copies = _core.read_variable(variable._cell)
    if variable.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
        return _ops.collective_broadcast(copies)
    check_dtype(variable._cell.name, variable.aggregation, variable.dtype)
    return _ops.all_reduce(copies, op=variable.aggregation.name.lower())


def set_copies(variable: Variable, value: Tensor) -> None:
    """Give the replicas copies whose aggregation is the value."""
    count = variable._cell.component_count
    first = others = value
    if variable.aggregation is VariableAggregation.SUM and count > 1:
        check_dtype(variable._cell.name, variable.aggregation, variable.dtype)
        is_floating = as_dtype(value._dtype).is_floating
        others = value / float(count) if is_floating else value // count
        first = others if is_floating else value - others * (count - 1)
    if not _core.tracing():
        variable._cell.set([first, *[others] * (count - 1)])
        return
    assert variable._strategy is not None
    variable._strategy.join_trace()
    if first is not others:
        is_first = _ops.equal(_ops.replica_id(), convert_to_tensor(0, "int64"))
        others = _ops.select(is_first, first, others)
    _core.write_variable(variable._cell, others)


def check_dtype(name: str, aggregation: VariableAggregation, dtype: DType) -> None:
    """Check that values of the dtype can be aggregated.

    Raises:
        WrongTypeError: A mean of others than floats, or a sum of bools.
    """
    if aggregation is VariableAggregation.MEAN:
        rule, fits = "needs floats", dtype.is_floating
    else:
        rule, fits = (
            "needs numbers",
            aggregation is not VariableAggregation.SUM or not dtype.is_bool,
        )
    if not fits:
        raise WrongTypeError(
            f"[{name}] aggregation {aggregation.name} {rule}: got a variable of dtype "
            f"{dtype.name}; create it with aggregation ONLY_FIRST_REPLICA, or with another dtype."
        )


def _no_one_value(variable: Variable) -> ValueError:
    count = variable._cell.component_count
    return ValueError(
        f"[{variable._cell.name}] a variable with synchronization ON_READ and aggregation NONE has "
        f"a value for each replica: got a read of one value for {count} replicas; read it inside "
        "strategy.run, or create it with aggregation SUM, MEAN or ONLY_FIRST_REPLICA."
    )
