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


def _branch(kind: str, backend_class: str, ours: str) -> Text:
    """Where Keras chooses a class by the backend's name, NumPy's branch becomes samegrad's."""
    return Text(
        f'elif backend.backend() == "numpy":\n    from keras.src.backend.numpy.{kind} import '
        f"{backend_class}",
        f'elif backend.backend() == "samegrad":\n    from samegrad._keras.{kind} import {ours}',
    )


def _import(names: str) -> str:
    return f"from samegrad._keras.{names}\n\n\n"


# What Keras calls TensorFlow.
_FACADE = 'LazyModule("samegrad._keras.tensorflow")'
# A module that is not there, whoever asks for it.
_NO_FILES = (
    'LazyModule("samegrad._keras.gfile", import_error_msg="[samegrad.keras] paths on other '
    'machines need TensorFlow, which samegrad never imports: copy the files.")'
)

PATCHES: dict[str, list[Text | Span]] = {
    # Neither the user's keras.json nor the environment chooses backend or types.
    "keras.src.backend.config": [
        Span(
            "# Attempt to read Keras config file.",
            'if "KERAS_MAX_EPOCHS"',
            "23362b8877ed8078",
            '_BACKEND = "samegrad"\n',
        ),
        Span('if _BACKEND != "tensorflow":', "@keras_export", "da6c13eaabae6303", ""),
    ],
    # TensorFlow's types: 64 bits stay.
    "keras.src.backend.common.dtypes": [
        Text('config.backend() == "tensorflow"', 'config.backend() == "samegrad"', 5),
    ],
    # A size that follows from the number of examples is None to Keras.
    "keras.src.backend.common.variables": [
        Text(
            "        if d is None:\n            standardized_shape.append(d)",
            '        if d is None or type(d).__name__ == "Dim":\n'
            "            standardized_shape.append(None)",
        ),
    ],
    "keras.src.layers.layer": [
        _branch("layer", "NumpyLayer as BackendLayer", "Layer as BackendLayer"),
        # Penalties of outputs count the examples of all replicas.
        Text(
            "batch_size = ops.cast(\n" + 36 * " " + "ops.shape(output)[0], dtype=loss.dtype\n",
            "batch_size = BackendLayer.activity_batch_size(\n"
            + (36 * " " + "output, dtype=loss.dtype\n"),
        ),
    ],
    "keras.src.models.model": [_branch("trainer", "NumpyTrainer as Trainer", "Trainer")],
    "keras.src.export.saved_model": [
        _branch(
            "export",
            "(\n        NumpyExportArchive as BackendSavedModelExportArchive,\n    )",
            "(\n        ExportArchive as BackendSavedModelExportArchive,\n    )",
        ),
    ],
    # Means are over the examples of all replicas.
    "keras.src.losses.loss": [
        Span(
            "def reduce_values(",
            "def reduce_weighted_values(",
            "761358e6e0b538fa",
            _import("losses import reduce_values"),
        ),
        Span(
            "def apply_mask(",
            "def scale_loss_for_distribution(",
            "648394e1365bbfec",
            _import("losses import apply_mask"),
        ),
    ],
    # Statistics are those of the global batch, synchronized or not.
    "keras.src.layers.normalization.batch_normalization": [
        Text(
            'if synchronized and backend.backend() != "tensorflow":',
            'if synchronized and backend.backend() != "samegrad":',
        ),
        Span(
            "        if mask is None:\n            return ops.moments(",
            "    def _renorm_correction_and_moments(",
            "85cf533c560e3efa",
            "        from samegrad._keras.statistics import batch_moments\n\n"
            "        return batch_moments(inputs, mask, self._reduction_axes)\n\n",
        ),
    ],
    # samegrad's seed decides where none is given.
    "keras.src.random.seed_generator": [
        Text(
            "    return python_random.randint(1, int(1e9))",
            "    from samegrad._keras.seeds import default_seed\n\n    return default_seed()",
        ),
    ],
    "keras.src.utils.rng_utils": [
        Text(
            "    if tf.available:\n        tf.random.set_seed(seed)",
            "    import samegrad.random\n\n    samegrad.random.set_seed(seed)",
        ),
    ],
    "keras.src.trainers.data_adapters": [
        Text('"DatasetV2"', '"Dataset"'),
        Text(
            '"tensorflow.python." in str(parent.__module__)',
            'str(parent.__module__).startswith("samegrad.")',
        ),
    ],
    # Sizes are known already.
    "keras.src.layers.preprocessing.text_vectorization": [
        Text("                outputs.set_shape(static_padded_shape)\n", ""),
    ],
    "keras.src.layers.preprocessing.hashed_crossing": [
        Text("tf_backend.numpy.expand_dims", "tf.expand_dims", 2),
        Text("outputs.set_shape(first_shape)", "pass"),
        Text("                outputs.set_shape(first_shape + (1,))\n", ""),
    ],
    # TensorFlow is never imported.
    "keras.src.utils.module_utils": [
        Text('tensorflow = LazyModule("tensorflow")', f"tensorflow = {_FACADE}"),
        Text(
            'gfile = LazyModule("tensorflow.io.gfile", pip_name="tensorflow")',
            f"gfile = {_NO_FILES}",
        ),
    ],
    "keras.src.utils.backend_utils": [
        Text(
            '        if self._backend == "tensorflow":\n',
            '        if self._backend == "samegrad":\n'
            "            return getattr(backend_module, name)\n"
            '        if self._backend == "tensorflow":\n',
        ),
        Text('if backend not in ("tensorflow",', 'if backend not in ("samegrad", "tensorflow",'),
    ],
}


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
