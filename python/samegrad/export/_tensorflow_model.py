"""SavedModels of TensorFlow, with one graph and one signature."""

from __future__ import annotations

from collections.abc import Sequence

from samegrad.export import _tensorflow_control, _tensorflow_rows
from samegrad.export._convert import Port, Program
from samegrad.export._table import ROWS, TENSORFLOW_ROWS, Target
from samegrad.export._tensorflow_graph import DTYPES, DType, Graph, shape_message
from samegrad.export._tensorflow_ops import lower
from samegrad.export._values import Ref
from samegrad.train._protobuf import message

_TABLES_OF = (_tensorflow_control, _tensorflow_rows)
TARGET = Target("TensorFlow", "export.to_tensorflow", {**ROWS, **TENSORFLOW_ROWS})
_PRODUCER = 1395  # version of graphs of TensorFlow 2.12, which later releases read


def saved_model(program: Program) -> bytes:
    """Return a SavedModel, as the loader of TensorFlow 1 and 2 knows it."""
    graph = Graph(dict(program.arrays))
    for one in program.inputs:
        own = Ref(graph.name(f"serving_default_{one.name}"), one.dtype)
        graph.append("Placeholder", own.name, [], dtype=DType(one.dtype), shape=tuple(one.shape))
        graph.bind([Ref(one.name, one.dtype)], [own])
    for node in program.nodes:
        lower(graph, node)
    signature = message(
        *_ports(graph, 1, program.inputs), *_ports(graph, 2, program.outputs),
        (3, "tensorflow/serving/predict"),
    )  # fmt: skip
    content = message(*((1, node) for node in graph.nodes), (4, message((1, _PRODUCER))))
    meta = message(
        (1, message((4, "serve"))), (2, content),
        (5, message((1, "serving_default"), (2, signature))),
    )  # fmt: skip
    return message((1, 1), (2, meta))


def _ports(graph: Graph, field: int, ports: Sequence[Port]) -> list[tuple[int, bytes]]:
    """Return inputs or outputs of a signature."""
    infos = [
        (one.name, message((1, f"{graph.find(one.name).name}:0"), (2, DTYPES[one.dtype]),
                           (3, shape_message(one.shape))))
        for one in ports
    ]  # fmt: skip
    return [(field, message((1, name), (2, info))) for name, info in infos]
