"""Every public name of samegrad that can be called: functions, classes, methods and operators."""

from __future__ import annotations

import enum
import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import samegrad as tf
from samegrad._surface import missing_names as _unknown
from samegrad._tensor.per_replica import PerReplica

OPERATORS = (
    "__abs__", "__add__", "__and__", "__bool__", "__call__", "__contains__", "__enter__", "__eq__",
    "__exit__", "__float__", "__floordiv__", "__format__", "__ge__", "__getitem__", "__gt__",
    "__hash__", "__index__", "__int__", "__invert__", "__iter__", "__le__", "__len__", "__lt__",
    "__matmul__", "__mod__", "__mul__", "__ne__", "__neg__", "__next__", "__or__", "__pow__",
    "__radd__", "__rand__", "__repr__", "__rfloordiv__", "__rmatmul__", "__rmod__", "__rmul__",
    "__ror__", "__rpow__", "__rsub__", "__rtruediv__", "__rxor__", "__setitem__", "__str__",
    "__sub__", "__truediv__", "__xor__", "__array__", "__dlpack__", "__dlpack_device__",
)  # fmt: skip
# A field that holds a function; Keras, which speaks for itself; assertions of tests, which fail,
# and the function that ends the process after them.
LEFT_OUT = ("predict", "keras", "TestCase", "main")


def receivers() -> dict[type, Callable[[], Any]]:
    """How to make an object of a class whose constructor wants something special."""
    data = tf.data.Dataset.from_tensor_slices(np.arange(12, dtype=np.float32).reshape(6, 2))
    made: dict[type, Callable[[], Any]] = {
        tf.Tensor: lambda: tf.constant([[1.0, 2.0], [3.0, 4.0]]),
        tf.DType: lambda: tf.float32,
        tf.TensorShape: lambda: tf.ones((2, 3)).shape,
        tf.TensorSpec: lambda: tf.TensorSpec((None, 2)),
        tf.Variable: lambda: tf.Variable([1.0, 2.0]),
        tf.data.Dataset: lambda: data,
        tf.data.Iterator: lambda: iter(data.batch(2)),
        tf.distribute.Strategy: lambda: tf.distribute.MirroredStrategy(replicas=2),
        tf.distribute.MirroredStrategy: lambda: tf.distribute.MirroredStrategy(replicas=3),
        tf.distribute.OneDeviceStrategy: lambda: tf.distribute.OneDeviceStrategy("CPU:0"),
        tf.distribute.DistributedValues: lambda: PerReplica([tf.ones((2,)), tf.zeros((2,))]),
        tf.distribute.DistributedDataset: lambda: tf.distribute.MirroredStrategy(
            replicas=2
        ).experimental_distribute_dataset(data.batch(4)),
        tf.distribute.ReplicaContext: tf.distribute.get_replica_context,
        tf.distribute.StrategyExtended: lambda: tf.distribute.get_strategy().extended,
        tf.random.Generator: lambda: tf.random.Generator.from_seed(1),
        tf.RaggedTensor: lambda: tf.ragged.constant([[1.0], [2.0, 3.0]]),
        tf.RaggedTensorSpec: lambda: tf.RaggedTensorSpec([None, None]),
        tf.lookup.KeyValueTensorInitializer: words,
        tf.lookup.StaticHashTable: lambda: tf.lookup.StaticHashTable(words(), 0.0),
        tf.lookup.StaticVocabularyTable: lambda: tf.lookup.StaticVocabularyTable(
            tf.lookup.KeyValueTensorInitializer(np.array([5, 6]), np.array([0, 1])), 3
        ),
        tf.lookup.experimental.MutableHashTable: table_that_changes,
        tf.SparseTensor: lambda: tf.SparseTensor([[0, 1]], [2.0], [2, 3]),
        tf.data.experimental.Optional: lambda: tf.data.experimental.Optional.from_value(1.0),
        tf.train.Checkpoint: lambda: tf.train.Checkpoint(v=tf.Variable(1.0)),
        tf.train.CheckpointManager: lambda: tf.train.CheckpointManager(
            tf.train.Checkpoint(v=tf.Variable(1.0)), "checkpoints", 2
        ),
        tf.config.PhysicalDevice: lambda: tf.config.list_physical_devices()[0],
        tf.config.LogicalDevice: lambda: tf.config.list_logical_devices()[0],
        tf.testing.Layout: lambda: tf.testing.layout([2, 3]),
        tf.testing.Situation: lambda: tf.testing.Situation(tf.testing.layout([2, 3]), np.ones(5)),
        tf.testing.FailureMode: lambda: tf.testing.CATALOGUE[0],
        tf.IndexedSlices: lambda: tf.IndexedSlices(tf.ones((1, 2)), tf.constant([0]), (3, 2)),
        tf.TensorArray: lambda: tf.TensorArray(tf.float32, 2).unstack(tf.ones((2, 3))),
        tf.name_scope: lambda: tf.name_scope("scope"),
        type(tf.function(abs)): lambda: tf.function(lambda *a, **k: a),
    }
    return made


