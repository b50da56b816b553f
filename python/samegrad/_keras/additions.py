"""What samegrad.keras has beside Keras's own names: which module adds to which.

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
    "layers.experimental": ("samegrad._keras.older.preprocessing",),
    "layers.experimental.preprocessing": ("samegrad._keras.older.preprocessing",),
    "metrics": ("samegrad._keras.older.metrics",),
    "mixed_precision.experimental": ("samegrad._keras.older.policies",),
    "losses": ("samegrad._keras.older.losses",),
    "optimizers.experimental": ("samegrad._keras.older.optimizer_names",),
    "optimizers.legacy": ("samegrad._keras.older.optimizer_names",),
}
