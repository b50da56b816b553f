"""`assert_same_bits`: the first difference of two objects with state, bit by bit."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
_NUMBER = re.compile(r"\d+")
_SHOWN = 5  # paths in a message
# The doctor compares steps without the engine: it is loaded by the first comparison.
_VALUES = "samegrad.train._values"


def assert_same_bits(a: Any, b: Any) -> None:
    """Check that two objects have equal arrays, bit by bit, under equal paths.

    All NaN of a dtype count as equal. -0 and +0 differ.

    Args:
        a: Model, optimizer, variable, tensor, array, a structure of these, or the path of a
            checkpoint folder, as for `samegrad.fingerprint`.
        b: The same. It may be of another kind, such as the checkpoint of a model.

    Raises:
        AssertionError: They differ. The message names the first variable that does, the index of
            its first element that does, both values, their distance in units in the last place,
            and the numbers of variables and elements that differ.
        TypeError: A part is not numeric.
        ValueError: There is no array, a structure contains itself, or there is no checkpoint
            at a path.

    Example:
        >>> import numpy as np
        >>> try:
        ...     assert_same_bits({"w": np.float32([1, 2])}, {"w": np.float32([1, 2.0000002])})
        ... except AssertionError as error:
        ...     print(str(error).partition(": ")[2])
        got 1 of 1 variables and 1 of 2 elements that differ.
        First is w[1], float32, 1 unit in the last place apart:
          a: 2.0        (0x40000000)
          b: 2.0000002  (0x40000001)
    """
    difference = compare(*paired(a, b, "assert_same_bits"))
    if difference is not None:
        raise AssertionError(f"[assert_same_bits] all bits must be equal: got {difference}")


def paired(a: Any, b: Any, op_name: str) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return the arrays of two objects by paths that fit each other.

    An object and a checkpoint that holds it under a name have equal paths but for this name.
    """
    values_of = importlib.import_module(_VALUES).values_of
    x, y = (values_of(subject, op_name) for subject in (a, b))
    own = _under(x.prefix, x.arrays), _under(y.prefix, y.arrays)
    if len(own[0].keys() & own[1].keys()) >= len(x.arrays.keys() & y.arrays.keys()):
        return own
    return own[0], _under(x.prefix, y.arrays)