def words() -> Any:
    return tf.lookup.KeyValueTensorInitializer(["a", "b"], [1.0, 2.0])


def table_that_changes() -> Any:
    made = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, [0.0, 0.0])
    made.insert([3], [[1.0, 2.0]])
    return made


def is_kerass(thing: Any) -> bool:
    """Whether it is Keras's own: `tf.optimizers`, `tf.zeros_initializer`, ..."""
    name = thing.__name__ if isinstance(thing, types.ModuleType) else thing
    home = name if isinstance(name, str) else getattr(thing, "__module__", None) or ""
    return home.startswith(("keras.", "samegrad.keras"))


def things() -> Iterator[tuple[str, Any]]:
    """Public names and what they stand for, each thing once."""
    seen: set[int] = set()

    def walk(path: str, module: Any) -> Iterator[tuple[str, Any]]:
        for name in sorted(_unknown.names_of(module)):
            thing = getattr(module, name)
            if id(thing) in seen or name in LEFT_OUT or is_kerass(thing):
                continue
            seen.add(id(thing))
            if isinstance(thing, types.ModuleType):
                yield from walk(f"{path}{name}.", thing)
            else:
                yield path + name, thing

    yield from walk("", tf)


class Target:
    """Something to call: `path` is what a user would write."""

    def __init__(self, path: str, get: Callable[[], Any], signature: Any) -> None:
        self.path, self.get, self.signature = path, get, signature


def signature_of(thing: Any, bound: bool = False) -> list[inspect.Parameter] | None:
    try:
        parameters = list(inspect.signature(thing).parameters.values())
    except (TypeError, ValueError):
        return None
    return parameters[1:] if bound else parameters


LOOK: list[inspect.Parameter] = []  # a property: no call
SPEC = [inspect.Parameter("spec", inspect.Parameter.POSITIONAL_ONLY, annotation="str")]
# Python asks, without arguments.
ASKED = (
    "__abs__", "__bool__", "__dlpack_device__", "__enter__", "__float__", "__hash__",
    "__index__", "__int__",
    "__invert__", "__iter__", "__len__", "__neg__", "__next__", "__repr__", "__str__",
)  # fmt: skip
# Members of an Enum are had by their values; the rest of its call makes new classes.
VALUE = [inspect.Parameter("value", inspect.Parameter.POSITIONAL_ONLY)]


def targets(names: str = "") -> list[Target]:
    """Everything that can be called, in a fixed order, or what of it begins with one of the names.

    Args:
        names: Separated by commas.
    """
    found: list[Target] = []
    made = receivers()
    for path, thing in things():
        if isinstance(thing, type):
            signature = VALUE if issubclass(thing, enum.Enum) else signature_of(thing)
            found.append(Target(path, lambda thing=thing: thing, signature))
            found += methods(path, thing, made)
        elif callable(thing):
            found.append(Target(path, lambda thing=thing: thing, signature_of(thing)))
    function = type(tf.function(abs))
    found += methods("function", function, made)
    return [target for target in found if target.path.startswith(tuple(names.split(",")))]


def methods(path: str, cls: type, made: dict[type, Callable[[], Any]]) -> list[Target]:
    found = []
    for name in dir(cls):
        part = inspect.getattr_static(cls, name)
        if name in OPERATORS or not name.startswith("_"):
            if issubclass(cls, enum.Enum) and name in OPERATORS:  # Python's
                continue
            if name in LEFT_OUT or not is_defined_here(cls, name):
                continue
            if isinstance(part, staticmethod | classmethod):
                unbound = getattr(cls, name)
                found.append(Target(f"{path}.{name}", lambda f=unbound: f, signature_of(unbound)))
            elif callable(part) or isinstance(part, property):
                make = made.get(cls, cls)
                if issubclass(cls, enum.Enum):
                    make = functools.partial(getattr, cls, next(iter(cls)).name)
                signature = LOOK
                if name == "__format__":
                    signature = SPEC
                elif name not in ASKED and not isinstance(part, property):
                    signature = signature_of(part, True)
                found.append(Target(f"{path}.{name}", bound(make, name, part), signature))
    return found


def is_defined_here(cls: type, name: str) -> bool:
    """Not inherited from a class of Python, which speaks for itself."""
    return any(name in vars(part) for part in cls.__mro__ if part.__module__.startswith("samegrad"))


def bound(make: Callable[[], Any], name: str, part: Any) -> Callable[[], Any]:
    if isinstance(part, property):

        def look() -> Any:
            receiver = make()
            return lambda: getattr(receiver, name)

        return look
    return lambda: getattr(make(), name)
