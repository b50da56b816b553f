"""Reader of exported SavedModels by our own decoder, and a check of their nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from samegrad.train._protobuf import BYTES, FIXED32, VARINT, fields, signed

_ATTRIBUTES = {2: "string", 3: "int", 4: "float", 5: "bool", 6: "type", 7: "shape", 8: "tensor",
               1: "list(int)"}  # fmt: skip
_KINDS = {1: BYTES, 2: BYTES, 3: VARINT, 4: FIXED32, 5: VARINT, 6: VARINT, 7: BYTES, 8: BYTES}


class Node(NamedTuple):
    """A node of a graph; each attribute is its kind and its value."""

    name: str
    op: str
    inputs: list[str]
    attributes: dict[str, tuple[str, Any]]


class Model(NamedTuple):
    """Nodes, and dtype, shape and tensor of inputs and outputs by name."""

    nodes: list[Node]
    inputs: dict[str, Any]
    outputs: dict[str, Any]


def _parts(content: Any, kinds: dict[int, int]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {number: [] for number in kinds}
    for number, value in fields(memoryview(content), kinds):
        found[number].append(value)
    return found


def _text(part: Any) -> str:
    return bytes(part).decode()


def _entries(parts: list[Any]) -> Iterator[tuple[str, Any]]:
    for part in parts:
        entry = _parts(part, {1: BYTES, 2: BYTES})
        yield _text(entry[1][0]), entry[2][0]


def _shape(content: Any) -> list[int]:
    dims = _parts(content, {2: BYTES})[2]
    return [signed(_parts(dim, {1: VARINT})[1][0]) for dim in dims]


def _port(content: Any) -> tuple[int, list[int], str]:
    info = _parts(content, {1: BYTES, 2: VARINT, 3: BYTES})
    return info[2][0], _shape(info[3][0]), _text(info[1][0])


def _node(content: Any) -> Node:
    parts = _parts(content, {1: BYTES, 2: BYTES, 3: BYTES, 5: BYTES})
    attributes = {}
    for key, value in _entries(parts[5]):
        ((number, own),) = fields(value, _KINDS)
        attributes[key] = _ATTRIBUTES[number], own
    names = [_text(one) for one in parts[3]]
    return Node(_text(parts[1][0]), _text(parts[2][0]), names, attributes)


def read_model(folder: Any) -> Model:
    """The only graph of a SavedModel and its only signature."""
    model = _parts(Path(folder, "saved_model.pb").read_bytes(), {1: VARINT, 2: BYTES})
    assert model[1] == [1]
    (meta,) = model[2]
    parts = _parts(meta, {1: BYTES, 2: BYTES, 5: BYTES})
    assert _text(_parts(parts[1][0], {4: BYTES})[4][0]) == "serve"
    nodes = [_node(one) for one in _parts(parts[2][0], {1: BYTES})[1]]
    ((name, signature),) = _entries(parts[5])
    assert name == "serving_default"
    ports = _parts(signature, {1: BYTES, 2: BYTES, 3: BYTES})
    assert _text(ports[3][0]) == "tensorflow/serving/predict"
    inputs, outputs = ({key: _port(info) for key, info in _entries(ports[at])} for at in (1, 2))
    return Model(nodes, inputs, outputs)


def check_model(model: Model, definitions: dict[str, Any]) -> None:
    """Compare nodes with TensorFlow's definitions: names, attributes, counts and dtypes."""
    results: dict[str, list[Any]] = {}
    for node in model.nodes:
        assert node.name not in results, f"two nodes {node.name}"
        results[node.name] = _dtypes(node, definitions[node.op]["outputs"])
    for node in model.nodes:
        definition = definitions[node.op]
        known = definition["attributes"]
        assert set(node.attributes) <= set(known), node
        for key, (kind, has_default, allowed) in known.items():
            assert key in node.attributes or has_default, f"{node} lacks {key}"
            if key in node.attributes:
                own, value = node.attributes[key]
                assert own == kind, f"{key} of {node}"
                assert not allowed or kind != "type" or value in allowed, f"{key} of {node}"
        found = []
        for name in node.inputs:
            stem, _, at = name.partition(":")
            found.append(results[stem][int(at or 0)])
        assert found == _dtypes(node, definition["inputs"]), node
    for dtype, _, name in [*model.inputs.values(), *model.outputs.values()]:
        assert results[name.removesuffix(":0")] == [dtype]


def _dtypes(node: Node, arguments: list[Any]) -> list[int]:
    found: list[int] = []
    for dtype, count in arguments:
        number = node.attributes[count][1] if count else 1
        own = dtype if isinstance(dtype, int) else _type(node, dtype)
        found += [own] * number
    return found


_DEFAULT_TYPE = 3  # int32, for indices


def _type(node: Node, key: str) -> int:
    return int(node.attributes[key][1]) if key in node.attributes else _DEFAULT_TYPE
