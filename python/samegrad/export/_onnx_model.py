"""ONNX models of exported programs."""

from __future__ import annotations

from typing import Any

import onnx
from onnx import TensorProto, helper

from samegrad import _core
from samegrad.export._builder import Body, Node
from samegrad.export._convert import Program
from samegrad.export._values import Ref
from samegrad.version import VERSION

ELEMENT_TYPES = {
    "float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16, "int8": TensorProto.INT8, "int16": TensorProto.INT16,
    "int32": TensorProto.INT32, "int64": TensorProto.INT64, "uint8": TensorProto.UINT8,
    "uint16": TensorProto.UINT16, "uint32": TensorProto.UINT32, "uint64": TensorProto.UINT64,
    "bool": TensorProto.BOOL,
}  # fmt: skip


def model_of(program: Program, opset: int) -> Any:
    """Return an `onnx.ModelProto` without its weights."""
    inputs, outputs = (
        [helper.make_tensor_value_info(one.name, ELEMENT_TYPES[one.dtype], one.shape)
         for one in ports]
        for ports in (program.inputs, program.outputs)
    )  # fmt: skip
    graph = helper.make_graph([_node(node) for node in program.nodes], "samegrad", inputs, outputs)
    version = helper.make_opsetid("", opset)
    model = helper.make_model(
        graph, opset_imports=[version], producer_name="samegrad", producer_version=VERSION,
        ir_version=helper.find_min_ir_version_for([version]),
    )  # fmt: skip
    helper.set_model_props(
        model, {"samegrad": VERSION, "reduction_order": str(_core.reduction_order())}
    )
    return model


def _node(node: Node) -> Any:
    attributes = {
        key: _graph(value) if isinstance(value, Body) else value
        for key, value in node.attributes.items()
    }
    if node.op == "Cast":
        attributes["to"] = ELEMENT_TYPES[attributes["to"]]
    inputs = ["" if ref is None else ref.name for ref in node.inputs]
    outputs = [ref.name for ref in node.outputs]
    return helper.make_node(node.op, inputs, outputs, node.name, **attributes)


def _graph(body: Body) -> Any:
    return helper.make_graph(
        [_node(node) for node in body.nodes], body.name,
        [_type_info(ref, at < body.scalars) for at, ref in enumerate(body.inputs)],
        [_type_info(ref) for ref in body.outputs],
    )  # fmt: skip


def _type_info(ref: Ref, scalar: bool = False) -> Any:
    """Return a scalar, or a tensor of any shape, which the runtime finds."""
    if scalar:
        return helper.make_tensor_value_info(ref.name, ELEMENT_TYPES[ref.dtype], [])
    info = onnx.ValueInfoProto()
    info.name = ref.name
    info.type.tensor_type.elem_type = ELEMENT_TYPES[ref.dtype]
    return info
