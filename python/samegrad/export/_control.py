"""Branches and loops as nodes with bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from samegrad.export._builder import Body, Builder, Scope
from samegrad.export._elementwise import number
from samegrad.export._table import Call, row
from samegrad.export._values import History, Missing, Ref, RefusedError, Value

_LOST = Missing("exported loops do not return what all iterations held")


def _body(
    b: Builder, scope: Scope, inputs: Sequence[Ref], outputs: Sequence[Ref], scalars: int = 0
) -> Body:
    """Return a graph of the nodes of a scope; results have names of their own."""
    with b.scope(scope):
        own = [b.op("Identity", ref) for ref in outputs]
    return Body(scope, b.name("body"), list(inputs), own, scalars)


def _made(b: Builder, op: str, inputs: Sequence[Ref | None], like: Sequence[Ref], **attributes: Any
          ) -> list[Ref]:  # fmt: skip
    results = [Ref(b.name(op.lower()), ref.dtype) for ref in like]
    b.emit(op, inputs, results, **attributes)
    return results


def _plain(b: Builder, values: Sequence[Any]) -> list[Ref]:
    return [b.plain(value) for value in values]


@row("cond")
def cond(call: Call) -> list[Value]:
    b = call.builder
    graphs, found = [], []
    for region in call.regions:
        with b.scope() as scope:
            values = region(call.inputs[1:])
            refs = _plain(b, values)
        graphs.append(_body(b, scope, [], refs))
        found.append(values)
    like = [Ref("", value.dtype) for value in found[0]]
    made = _made(b, "If", [call.ref(0)], like, then_branch=graphs[0], else_branch=graphs[1])
    shapes = [
        tuple(a if a == c else None for a, c in zip(one.shape, other.shape, strict=True))
        for one, other in zip(*found, strict=True)
    ]
    return [b.value(ref, shape) for ref, shape in zip(made, shapes, strict=True)]


@row("while_loop")
def while_loop(call: Call) -> list[Any]:
    b, count = call.builder, call.attributes["variables"]
    test, body = call.regions
    variables, captured = call.inputs[:count], call.inputs[count:]
    starts = _plain(b, variables)
    begins = b.op("Reshape", b.plain(test(call.inputs)[0]), b.integers([]))
    iteration, going = Ref(b.name("iteration"), "int64"), Ref(b.name("going"), "bool")
    carried = [Ref(b.name("carried"), ref.dtype) for ref in starts]
    with b.scope() as scope:
        inside = [_scoped(v, ref, scope) for v, ref in zip(variables, carried, strict=True)]
        nexts = body([*inside, *captured])[:count]
        again = b.op("Reshape", b.plain(test([*nexts, *captured])[0]), b.integers([]))
        results = [again, *_plain(b, nexts)]
    graph = _body(b, scope, [iteration, going, *carried], results, scalars=2)
    maximum = call.attributes["maximum"]
    most = None if maximum == -1 else b.scalar(call.sizes.of(maximum))
    made = _made(b, "Loop", [most, begins, *starts], starts, body=graph)
    values = [b.value(ref, v.shape) for ref, v in zip(made[:count], variables, strict=True)]
    return [*values, *[_LOST] * (call.results - count)]


def _scoped(value: Any, ref: Ref, scope: Scope, shape: Any = None) -> Value:
    return Value(ref.dtype, value.shape if shape is None else shape, ref, None, None, scope)


@row("unstack_rounds")
def unstack_rounds(call: Call) -> History:
    return History([call.value(index) for index in range(len(call.inputs))])


@row("stack_rounds")
def stack_rounds(call: Call) -> list[Value]:
    found = call.inputs[0]
    if not isinstance(found, History):
        raise RefusedError(_LOST.reason)
    return list(found.entries)


@row("replay")
def scan(call: Call) -> list[Any]:
    """Emit the iterations of a recurrence as a Scan over what its histories stack."""
    b, attributes = call.builder, call.attributes
    histories = call.inputs[: len(attributes["entries"])]
    if not histories or not all(isinstance(one, History) for one in histories):
        raise RefusedError(_LOST.reason)
    stacked = [entry for one in histories for entry in one.entries]
    count = attributes["variables"]
    rest = call.inputs[len(histories) :]
    variables, captured = rest[:count], rest[count:]
    starts, rows = _plain(b, variables), _plain(b, stacked)
    carried = [Ref(b.name("carried"), ref.dtype) for ref in starts]
    entries = [Ref(b.name("entry"), ref.dtype) for ref in rows]
    with b.scope() as scope:
        own = [_scoped(v, ref, scope, v.shape[1:])
               for v, ref in zip(stacked, entries, strict=True)]  # fmt: skip
        inside = [_scoped(v, ref, scope) for v, ref in zip(variables, carried, strict=True)]
        results = call.regions[0]([*own, *inside, *captured])
        refs = _plain(b, results)
    graph = _body(b, scope, [*carried, *entries], refs)
    way = 0 if attributes["forward"] else 1
    ways = {"scan_input_directions": [way] * len(rows)}
    if len(refs) > count:
        ways["scan_output_directions"] = [way] * (len(refs) - count)
    made = _made(b, "Scan", [*starts, *rows], refs, body=graph, num_scan_inputs=len(rows), **ways)
    values = [b.value(ref, v.shape) for ref, v in zip(made[:count], variables, strict=True)]
    size = stacked[0].shape[0]
    yields = [b.value(ref, (size, *v.shape))
              for ref, v in zip(made[count:], results[count:], strict=True)]  # fmt: skip
    found, at = [], 0
    for width in attributes["yields"]:
        found.append(History(yields[at : at + width]))
        at += width
    return [*values, _LOST, *found]


# ---- scans along an axis ----


def _along(
    call: Call, start: float, exclusive: bool, step: Callable[[Ref, list[Ref]], Ref]
) -> Value:
    """Emit a Scan whose state is made of the one before and the elements along an axis."""
    b, x = call.builder, call.value(0)
    operands = [call.ref(index) for index in range(len(call.inputs))]
    axis = call.attributes["axis"] % x.rank
    sizes = [b.size_at(x, at) for at in range(x.rank) if at != axis]
    shape = b.op("Concat", *sizes, axis=0) if sizes else b.integers([])
    first = b.op("Expand", number(b, start, operands[0]), shape)
    state = Ref(b.name("state"), x.dtype)
    entries = [Ref(b.name("entry"), ref.dtype) for ref in operands]
    with b.scope() as scope:
        following = step(state, entries)
    shown = state if exclusive else following
    graph = _body(b, scope, [state, *entries], [following, shown])
    way = int(call.attributes["reverse"])
    made = _made(
        b, "Scan", [first, *operands], [state, state], body=graph, num_scan_inputs=len(entries),
        scan_input_axes=[axis] * len(entries), scan_output_axes=[axis],
        scan_input_directions=[way] * len(entries), scan_output_directions=[way],
    )  # fmt: skip
    return b.value(made[1], x.shape)


@row("cumprod")
def cumprod(call: Call) -> Value:
    b = call.builder
    exclusive = bool(call.attributes["exclusive"])
    return _along(call, 1.0, exclusive, lambda state, entries: b.op("Mul", state, entries[0]))


@row("affine_scan")
def affine_scan(call: Call) -> Value:
    b = call.builder

    def step(state: Ref, entries: list[Ref]) -> Ref:
        factor, more = entries
        cut = b.op("Equal", factor, number(b, 0, factor), dtype="bool")
        carried = b.op("Where", cut, number(b, 0, factor), state, dtype=state.dtype)
        return b.op("Add", more, b.op("Mul", factor, carried))

    return _along(call, 0.0, True, step)
