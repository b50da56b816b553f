"""Builder of exported graphs: nodes, initializers, scopes and memory layouts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from samegrad._base.dtypes import numpy_dtype
from samegrad.export._values import (
    Dim,
    Missing,
    Ref,
    RefusedError,
    Value,
    broadcast,
    product,
    to_first,
    to_last,
)  # fmt: skip

_DTYPES = frozenset((
    "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8",
    "uint16", "uint32", "uint64", "bool",
))  # fmt: skip
_FLOATS = frozenset(("float32", "float64"))
_NUMBERS = _FLOATS | {"int32", "int64"}
# Dtypes that onnxruntime computes in; others are cast to a wider one and back.
_COMPUTED = {
    **dict.fromkeys(
        ("Add", "Sub", "Mul", "Div", "Neg", "Abs", "Pow", "Max", "Min", "Mod", "Less", "Greater",
         "LessOrEqual", "GreaterOrEqual", "ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin",
         "ArgMax", "ArgMin", "CumSum", "MatMul", "TopK", "ScatterND", "Sign", "Range"), _NUMBERS,
    ),
    **dict.fromkeys(
        ("Sqrt", "Exp", "Log", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh",
         "Asinh", "Acosh", "Atanh", "Relu", "Sigmoid", "Softplus", "Erf", "Floor", "Ceil", "Round",
         "Reciprocal", "Softmax", "LogSoftmax", "IsNaN", "IsInf", "Conv", "ConvTranspose",
         "MaxPool", "AveragePool", "Det", "Igamma", "Igammac"), _FLOATS,
    ),
    "Equal": _NUMBERS | {"bool"},
    "Where": _NUMBERS | {"uint8"},
    "Expand": _DTYPES - {"bfloat16"},
    "Pad": _NUMBERS | {"bool", "uint8", "int8", "uint32", "uint64"},
    "Tile": _NUMBERS | {"bool", "uint8", "int8", "int16", "uint32", "uint64"},
}  # fmt: skip
# Operators that give the same bits for unsigned integers as for signed ones.
_OF_BITS = ("Add", "Sub", "Mul", "Equal", "Where", "ReduceSum", "CumSum")
_WIDER = {
    "float16": "float32", "bfloat16": "float32", "int8": "int32", "int16": "int32",
    "uint8": "int32", "uint16": "int32", "bool": "int32", "uint32": "int64",
}  # fmt: skip


class Node(NamedTuple):
    """Operator of ONNX, or of another format where a row of that format emits it."""

    op: str
    inputs: list[Ref | None]
    outputs: list[Ref]
    name: str
    attributes: dict[str, Any]


class Scope(list[Node]):
    """Nodes of a graph, or of the body of a loop or branch."""


class Body(NamedTuple):
    """Graph inside a loop or branch; its first inputs, so many, are scalars."""

    nodes: Scope
    name: str
    inputs: list[Ref]
    outputs: list[Ref]
    scalars: int


class Builder:
    """Nodes and initializers of one model.

    Args:
        format: The name of the format.
        opset: The version of ONNX's operator set.
        ports: The names of the inputs and outputs, which nothing else gets.
    """

    def __init__(self, format: str, opset: int, ports: Collection[str]) -> None:
        self.format, self.opset, self._ports = format, opset, frozenset(ports)
        self.initializers: dict[str, Any] = {}
        self.main = Scope()
        self._scopes = [self.main]
        self._constants: dict[Any, Ref] = {}
        self._layouts: dict[Any, Ref] = {}
        self._count = 0
        self.location = ""

    @contextmanager
    def scope(self, scope: Scope | None = None) -> Iterator[Scope]:
        """Emit nodes among others than the innermost ones."""
        entered = Scope() if scope is None else scope
        self._scopes.append(entered)
        try:
            yield entered
        finally:
            self._scopes.pop()

    def name(self, stem: str) -> str:
        """Return a name that no other tensor has."""
        while True:
            self._count += 1
            found = f"{stem}_{self._count}"
            if found not in self._ports:
                return found

    # ---- nodes ----

    def emit(
        self, op: str, inputs: Sequence[Ref | None], outputs: Sequence[Ref], **attributes: Any
    ) -> None:
        """Append a node as it is."""
        name = self.name(f"{self.location}/{op}")
        self._scopes[-1].append(Node(op, list(inputs), list(outputs), name, attributes))

    def op(self, op: str, *inputs: Ref | None, dtype: str | None = None, **attributes: Any) -> Ref:
        """Append a node of one result, in a dtype that runtimes compute in.

        Args:
            op: The ONNX operator.
            *inputs: The operands; None for one that is absent.
            dtype: The dtype of the result; that of the first operand by default.
            **attributes: Those of the operator.
        """
        computed = _COMPUTED.get(op)
        data = [ref for ref in inputs if ref is not None]
        result = dtype or data[0].dtype
        own = data[1].dtype if op == "Where" else data[0].dtype
        if computed is None or own in computed:
            return self._append(op, inputs, result, attributes)
        wider = "int64" if own == "uint64" and op in _OF_BITS else _WIDER.get(own)
        if wider is None:
            raise RefusedError(f"its {own} is not computed by {self.format} runtimes")
        condition = 0 if op == "Where" else None
        wide = [
            self.cast(ref, wider)
            if ref is not None and ref.dtype == own and at != condition else ref
            for at, ref in enumerate(inputs)
        ]  # fmt: skip
        found = self._append(op, wide, wider if result == own else result, attributes)
        return self.cast(found, result)

    def _append(self, op: str, inputs: Sequence[Any], dtype: str, attributes: Any) -> Ref:
        ref = Ref(self.name(op.lower()), dtype)
        self.emit(op, inputs, [ref], **attributes)
        return ref

    def cast(self, ref: Ref, dtype: str) -> Ref:
        """Append a cast unless the dtype is right."""
        if ref.dtype == dtype:
            return ref
        return self._append("Cast", [ref], dtype, {"to": dtype})

    # ---- constants ----

    def constant(self, array: Any, dtype: str | None = None) -> Ref:
        """Return an initializer of these elements."""
        found = np.asarray(array) if dtype is None else np.asarray(array).astype(numpy_dtype(dtype))
        kind = dtype or found.dtype.name
        small = found.nbytes <= 256
        key = (kind, found.shape, found.tobytes()) if small else None
        if key in self._constants:
            return self._constants[key]
        ref = Ref(self.name("constant"), kind)
        self.initializers[ref.name] = (found, kind)
        if small:
            self._constants[key] = ref
        return ref

    def integers(self, numbers: Sequence[int]) -> Ref:
        """Return a vector of int64."""
        return self.constant(np.asarray(numbers, dtype=np.int64).reshape(-1))

    # ---- values ----

    def value(self, ref: Ref, shape: Sequence[Dim], *, first: bool = False) -> Value:
        """Return what an operation made, in one of the two layouts."""
        plain, other = (None, ref) if first else (ref, None)
        return Value(ref.dtype, tuple(shape), plain, other, None, self._scopes[-1])

    def plain(self, value: Any) -> Ref:
        """Return a value in the layout of the traced graph."""
        if isinstance(value, Missing):
            raise RefusedError(value.reason)
        if value.plain is None and value.array is not None:
            value.plain = self.constant(value.array, value.dtype)
        if value.plain is None:
            with self.scope(value.scope):
                perm = to_last(value.rank)
                value.plain = self._append("Transpose", [value.first], value.dtype, {"perm": perm})
        return value.plain  # type: ignore[no-any-return]

    def first(self, value: Value) -> Ref:
        """Return a value with its channels on axis 1."""
        if value.first is None:
            value.first = self.permuted(value, to_first(value.rank))
        return value.first

    def permuted(self, value: Value, perm: Sequence[int]) -> Ref:
        """Return a value with other axes; what the export knows is transposed by it."""
        if value.array is not None:
            key = (id(value), *perm)
            if key not in self._layouts:
                array = np.ascontiguousarray(value.array.transpose(perm))
                self._layouts[key] = self.constant(array, value.dtype)
            return self._layouts[key]
        plain = self.plain(value)
        with self.scope(value.scope):
            return self._append("Transpose", [plain], value.dtype, {"perm": list(perm)})

    # ---- elementwise ----

    def elementwise(self, compute: Callable[..., Ref], values: Sequence[Any]) -> Value:
        """Emit an elementwise operation in the layout that its operands have."""
        for value in values:
            if isinstance(value, Missing):
                raise RefusedError(value.reason)
        shape = broadcast(*(value.shape for value in values))
        refs = self._all_first(values, len(shape))
        if refs is not None:
            return self.value(compute(self, *refs), shape, first=True)
        return self.value(compute(self, *map(self.plain, values)), shape)

    def _all_first(self, values: Sequence[Value], rank: int) -> list[Ref] | None:
        """Return operands with channels first; None: they are plain."""
        if rank not in (4, 5) or all(value.first is None for value in values):
            return None
        if any(value.first is None and not self._is_cheap(value, rank) for value in values):
            return None
        return [self._operand_first(value, rank) for value in values]

    @staticmethod
    def _is_cheap(value: Value, rank: int) -> bool:
        if value.rank <= 1 or (value.array is not None and value.rank == rank):
            return True
        return value.rank == rank and product(value.shape[1:-1]) == 1

    def _operand_first(self, value: Value, rank: int) -> Ref:
        if value.rank == rank:
            return self.first(value)
        if product(value.shape) == 1 and value.rank == 0:
            return self.plain(value)
        shape = [-1] + [1] * (rank - 2)
        return self._append("Reshape", [self.plain(value), self.integers(shape)], value.dtype, {})

    # ---- sizes ----

    def shape_of(self, value: Value) -> Ref:
        """Return the sizes of a value, an int64 vector."""
        if all(isinstance(size, int) for size in value.shape):
            return self.integers([size for size in value.shape if isinstance(size, int)])
        return self._append("Shape", [self.plain(value)], "int64", {})

    def size_at(self, value: Value, axis: int) -> Ref:
        """Return the size of an axis, an int64 vector of one element."""
        size = value.shape[axis]
        if isinstance(size, int):
            return self.integers([size])
        axis %= value.rank
        attributes = {"start": axis, "end": axis + 1}
        return self._append("Shape", [self.plain(value)], "int64", attributes)

    def scalar(self, vector: Ref) -> Ref:
        """Return the only element of a vector."""
        return self.op("Squeeze", vector, self.integers([0]))
