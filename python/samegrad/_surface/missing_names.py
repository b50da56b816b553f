"""Hints for names that do not exist.

Dotted names are those of TensorFlow without its own: "keras.layers.Dense" stands for
`tf.keras.layers.Dense`.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from samegrad._base.shown import did_you_mean
from samegrad._base.tracebacks import user_frames_only
from samegrad._surface.boundary import guarded

NAMESPACES = (
    "", "math", "nn", "random", "data", "distribute", "train", "config", "debugging", "errors",
    "keras", "keras.layers", "keras.losses", "keras.metrics", "keras.optimizers", "keras.models",
    "tpu.experimental",
    "keras.initializers", "keras.regularizers", "keras.activations", "keras.utils", "autograph",
    "autograph.experimental", "keras.mixed_precision", "linalg", "image", "bitwise", "autodiff",
    "strings", "io", "io.gfile", "audio", "signal", "sparse", "ragged", "sets", "lookup",
    "lookup.experimental", "queue", "test", "data.experimental", "saved_model", "export",
)  # fmt: skip

_NO_GRAPHS = "there are no graphs to feed: call a samegrad.function"
_EAGER = "functions always run at once unless samegrad.function traces them: leave it out"
_ONE_MACHINE = "replicas run on the CPUs of this machine: distribute.MirroredStrategy(replicas=8)"
_NO_SERVERS = (
    "there are no parameter servers: train on one machine with distribute.MirroredStrategy("
    "replicas=8), on several with distribute.MultiWorkerMirroredStrategy under mpirun"
)
_NO_GPU = "there is no GPU, and nothing to place: leave it out"
_NO_PYTHON = "it is samegrad.py_function or samegrad.numpy_function, in Dataset.map"
_EIGENVALUES = "eigenvalues are those of symmetric matrices: see linalg.eigh"
_DENSE = "steps compute with dense tensors: see samegrad.sparse.to_dense"
_RAGGED = "one axis has different sizes, and this takes none: see to_tensor() and flat_values"
_RECORDS = "read files with NumPy and make a data.Dataset of the arrays or of a generator"
_TEXT = "tensors hold numbers: prepare strings in Python and make a data.Dataset of their numbers"
_WEIGHTS = "save weights with train.Checkpoint, whole models with keras.Model.save('a.keras')"
_IMAGES = "prepare images with NumPy or Pillow in Dataset.map"
_VARIABLES = "make a samegrad.Variable, or a weight with Layer.add_weight"
_SHARED = "call a layer again where the older program reuses its variables: it has one set of them"
_COLLECTED = "ask the model: trainable_variables, losses, non_trainable_variables"
_OWN_LOOP = "train with keras.Model.fit, or write the loop: GradientTape and strategy.run"
_PRIVATE = "it is a private part of TensorFlow: use the public name"

# Functions that refuse ragged tensors, which TensorFlow's take.
NOT_RAGGED = (
    "dtypes.complex", "image.resize", "math.unsorted_segment_max",
    "math.unsorted_segment_mean", "math.unsorted_segment_min", "math.unsorted_segment_prod",
    "math.unsorted_segment_sqrt_n", "math.unsorted_segment_sum", "ragged.stack", "stack",
    "strings.bytes_split", "strings.format", "strings.split", "strings.unicode_decode",
    "strings.unicode_split",
)  # fmt: skip
# Modules that lack some of TensorFlow's names, and the substitutes for the others.
PARTS = {"image": _IMAGES, "io": _RECORDS, "tpu": _ONE_MACHINE, "tpu.experimental": _ONE_MACHINE}
# TensorFlow's names that do not fit here, and their substitutes. A key is a name in any module, or
# the end of a dotted name. It also covers all names below it.
REASONS = {
    "Session": _NO_GRAPHS,
    "Session().run": _NO_GRAPHS,
    "InteractiveSession": _NO_GRAPHS,
    "InteractiveSession().run": _NO_GRAPHS,
    "ConfigProto": "there are no sessions to configure: see config.threading",
    "GPUOptions": _NO_GPU,
    "Graph": "there are no graphs to feed: write a samegrad.function",
    "ConcreteFunction.graph": "there are no graphs to look at: see explain() of the function",
    "GraphDef": "there are no graphs to feed: write a samegrad.function",
    "get_default_graph": _NO_GRAPHS,
    "get_default_session": _NO_GRAPHS,
    "tensor_summary": "write summary.scalar, histogram, image, text or audio",
    "placeholder": "there are no graphs to feed: use a function's arguments",
    "global_variables_initializer": "variables have their values from the start: leave it out",
    "local_variables_initializer": "variables have their values from the start: leave it out",
    "get_variable": _VARIABLES,
    "variable_scope": _SHARED,
    "get_variable_scope": _SHARED,
    "make_template": _SHARED,
    "AUTO_REUSE": _SHARED,
    "get_collection": _COLLECTED,
    "GraphKeys": _COLLECTED,
    "trainable_variables": _COLLECTED,
    "global_variables": _COLLECTED,
    "add_to_collection": "keep it in a list, or use Layer.add_loss",
    "average_gradients": "strategy.run sums the gradients of all replicas in apply_gradients: "
    "leave it out",
    "compute_gradients": "use a GradientTape, or optimizer.minimize(loss, var_list), inside "
    "strategy.run",
    "disable_eager_execution": _EAGER,
    "enable_eager_execution": _EAGER,
    "disable_v2_behavior": _EAGER,
    "enable_v2_behavior": _EAGER,
    "Saver": _WEIGHTS,
    "AdamOptimizer": "it is samegrad.keras.optimizers.Adam",
    "GradientDescentOptimizer": "it is samegrad.keras.optimizers.SGD",
    "MomentumOptimizer": "it is samegrad.keras.optimizers.SGD with momentum",
    "Estimator": _OWN_LOOP,
    "estimator": _OWN_LOOP,
    "feature_column": _TEXT,
    "contrib": "it left TensorFlow with version 2",
    "app": "read the command's arguments with argparse",
    "flags": "read the command's arguments with argparse",
    "logging": "use Python's logging",
    "python": _PRIVATE,
    "raw_ops": "operations have one name each: see samegrad.math and samegrad.nn",
    "ragged.cross": "combine features with keras.layers.HashedCrossing",
    "ragged.cross_hashed": "combine features with keras.layers.HashedCrossing",
    "SparseTensorSpec": _DENSE,
    "sparse_dense_matmul": _DENSE,
    "lite": f"models are for training; {_WEIGHTS}",
    "ParameterServerStrategy": _NO_SERVERS,
    "experimental_connect_to_host": _ONE_MACHINE,
    "linalg.eig": _EIGENVALUES,
    "linalg.eigvals": _EIGENVALUES,
    "linalg.sqrtm": "of symmetric matrices compute it with eigh",
    "linalg.logm": "of symmetric matrices compute it with eigh",
    "Variable.SparseTensor": _DENSE,
    **{f"{name}.RaggedTensor": _RAGGED for name in NOT_RAGGED},
    "function.RaggedTensorSpec": _RAGGED,
    "from_generator.RaggedTensorSpec": _RAGGED,
    "TensorArray.RaggedTensorSpec": _RAGGED,
    "Variable.string": "variables hold numbers: keep strings in Python, or use tf.lookup",
    "Variable.complex128": "variables hold real numbers: keep two, and complex(real, imag)",
    "profiler": "see explain() of a function or strategy",
    "py_func": _NO_PYTHON,
    "experimental_run_v2": "it is Strategy.run",
    "experimental_make_numpy_dataset": "make a data.Dataset with from_tensor_slices",
    "make_dataset_iterator": "write iter(strategy.experimental_distribute_dataset(dataset))",
    "make_input_fn_iterator": "write iter(strategy.distribute_datasets_from_function(dataset_fn))",
    "unwrap": "it is Strategy.experimental_local_results",
    "colocate_vars_with": "replicas share a variable, and nothing is placed: leave it out",
    "update_config_proto": "there are no sessions to configure: see config.threading",
}


# Where classes live that have no public name, and whose objects methods give.
_UNNAMED = {"ConcreteFunction": "samegrad._function.concrete"}


def names_of(thing: object) -> Sequence[str]:
    """Return the public names of a module, class or other object.

    Example:
        >>> import samegrad
        >>> "Adam" in names_of(samegrad.keras.optimizers), "np" in names_of(samegrad.random)
        (True, False)
    """
    if not isinstance(thing, types.ModuleType):
        return [name for name in dir(thing) if not name.startswith("_")]
    listed: Sequence[str] | None = getattr(thing, "__all__", None)
    if listed is not None:
        return listed
    return [name for name, part in vars(thing).items() if name[0] != "_" and _is_own(part)]


def _is_own(part: object) -> bool:
    home = part.__name__ if isinstance(part, types.ModuleType) else getattr(part, "__module__", "")
    return not home or str(home).partition(".")[0] == "samegrad"


def _has(thing: object, name: str) -> bool:
    if not isinstance(thing, types.ModuleType):
        return hasattr(thing, name)
    if name in names_of(thing) or _is_module(thing.__name__, name) or name == "__version__":
        return True
    # A module's __getattr__ is not asked: it would ask here again.
    part = vars(thing).get(name)
    unlisted = name.startswith("_") or "._" in thing.__name__ or isinstance(part, types.ModuleType)
    return part is not None and unlisted and _is_own(part)


def has_submodule(module: str, name: str) -> bool:
    """Tell whether a package has a public module of this name, loaded or not.

    Example:
        >>> import samegrad.nest, samegrad.testing
        >>> has_submodule("samegrad.testing", "adapters"), has_submodule("samegrad.nest", "flatten")
        (True, False)
    """
    return not name.startswith("_") and _is_module(module, name)


def _is_module(package: str, name: str) -> bool:
    # Not hasattr: it would ask the module's __getattr__, which asks here.
    if "__path__" not in vars(sys.modules[package]):
        return False
    return importlib.util.find_spec(f"{package}.{name}") is not None


def called(part: str) -> str | None:
    """Return the class of a part of a dotted name that stands for an object of it: "Dataset()".

    Example:
        >>> called("Dataset()"), called("Dataset")
        ('Dataset', None)
    """
    return part[:-2] if part.endswith("()") else None


def _object_has(kind: type, name: str) -> bool:
    """Tell whether objects of a class have an attribute, of the class or set by a method."""
    dynamic = inspect.unwrap(getattr(kind, "__getattr__", missing_attribute))
    if hasattr(kind, name) or dynamic is not inspect.unwrap(missing_attribute):
        return True
    return any(name in names for part in kind.__mro__ for names in _names_in(part))


def _names_in(kind: type) -> Iterator[tuple[str, ...]]:
    for part in vars(kind).values():
        code = getattr(part, "__wrapped__", part)
        code = getattr(getattr(code, "fget", code), "__code__", None)
        if isinstance(code, types.CodeType):
            yield code.co_names


def look_up(path: str) -> tuple[Any, tuple[str, ...]]:
    """Resolve a dotted name as far as it exists; return the object and the unresolved rest.

    Example:
        >>> look_up("keras.layers.LSTN.name")[1]
        ('LSTN', 'name')
    """
    parts = tuple(path.split(".")) if path else ()
    home = _UNNAMED.get(called(parts[0]) or "", "samegrad") if parts else "samegrad"
    found: Any = importlib.import_module(home)
    of_object = False
    for place, given in enumerate(parts):
        part = called(given) or given
        there = _object_has(found, part) if of_object else _has(found, part)
        if there and of_object and not callable(getattr(found, part, None)):
            return None, ()  # a property, or set by a method: nobody knows what it is
        of_object = part != given
        if not there:
            return found, parts[place:]
        if isinstance(found, types.ModuleType) and _is_module(found.__name__, part):
            importlib.import_module(f"{found.__name__}.{part}")  # maybe the first use of it
        found = getattr(found, part)
    return found, ()


def place_of(name: str) -> str | None:
    """Return the full path of a public name, or None.

    Example:
        >>> place_of("Dense")
        'samegrad.keras.layers.Dense'
    """
    for namespace in NAMESPACES:
        module = "samegrad" + ("." + namespace if namespace else "")
        if name in names_of(importlib.import_module(module)):
            return f"{module}.{name}"
    return None


def reason(path: str) -> str | None:
    """Return the reason for a missing dotted name, by its end or by its parent, or None.

    Example:
        >>> reason("compat.v1.placeholder") == REASONS["placeholder"]
        True
    """
    parts = path.split(".")
    missing = len(look_up(path)[1])
    for end in range(len(parts), len(parts) - missing, -1):
        for begin in range(end):
            found = REASONS.get(".".join(parts[begin:end]))
            if found:
                return found
    return None


def explain(path: str) -> str:
    """Return a hint for a missing dotted name: the reason, the right path or the nearest name.

    Args:
        path: The name as after `tf.`, e.g. "keras.layers.Dens".

    Example:
        >>> explain("losses.MeanSquaredError"), explain("keras.layers.Dens")
        ('it is samegrad.keras.losses.MeanSquaredError', "did you mean 'Dense'?")
    """
    parent, rest = look_up(path)
    name = path.rpartition(".")[2]
    modern = re.sub(r"^(compat\.v[12]|python)\.", "", path)
    if modern != path and not look_up(modern)[1]:
        return f"it is samegrad.{modern}"
    known = reason(path)
    elsewhere = None if known else place_of(name)
    if known or elsewhere:
        return known or f"it is {elsewhere}"
    near = did_you_mean(rest[0], names_of(parent)) if rest else ""
    if near:
        return near
    place = ".".join(path.split(".")[: -len(rest)]).replace("()", "")
    return PARTS.get(place) or f"see dir({'.'.join(['samegrad', place]).rstrip('.')})"


def message(module: str, name: str) -> str:
    """Return the message of the AttributeError.

    Example:
        >>> message("samegrad.keras.layers", "Dens")
        "module 'samegrad.keras.layers' has no attribute 'Dens'; did you mean 'Dense'?"
    """
    path = ".".join([*module.split(".")[1:], name])
    return f"module {module!r} has no attribute {name!r}{_hint(path)}"


def _hint(path: str) -> str:
    text = explain(path)
    joint = ":" if text in (*REASONS.values(), *PARTS.values()) else ";"
    return f"{joint} {text}{'' if text.endswith('?') else '.'}"


@user_frames_only
def missing_attribute(thing: object, name: str) -> NoReturn:
    """Raise AttributeError as the `__getattr__` of a class, with the substitute of an older name.

    Args:
        thing: An object of the class.
        name: Name of the attribute.

    Example:
        >>> import samegrad as tf
        >>> tf.distribute.MirroredStrategy().experimental_run_v2
        Traceback (most recent call last):
        AttributeError: 'MirroredStrategy' object ... 'experimental_run_v2': it is Strategy.run.
    """
    kind = type(thing).__name__
    path = f"{kind}().{name}"
    hint = _hint(path) if name in REASONS or path in REASONS else ""
    text = f"{kind!r} object has no attribute {name!r}{hint}"
    raise AttributeError(text, name=None if hint else name, obj=thing)


def getattr_of(module: str, later: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """Return a module's `__getattr__` that raises with the nearest name or the reason.

    A package's own modules are imported when they are asked for.

    Args:
        module: Its name.
        later: Names that are imported when they are asked for first, and from where.

    Example:
        >>> getattr_of("samegrad.nn")("relux")
        Traceback (most recent call last):
        AttributeError: module 'samegrad.nn' has no attribute 'relux'; did you mean 'relu'?
    """

    @user_frames_only
    def missing(name: str) -> Any:
        if has_submodule(module, name):
            return importlib.import_module(f"{module}.{name}")
        if later and name in later:
            value = guarded(module, name, getattr(importlib.import_module(later[name]), name))
            setattr(sys.modules[module], name, value)
            return value
        if name.startswith("__"):  # asked by Python itself
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        # Without a name, a traceback adds no second "Did you mean".
        raise AttributeError(message(module, name), name=None, obj=sys.modules[module])

    return missing
