"""Names that samegrad.keras adds to Keras's: their modules.

A name here wins over Keras's.
"""

from __future__ import annotations

ADDITIONS: dict[str, tuple[str, ...]] = {
    # Verified files, a copy on this computer first.
    "datasets": ("samegrad._keras.datasets",),
    "datasets.fashion_mnist": ("samegrad._keras.datasets.fashion_mnist",),
    "datasets.mnist": ("samegrad._keras.datasets.mnist",),
    "optimizers": ("samegrad._keras.lazy_adam",),
    # Older programs.
    "backend": ("samegrad._keras.older.backend",),
    "callbacks.experimental": ("samegrad._keras.older.callbacks",),
    "constraints": ("samegrad._keras.older.constraints",),
    "experimental": ("samegrad._keras.older.schedules",),
    "layers": ("samegrad._keras.older.local", "samegrad._keras.older.cells"),
    "layers.experimental": (
        "samegrad._keras.older.preprocessing",
        "samegrad._keras.older.normalization",
    ),
    "layers.experimental.preprocessing": ("samegrad._keras.older.preprocessing",),
    "models": ("samegrad._keras.older.from_config",),
    "metrics": ("samegrad._keras.older.metrics",),
    "mixed_precision.experimental": ("samegrad._keras.older.policies",),
    "losses": ("samegrad._keras.older.losses",),
    "utils": ("samegrad._keras.older.ordinal",),
    "optimizers.experimental": ("samegrad._keras.older.optimizer_names",),
    "optimizers.legacy": ("samegrad._keras.older.optimizer_names",),
}

# Those with classes that files of models name: they are known before a file is read.
SERIALIZED = (
    "samegrad._keras.lazy_adam",
    "samegrad._keras.older.constraints",
    "samegrad._keras.older.local",
    "samegrad._keras.older.normalization",
)
