"""What to say when somebody asks for a name that is not there."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Callable
from typing import Any

NAMESPACES = (
    "", "math", "nn", "random", "data", "distribute", "train", "config", "debugging", "errors",
    "keras", "keras.layers", "keras.losses", "keras.metrics", "keras.optimizers", "keras.models",
    "keras.initializers", "keras.regularizers", "keras.activations", "keras.utils",
)  # fmt: skip

# TensorFlow's names that have no place here, and what stands in for them.
REASONS = {
    "Session": "there are no graphs to feed: call a samegrad.function",
    "Graph": "there are no graphs to feed: write a samegrad.function",
    "placeholder": "there are no graphs to feed: use a function's arguments",
    "compat": "there is no first version to be compatible with",
    "v1": "there is no first version to be compatible with",
    "raw_ops": "operations have one name each: see samegrad.math and samegrad.nn",
    "RaggedTensor": "pad sequences and give their true counts to nn.compute_weighted_mean_loss",
    "SparseTensor": "tensors are dense; gradients of gather are summed row by row",
    "io": "read files with NumPy and make a data.Dataset of the arrays or of a generator",
    "image": "prepare images with NumPy or Pillow in Dataset.map",
    "lite": "models are for training; save weights with train.Checkpoint (safetensors)",
    "saved_model": "save weights with train.Checkpoint (safetensors)",
    "tpu": "replicas run on the CPUs of this machine: distribute.MirroredStrategy(replicas=8)",
    "summary": "write metrics with the --log option or with your own logger",
    "profiler": "see explain() of a function or strategy",
    "numpy_function": "steps run without Python; use Dataset.map for Python code on data",
    "py_function": "steps run without Python; use Dataset.map for Python code on data",
}


def place_of(name: str) -> str | None:
    """Where a public name lives, or None.

    Example:
        >>> place_of("Dense")
        'samegrad.keras.layers.Dense'
    """
    for namespace in NAMESPACES:
        module = "samegrad" + ("." + namespace if namespace else "")
        if name in getattr(importlib.import_module(module), "__all__", ()):
            return f"{module}.{name}"
    return None


def message(module: str, name: str) -> str:
    """What the AttributeError says.

    Example:
        >>> message("samegrad.keras.layers", "Dens")
        "module 'samegrad.keras.layers' has no attribute 'Dens'; did you mean 'Dense'?"
    """
    text = f"module {module!r} has no attribute {name!r}"
    if name in REASONS:
        return f"{text}: {REASONS[name]}."
    elsewhere = place_of(name)
    if elsewhere:
        return f"{text}; it is {elsewhere}."
    known = getattr(sys.modules[module], "__all__", ())
    near = difflib.get_close_matches(name, known, n=1)
    return f"{text}; did you mean {near[0]!r}?" if near else f"{text}; see dir({module})."


def getattr_of(module: str) -> Callable[[str], Any]:
    """A module's `__getattr__` that raises with the nearest name or the reason.

    Example:
        >>> getattr_of("samegrad.nn")("relux")
        Traceback (most recent call last):
        AttributeError: module 'samegrad.nn' has no attribute 'relux'; did you mean 'relu'?
    """

    def missing(name: str) -> Any:
        if name.startswith("__"):  # asked by Python itself
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        raise AttributeError(message(module, name))

    return missing