def _under(prefix: tuple[str, ...], arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {"/".join(filter(None, (*prefix, path))): array for path, array in arrays.items()}


@dataclass(frozen=True)
class _Differing:
    """Elements of one variable that differ.

    Attributes:
        path: Path of the variable.
        a: All elements of the one side.
        b: All elements of the other side.
        at: Positions of the differing ones in C order.
    """

    path: str
    a: Array
    b: Array
    at: npt.NDArray[np.intp]

    def __str__(self) -> str:
        index = ", ".join(map(str, np.unravel_index(self.at[0], self.a.shape)))
        a, b = (side.reshape(-1)[self.at] for side in (self.a, self.b))
        units, known = units_apart(a, b)
        texts = [_text(a[0]), _text(b[0])]
        width = max(map(len, texts))
        name = (self.path or "the value") + (f"[{index}]" if index else "")
        apart = _distance(self.a, units[0]) if known[0] else "NaN on one side"
        lines = [
            f"First is {name}, {self.a.dtype.name}, {apart}:",
            *(
                f"  {side}: {text.ljust(width)}  ({_hex(value)})"
                for side, text, value in zip("ab", texts, (a[0], b[0]), strict=True)
            ),
        ]
        if len(self.at) > 1:
            far = f", at most {_distance(self.a, units[known].max())}" if known.any() else ""
            lines.append(f"  {len(self.at)} of its {self.a.size} elements differ{far}.")
        return "\n".join(lines)


def compare(a: Mapping[str, Array], b: Mapping[str, Array]) -> str | None:
    """Describe how two sets of arrays differ; None if they do not.

    Args:
        a: Arrays by path.
        b: Arrays by path.
    """
    both = _in_order(a.keys() & b.keys())
    kinds = [path for path in both if not _same_kind(a[path], b[path])]
    differing = [
        _Differing(path, a[path], b[path], at)
        for path in both
        if path not in kinds and len(at := _differing(a[path], b[path]))
    ]
    only = {"a": _in_order(a.keys() - b.keys()), "b": _in_order(b.keys() - a.keys())}
    lines = [f"Only in {side}: {_some(paths)}." for side, paths in only.items() if paths]
    lines += [
        f"{path or 'The value'} is {_kind(a[path])} in a and {_kind(b[path])} in b."
        for path in kinds[:_SHOWN]
    ]
    if not lines and not differing:
        return None
    if differing:
        lines.append(str(differing[0]))
    variables = len(differing) + len(kinds) + sum(map(len, only.values()))
    elements = sum(len(one.at) for one in differing)
    compared = sum(a[path].size for path in both if path not in kinds)
    counted = f"{variables} of {len(a.keys() | b.keys())} variables"
    if elements:
        counted += f" and {elements} of {compared} elements"
    return "\n".join([f"{counted} that differ.", *lines])


def units_apart(a: Array, b: Array) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """Count the numbers of the dtype from each element to the other's.

    Args:
        a: Numbers.
        b: Numbers of the same dtype and shape.

    Returns:
        Distances, of a complex number the larger one of its parts, and where there is one: not
        next to NaN.

    Example:
        >>> a, b = np.float32([1.0, -0.0, np.nan]), np.float32([1.0000001, 0.0, 1.0])
        >>> units, known = units_apart(a, b)
        >>> units[:2].tolist(), known.tolist()
        ([1, 1], [True, True, False])
    """
    if a.dtype.kind == "c":
        units, known = units_apart(a.real, b.real)
        more, also = units_apart(a.imag, b.imag)
        return np.maximum(units, more), known & also
    x, y = _ranks(a), _ranks(b)
    known = np.ones(a.shape, bool) if a.dtype.kind in "biu" else ~(np.isnan(a) | np.isnan(b))
    return np.where(x > y, x - y, y - x), known


def _ranks(values: Array) -> npt.NDArray[np.uint64]:
    """Return the rank of each number among all numbers of its dtype."""
    size = 8 * values.dtype.itemsize
    bits = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}").astype(np.uint64)
    if values.dtype.kind in "bu":
        return bits
    sign, mask = np.uint64(1 << (size - 1)), np.uint64((1 << size) - 1)
    negative = bits ^ sign if values.dtype.kind == "i" else ~bits & mask
    return np.where(bits & sign, negative, bits | sign)


def _differing(a: Array, b: Array) -> npt.NDArray[np.intp]:
    """Return the positions of the elements whose bits differ; all NaN are equal."""
    if a.dtype == b.dtype and a.tobytes() == b.tobytes():
        return np.zeros(0, np.intp)
    canonical = importlib.import_module(_VALUES).canonical_nan
    x, y = (np.ascontiguousarray(canonical(side)).reshape(-1) for side in (a, b))
    x, y = (
        side if side.dtype.isnative else side.astype(side.dtype.newbyteorder("="))
        for side in (x, y)
    )
    if x.tobytes() == y.tobytes():
        return np.zeros(0, np.intp)
    bytes_of = [side.view(np.uint8).reshape(len(side), -1) for side in (x, y)]
    return np.flatnonzero((bytes_of[0] != bytes_of[1]).any(axis=1))


def _same_kind(a: Array, b: Array) -> bool:
    return a.shape == b.shape and (a.dtype == b.dtype or a.dtype.name == b.dtype.name)


def _kind(array: Array) -> str:
    return f"{array.dtype.name} {list(array.shape)}"


def _in_order(paths: Iterable[str]) -> list[str]:
    """Return paths in the order in which a reader counts: layers/2 before layers/10."""
    return sorted(paths, key=lambda path: (_NUMBER.sub(lambda n: n[0].zfill(20), path), path))


def _text(value: Any) -> str:
    return repr(value.item()) if value.dtype.kind in "biuc" else str(value)


def _hex(value: Any) -> str:
    parts = [value.real, value.imag] if value.dtype.kind == "c" else [value]
    return ", ".join("0x" + np.asarray(part).tobytes()[::-1].hex() for part in parts)


def _distance(array: Array, units: np.uint64) -> str:
    if array.dtype.kind in "biu":
        return f"{units} apart"
    return f"{units} unit{'' if units == 1 else 's'} in the last place apart"


def _some(paths: list[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(paths[:_SHOWN]) + more


__all__ = ["assert_same_bits", "compare", "paired", "units_apart"]
