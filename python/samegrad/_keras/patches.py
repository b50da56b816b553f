"""What of Keras's own source is changed, and the text that each change replaces.

A patch whose text is not there, or is there another number of times, stops the import: a new
version of Keras has to be looked at line by line.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple


class Text(NamedTuple):
    """Every occurrence of `old`, of which there are `times`, becomes `new`."""

    old: str
    new: str
    times: int = 1


class Span(NamedTuple):
    """What lies from `begin` to before `end`, whose SHA-256 begins with `digest`, becomes `new`."""

    begin: str
    end: str
    digest: str
    new: str


PATCHES: dict[str, list[Text | Span]] = {
    # Neither the user's keras.json nor the environment chooses backend or types.
    "keras.src.backend.config": [
        Span("# Attempt to read Keras config file.", 'if "KERAS_MAX_EPOCHS"', "", '_BACKEND = "samegrad"\n'),
        Span('if _BACKEND != "tensorflow":', "@keras_export", "", ""),
    ],
    # TensorFlow's types: 64 bits stay.
    "keras.src.backend.common.dtypes": [
        Text('config.backend() == "tensorflow"', 'config.backend() == "samegrad"', 5),
    ],
    # A size that follows from the number of examples is None to Keras.
    "keras.src.backend.common.variables": [
        Text(
            "        if d is None:\n            standardized_shape.append(d)",
            '        if d is None or type(d).__name__ == "Dim":\n            standardized_shape.append(None)',
        ),
    ],
    "keras.src.layers.layer": [
        Text(
            'elif backend.backend() == "numpy":\n    from keras.src.backend.numpy.layer import NumpyLayer as BackendLayer',
            'elif backend.backend() == "samegrad":\n    from samegrad._keras.layer import Layer as BackendLayer',
        ),
        # Penalties of outputs count the examples of all replicas.
        Text(
            "batch_size = ops.cast(\n                                    ops.shape(output)[0], dtype=loss.dtype\n                                )",
            "batch_size = BackendLayer.activity_batch_size(\n                                    output, loss.dtype\n                                )",
        ),
    ],
    "keras.src.models.model": [
        Text(
            'elif backend.backend() == "numpy":\n    from keras.src.backend.numpy.trainer import NumpyTrainer as Trainer',
            'elif backend.backend() == "samegrad":\n    from samegrad._keras.trainer import Trainer',
        ),
    ],
    "keras.src.export.saved_model": [
        Text(
            'elif backend.backend() == "numpy":\n    from keras.src.backend.numpy.export import (\n        NumpyExportArchive as BackendSavedModelExportArchive,\n    )',
            'elif backend.backend() == "samegrad":\n    from samegrad._keras.export import (\n        ExportArchive as BackendSavedModelExportArchive,\n    )',
        ),
    ],
    # Means are over the examples of all replicas.
    "keras.src.losses.loss": [
        Span("def reduce_values(", "def reduce_weighted_values(", "", "from samegrad._keras.losses import reduce_values\n\n\n"),
        Span("def apply_mask(", "def scale_loss_for_distribution(", "", "from samegrad._keras.losses import apply_mask\n\n\n"),
    ],
    "keras.src.utils.backend_utils": [
        Text(
            '        if self._backend == "tensorflow":\n',
            '        if self._backend == "samegrad":\n            return getattr(backend_module, name)\n        if self._backend == "tensorflow":\n',
        ),
        Text('if backend not in ("tensorflow",', 'if backend not in ("samegrad", "tensorflow",'),
    ],
}  # fmt: skip


def patched(module: str, source: str) -> str:
    """The source of a module of Keras with its patches.

    Raises:
        ImportError: It has not the text that a patch replaces.

    Example:
        >>> patched("no.such.module", "x = 1")
        'x = 1'
    """
    for patch in PATCHES.get(module, []):
        if isinstance(patch, Text):
            found = source.count(patch.old)
            _check(module, patch.old, found == patch.times, f"{found} times")
            source = source.replace(patch.old, patch.new)
            continue
        begin = source.find(patch.begin)
        end = source.find(patch.end, begin + 1)
        _check(module, patch.begin, 0 <= begin < end, "no such lines")
        digest = hashlib.sha256(source[begin:end].encode()).hexdigest()
        _check(module, patch.begin, digest.startswith(patch.digest), f"SHA-256 {digest[:16]}")
        source = source[:begin] + patch.new + source[end:]
    return source


def _check(module: str, text: str, holds: bool, found: str) -> None:
    if not holds:
        first = text.strip().splitlines()[0]
        raise ImportError(
            f"[samegrad.keras] the installed Keras is not the one that samegrad was made for: got "
            f"{found} in {module} at {first!r}; install the version that samegrad asks for."
        )
