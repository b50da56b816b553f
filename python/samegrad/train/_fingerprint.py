"""Fingerprints: a short hash of all arrays of an object, which anybody can compute again."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from samegrad._base.machine import processor
from samegrad.train._storage import Json
from samegrad.train._values import canonical_nan, values_of

T = TypeVar("T")
_VERSION = "sg1"
_HEADER = b"samegrad fingerprint 1\n"
_PIECE = 1 << 20  # elements


@dataclasses.dataclass(frozen=True)
class FingerprintInfo:
    """Fingerprint and the facts that its bits may depend on.

    Attributes:
        fingerprint: As `fingerprint` returns it.
        arrays: The number of arrays.
        bytes: The number of bytes of all arrays.
        samegrad: Version of samegrad.
        reduction_order: Version of the reduction order.
        function_version: Version of the functions.
        kernels: Variant of the kernels.
        processor: Model of the processor; None for a checkpoint, which does not record it.
        numeric_policy: Settings that change bits, by name.

    Example:
        >>> import samegrad as tf
        >>> info = tf.fingerprint_info(tf.Variable([1.0, 2.0]))
        >>> info.arrays, info.bytes, info.samegrad == tf.__version__
        (1, 8, True)
    """

    fingerprint: str
    arrays: int
    bytes: int
    samegrad: str | None
    reduction_order: int | None
    function_version: int | None
    kernels: str | None
    processor: str | None
    numeric_policy: dict[str, str]

    def __str__(self) -> str:
        named = dataclasses.asdict(self)
        named["numeric_policy"] = ", ".join(f"{k}={v}" for k, v in self.numeric_policy.items())
        return "\n".join(
            f"{name.replace('_', ' ')}:".ljust(18) + str("unknown" if value is None else value)
            for name, value in named.items()
        )

    def to_json(self) -> str:
        """Return the fields as a JSON object."""
        return json.dumps(dataclasses.asdict(self), indent=2)


def fingerprint(subject: Any) -> str:
    """Return a short string that differs if any bit of any array differs.

    It depends on path, dtype, shape and bytes of each array, and on nothing else: not on replicas,
    processes, names of layers, or the machine. All NaN of a dtype count as equal; -0 and +0 differ.
    A variable with a copy per replica counts with the value that reading it returns. The numbers of
    Python in a checkpoint, such as the position in the data, do not count. The format is specified
    in docs/verification.md. TensorFlow's function of this name hashes each row of a tensor.

    Args:
        subject: Model, layer, optimizer, metric, `tf.Module`, `tf.train.Checkpoint`, variable,
            tensor, array or number, a structure of these, or the path of a checkpoint folder. Of a
            folder of several checkpoints, the latest is read.

    Returns:
        String of 36 characters, such as "sg1-f65a2b1dd1f3a4c1d3ba2a4ed8c4a5f1".

    Raises:
        TypeError: A part is not numeric, such as a string or a `PerReplica` value.
        ValueError: There is no array, a structure contains itself, or there is no checkpoint at
            the path.
        CorruptCheckpointError: A file of the checkpoint is missing, truncated or altered.

    Example:
        >>> import numpy as np, samegrad as tf
        >>> model = tf.keras.Sequential([tf.keras.Input([3]), tf.keras.layers.Dense(2)])
        >>> path = tf.train.Checkpoint(model=model).write("fingerprinted")
        >>> tf.fingerprint(model) == tf.fingerprint(path)
        True
        >>> tf.fingerprint([np.float32(0.0)]) == tf.fingerprint([np.float32(-0.0)])
        False
    """
    return _hash_of(values_of(subject, "fingerprint").arrays)


def fingerprint_info(subject: Any) -> FingerprintInfo:
    """Return a fingerprint with versions, kernels, processor and numeric policy.

    Args:
        subject: As for `fingerprint`. For a checkpoint folder, the facts are those of the process
            that wrote it.

    Returns:
        `FingerprintInfo`.

    Raises:
        TypeError: As for `fingerprint`.
        ValueError: As for `fingerprint`.

    Example:
        >>> import samegrad as tf
        >>> print(str(tf.fingerprint_info([1, 2])).splitlines()[1])
        arrays:           2
    """
    arrays, _, provided, stored = values_of(subject, "fingerprint_info")
    versions, policy = (_mapping(provided.get(name)) for name in ("numerics", "numeric_policy"))
    return FingerprintInfo(
        fingerprint=_hash_of(arrays),
        arrays=len(arrays),
        bytes=sum(array.nbytes for array in arrays.values()),
        samegrad=_of_type(str, provided.get("samegrad_version")),
        reduction_order=_of_type(int, versions.get("reduction_order")),
        function_version=_of_type(int, versions.get("function_version")),
        kernels=_of_type(str, provided.get("isa")),
        processor=None if stored else processor(),
        numeric_policy={name: str(setting) for name, setting in sorted(policy.items())},
    )


def _mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _of_type(kind: type[T], value: Json) -> T | None:
    """Return a value of a manifest, which anybody may have written, if it has the right type."""
    return value if isinstance(value, kind) else None


def _hash_of(arrays: dict[str, npt.NDArray[Any]]) -> str:
    everything = hashlib.blake2b(_HEADER, digest_size=16)
    for path, array in arrays.items():
        entry = [path, array.dtype.name, list(array.shape), _digest(array)]
        everything.update(json.dumps(entry, separators=(",", ":")).encode() + b"\n")
    return f"{_VERSION}-{everything.hexdigest()}"


def _digest(array: npt.NDArray[Any]) -> str:
    """Return the hash of the elements in C order and little-endian."""
    digest = hashlib.blake2b(digest_size=32)
    flat = np.ascontiguousarray(array).reshape(-1)
    for begin in range(0, flat.size, _PIECE):
        piece = canonical_nan(flat[begin : begin + _PIECE])
        if piece.dtype.name != "bfloat16":  # its order is that of the machine
            piece = piece.astype(piece.dtype.newbyteorder("<"), copy=False)
        digest.update(piece.view(np.uint8).data)
    return digest.hexdigest()
