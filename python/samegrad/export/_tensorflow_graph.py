"""Graphs of TensorFlow under construction: operations, constants, and bodies of loops."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from samegrad.export._values import Dim, Ref
from samegrad.train._protobuf import message

# Numbers of dtypes in tensorflow/core/framework/types.proto.
DTYPES = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "int64": 9,
    "bool": 10, "bfloat16": 14, "uint16": 17, "float16": 19, "variant": 21, "uint32": 22,
    "uint64": 23,
}  # fmt: skip
# Attributes for the dtypes of the operands, where they are not "T" for the first one.
_TYPES = {
    **dict.fromkeys(("LogicalAnd", "LogicalOr", "LogicalNot", "LoopCond", "TensorListReserve",
                     "TensorListSetItem", "TensorListStack"), ""),
    **dict.fromkeys(("Sum", "Prod", "Max", "Min", "ArgMax", "ArgMin", "Cumsum", "BroadcastTo"),
                    "T Tidx"),
    **dict.fromkeys(("SelectV2", "Conv2DBackpropInput", "Conv3DBackpropInputV2"), "- T"),
    "Cast": "SrcT", "Range": "Tidx", "BatchMatMulV3": "Ta Tb", "Reshape": "T Tshape",
    "Tile": "T Tmultiples", "PadV2": "T Tpaddings", "ExpandDims": "T Tdim", "Transpose": "T Tperm",
    "StridedSlice": "T Index", "TopKV2": "T Tk", "GatherV2": "Tparams Tindices Taxis",
    **{f"TensorScatter{way}": "T Tindices" for way in ("Update", "Add", "Max", "Min")},
}  # fmt: skip


class DType(str):
    """Attribute that is a dtype, by its name."""


def shape_message(shape: Sequence[Dim]) -> bytes:
    """Return a TensorShapeProto."""
    return message(*((2, message((1, size if isinstance(size, int) else -1))) for size in shape))


def _attribute(value: Any) -> bytes:
    """Return an AttrValue: tuples are shapes, and bytes are a TensorProto."""
    if isinstance(value, DType):
        return message((6, DTYPES[value]))
    if isinstance(value, tuple):
        return message((7, shape_message(value)))
    if isinstance(value, list):
        return message((1, message(*((3, int(one)) for one in value))))
    return message(({str: 2, int: 3, bool: 5, bytes: 8}[type(value)], value))


class Graph:
    """Nodes of a GraphDef.

    Args:
        arrays: Elements and dtype of each constant, by its name.
    """

    def __init__(self, arrays: dict[str, Any]) -> None:
        self.arrays = arrays
        self.nodes: list[bytes] = []
        self.location = ""
        # Tensors that each loop or branch knows, and what brings an outer one into it.
        self._frames: list[tuple[dict[str, Ref], Callable[[Any], Ref]]] = [({}, self._constant)]
        self._names: dict[str, int] = {}  # and how many others begin so

    def name(self, stem: str) -> str:
        """Return a name that no other node has, of characters that TensorFlow takes."""
        plain = re.sub(r"[^A-Za-z0-9_.\-/]", "_", stem).lstrip("_-/") or "node"
        own = plain
        while own in self._names:
            self._names[plain] += 1
            own = f"{plain}_{self._names[plain]}"
        self._names[own] = 0
        return own

    def append(self, op: str, name: str, inputs: Sequence[Ref], **attributes: Any) -> None:
        """Append a node; the dtypes of its operands are attributes by the table."""
        for key, ref in zip(_TYPES.get(op, "T").split(), inputs, strict=False):
            if key != "-":
                attributes[key] = DType(ref.dtype)
        self.nodes.append(message(
            (1, name), (2, op), *((3, ref.name) for ref in inputs),
            *((5, message((1, key), (2, _attribute(value)))) for key, value in attributes.items()),
        ))  # fmt: skip

    def op(self, op: str, *inputs: Ref, dtype: str | None = None, **attributes: Any) -> Ref:
        """Append a node of one result; its dtype is that of the first operand by default."""
        found = Ref(self.name(f"{self.location}/{op}"), dtype or inputs[0].dtype)
        self.append(op, found.name, inputs, **attributes)
        return found

    def constant(self, array: Any, dtype: str = "int64") -> Ref:
        """Return a constant, where the innermost loop or branch may use it."""
        found = np.asarray(array, dtype=dtype)
        name = f"{dtype}_{found.tolist()}"
        self.arrays[name] = found, dtype
        return self.find(name)

    def _constant(self, name: str) -> Ref:
        array, dtype = self.arrays[name]
        found = Ref(self.name(name), dtype)
        content = message(
            (1, DTYPES[dtype]), (2, shape_message(array.shape)),
            (4, np.ascontiguousarray(array).tobytes()),
        )  # fmt: skip
        self.append("Const", found.name, [], dtype=DType(dtype), value=content)
        return found

    def find(self, name: str, depth: int = -1) -> Ref:
        """Return a tensor of the exported program, where the innermost frame may use it."""
        known, enter = self._frames[depth]
        if name not in known:
            outermost = len(self._frames) + depth == 0
            known[name] = enter(name if outermost else self.find(name, depth - 1))
        return known[name]

    def bind(self, refs: Sequence[Ref], made: Sequence[Ref]) -> None:
        """Give tensors of the exported program their tensors in the innermost frame."""
        self._frames[-1][0].update((ref.name, own) for ref, own in zip(refs, made, strict=True))

    @contextmanager
    def frame(self, enter: Callable[[Any], Ref]) -> Iterator[None]:
        """Append nodes to a loop or branch."""
        self._frames.append(({}, enter))
        try:
            yield
        finally:
            self._frames.pop()
