"""Branches and loops as graphs of TensorFlow have them: switches, merges and frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from samegrad.export._builder import Body, Node
from samegrad.export._tensorflow_graph import DType, Graph
from samegrad.export._tensorflow_ops import cast, lower, lowering, sizes_of, squeezed
from samegrad.export._values import Ref


def _lowered(g: Graph, body: Body) -> list[Ref]:
    for node in body.nodes:
        lower(g, node)
    return [g.find(ref.name) for ref in body.outputs]


def _switched(g: Graph, x: Ref, test: Ref) -> tuple[Ref, Ref]:
    """Return a tensor that is there if a test is false, and one that is there otherwise."""
    found = g.op("Switch", x, test)
    return found, Ref(f"{found.name}:1", x.dtype)


@lowering("If")
def _if(g: Graph, node: Node, inputs: list[Any]) -> list[Ref]:
    test, results = inputs[0], []
    for side, name in enumerate(("else_branch", "then_branch")):
        with g.frame(lambda outer, side=side: _switched(g, outer, test)[side]):  # type: ignore[misc]
            results.append(_lowered(g, node.attributes[name]))
    return [g.op("Merge", *both, N=2) for both in zip(*results, strict=True)]


def _while(
    g: Graph, starts: Sequence[Ref], going: Callable[[list[Ref]], Ref],
    step: Callable[[list[Ref]], list[Ref]],
) -> list[Ref]:  # fmt: skip
    """Emit a loop.

    Args:
        g: The graph.
        starts: The first values of the variables.
        going: From variables to the condition of one more iteration.
        step: From variables to the next ones.
    """
    frame = g.name("while")

    def entered(x: Ref, constant: bool = True) -> Ref:
        return g.op("Enter", x, frame_name=frame, is_constant=constant)

    nexts = [Ref(g.name("next"), x.dtype) for x in starts]  # nodes that come last
    merged = [g.op("Merge", entered(x, False), at, N=2)
              for x, at in zip(starts, nexts, strict=True)]  # fmt: skip
    with g.frame(entered):
        test = g.op("LoopCond", going(merged))
        both = [_switched(g, x, test) for x in merged]
        made = step([g.op("Identity", inner) for _, inner in both])
        for at, x in zip(nexts, made, strict=True):
            g.append("NextIteration", at.name, [x])
    return [g.op("Exit", outer) for outer, _ in both]


@lowering("Loop")
def _loop(g: Graph, node: Node, inputs: list[Any]) -> list[Ref]:
    body, most = node.attributes["body"], node.inputs[0]

    def going(variables: list[Ref]) -> Ref:
        index, again = variables[:2]
        if most is None:
            return again
        return g.op("LogicalAnd", again, g.op("Less", index, g.find(most.name), dtype="bool"))

    def step(variables: list[Ref]) -> list[Ref]:
        g.bind(body.inputs, variables)
        return [g.op("Add", variables[0], g.constant(1)), *_lowered(g, body)]

    return _while(g, [g.constant(0), *inputs[1:]], going, step)[2:]


@lowering("Scan")
def _scan(g: Graph, node: Node, inputs: list[Any]) -> list[Ref]:
    """Emit a loop over the entries of tensors, whose results are collected in lists."""
    body = node.attributes["body"]
    count = len(inputs) - node.attributes["num_scan_inputs"]
    length = Ref(g.name("length"), "int64")
    g.bind([length], [squeezed(g, sizes_of(g, inputs[count], 0, 1), 0)])
    unknown, results = g.constant(-1, "int32"), body.outputs[count:]
    lists = [
        g.op("TensorListReserve", unknown, cast(g, g.find(length.name), "int32"), dtype="variant",
             element_dtype=DType(ref.dtype), shape_type=DType("int32"))
        for ref in results
    ]  # fmt: skip

    def going(variables: list[Ref]) -> Ref:
        return g.op("Less", variables[0], g.find(length.name), dtype="bool")

    def step(variables: list[Ref]) -> list[Ref]:
        place, following = variables[0], g.op("Add", variables[0], g.constant(1))
        if any(node.attributes["scan_input_directions"]):
            place = g.op("Sub", g.find(length.name), following)
        entries = [g.op("GatherV2", g.find(ref.name), place, g.constant(0))
                   for ref in node.inputs[count:] if ref is not None]  # fmt: skip
        g.bind(body.inputs, [*variables[1 : 1 + count], *entries])
        found = _lowered(g, body)
        filled = [
            g.op("TensorListSetItem", held, cast(g, place, "int32"), item,
                 element_dtype=DType(item.dtype))
            for held, item in zip(variables[1 + count :], found[count:], strict=True)
        ]  # fmt: skip
        return [following, *found[:count], *filled]

    made = _while(g, [g.constant(0), *inputs[:count], *lists], going, step)[1:]
    return made[:count] + [
        g.op("TensorListStack", held, unknown, dtype=ref.dtype, element_dtype=DType(ref.dtype))
        for held, ref in zip(made[count:], results, strict=True)
    ]
