"""Structures of Python as data: arguments and results of functions."""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping
from typing import Any

from samegrad._tensor.complex_tensor import ComplexTensor
from samegrad._tensor.spec import TensorSpec
from samegrad.train._safetensors import DTYPE_NAMES
from samegrad.train._storage import Json

_PLAIN = (bool, int, float, str)


class Tensor:
    """Place of a tensor in a structure.

    Attributes:
        index: Its number among the tensors.
        spec: Its shape, dtype and name.
    """

    def __init__(self, index: int, spec: TensorSpec) -> None:
        self.index, self.spec = index, spec


def encode(value: Any, tensor: Callable[[Any], Tensor | None], what: str) -> Json:
    """Return a structure as data.

    Args:
        value: The structure.
        tensor: Returns the place of a leaf that is a tensor; None for others.
        what: Operation and name for errors.

    Raises:
        TypeError: A leaf is neither a tensor nor a number, string or None.
    """
    place = tensor(value)
    if place is not None:
        return {"tensor": place.index, **encode_spec(place.spec)}
    if value is None or type(value) in _PLAIN:
        return {"value": value}
    if isinstance(value, ComplexTensor):
        return {"complex": [encode(part, tensor, what) for part in value.parts]}
    if isinstance(value, Mapping):
        if not all(type(key) in (str, int) for key in value):
            raise TypeError(
                f"{what} must have strings or integers as keys of dicts: got {list(value)!r:.80}; "
                "rename them."
            )
        return {"dict": [[key, encode(part, tensor, what)] for key, part in value.items()]}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        parts = [encode(part, tensor, what) for part in value]
        return {"named": type(value).__name__, "fields": list(value._fields), "parts": parts}
    if type(value) in (list, tuple):
        parts = [encode(part, tensor, what) for part in value]
        return {"list" if isinstance(value, list) else "tuple": parts}
    why = f", which is {value.what}" if hasattr(value, "what") else ""
    raise TypeError(
        f"{what} must be tensors, numbers, strings or None, in lists, tuples and dicts: got "
        f"{value!r:.80} of the class {type(value).__name__}{why}; leave it out of the exported "
        "function."
    )


def encode_spec(spec: TensorSpec) -> dict[str, Json]:
    """Return a spec as data."""
    shape: Json = [None if size is None else int(size) for size in spec.shape]
    found: dict[str, Json] = {"dtype": spec.dtype.name, "shape": shape}
    if spec.name:
        found["name"] = str(spec.name)
    return found


def is_dtype(name: Any) -> bool:
    """Tell if arrays of a file may have a dtype of this name."""
    return isinstance(name, str) and name in DTYPE_NAMES


def decode_spec(data: Any) -> TensorSpec:
    """Return the spec of data from anywhere.

    Raises:
        ValueError: The data is damaged.
    """
    shape, dtype, name = data.get("shape"), data.get("dtype"), data.get("name")
    sizes_are_known = isinstance(shape, list) and all(
        size is None or (type(size) is int and 0 <= size < 2**40) for size in shape
    )
    if not sizes_are_known or len(shape) > 8 or not is_dtype(dtype):
        raise ValueError(f"a tensor is described as {data!r:.80}")
    if not (name is None or isinstance(name, str)):
        raise ValueError(f"a tensor is called {name!r:.40}")
    spec: TensorSpec = TensorSpec(shape, dtype, name)
    return spec


def decode(data: Any) -> Any:
    """Return the structure of data from anywhere, with a `Tensor` at each tensor's place.

    Raises:
        ValueError: The data is damaged.
    """
    if not isinstance(data, dict) or not data:
        raise ValueError(f"a structure is {data!r:.80}")
    if "tensor" in data:
        if type(data["tensor"]) is not int:
            raise ValueError(f"a tensor has the number {data['tensor']!r:.40}")
        return Tensor(data["tensor"], decode_spec(data))
    if "value" in data:
        if data["value"] is not None and type(data["value"]) not in _PLAIN:
            raise ValueError(f"a value is {data['value']!r:.80}")
        return data["value"]
    kind = next(
        (kind for kind in ("list", "tuple", "dict", "parts", "complex") if kind in data), ""
    )
    parts = data.get(kind)
    if not isinstance(parts, list):
        raise ValueError(f"a structure is {data!r:.80}")
    if kind == "dict":
        if not all(isinstance(p, list) and len(p) == 2 and type(p[0]) in (str, int) for p in parts):
            raise ValueError(f"a dict is {parts!r:.80}")
        return {key: decode(part) for key, part in parts}
    made = [decode(part) for part in parts]
    if kind == "parts":
        return _named(data, made)
    if kind == "complex":
        if len(made) != 2 or not all(isinstance(part, Tensor) for part in made):
            raise ValueError(f"a complex tensor is {data!r:.80}")
        return ComplexTensor(*made)
    return made if kind == "list" else tuple(made)


def _named(data: Any, parts: list[Any]) -> Any:
    name, fields = data.get("named"), data.get("fields")
    names = [name, *fields] if isinstance(fields, list) else [None]
    if not all(isinstance(n, str) and n.isidentifier() for n in names) or len(parts) > 255:
        raise ValueError(f"a named tuple is {data!r:.80}")
    return collections.namedtuple(name, fields)(*parts)


def tensors_of(structure: Any) -> list[Tensor]:
    """Return the tensors of a structure in the order of the walk."""
    if isinstance(structure, Tensor):
        return [structure]
    if isinstance(structure, dict):
        structure = list(structure.values())
    if isinstance(structure, ComplexTensor):
        structure = list(structure.parts)
    if isinstance(structure, list | tuple):
        return [tensor for part in structure for tensor in tensors_of(part)]
    return []


def fill(structure: Any, values: list[Any]) -> Any:
    """Return the structure with the value of each tensor."""
    if isinstance(structure, Tensor):
        return values[structure.index]
    if isinstance(structure, dict):
        return {key: fill(part, values) for key, part in structure.items()}
    if isinstance(structure, ComplexTensor):
        return ComplexTensor(*(fill(part, values) for part in structure.parts))
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*(fill(part, values) for part in structure))
    if isinstance(structure, list | tuple):
        return type(structure)(fill(part, values) for part in structure)
    return structure
