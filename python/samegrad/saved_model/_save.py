"""`saved_model.save`: functions and variables of an object, as data."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._autodiff.variable import Variable, in_order_of_creation, variable_of
from samegrad._base.numerics import numerics
from samegrad._base.shown import shown
from samegrad._tensor.complex_tensor import ComplexTensor
from samegrad.distribute._job import on_first_rank
from samegrad.saved_model import _folder, _values
from samegrad.saved_model._functions import Program, Saveable, exported, saveables
from samegrad.saved_model._objects import Objects
from samegrad.train._storage import Array, Json
from samegrad.version import VERSION

# Arrays up to so many bytes are part of the document.
_INLINE = 256


def save(
    obj: Any,
    export_dir: str | os.PathLike[str],
    signatures: Any = None,
    options: Any = None,
) -> None:
    """Write an object's functions and variables to a folder, from which `load` makes them again.

    A function is saved for each of its `input_signature` and the calls for which it was traced, as
    a graph of one replica: data, no code. A size that `input_signature` leaves open stays open.
    What is loaded has the bits of the original, under any number of replicas.

    Args:
        obj: A `tf.Module`, a `tf.train.Checkpoint`, a layer or model of Keras, or another object
            with state. Its functions and variables, those of nested objects, lists and dicts are
            saved under the names of the attributes.
        export_dir: The folder. An older model in it is replaced, all at once.
        signatures: A `tf.function` with an `input_signature`, a concrete function, or a dict of
            them by name. None: the only function with an `input_signature`, if there is one.
        options: A `SaveOptions`, which changes nothing.

    Raises:
        ValueError: The object has no state, a function uses a variable that is not below the
            object, or a signature is not a function of tensors.
        TypeError: A function was called with objects that no other process can pass.
        NotImplementedError: Python takes part in each call of a function.
        OSError: The folder cannot be written. Nothing half-written is left.

    Example:
        >>> import samegrad as tf, tempfile
        >>> class Line(tf.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.w, self.b = tf.Variable(2.0), tf.Variable(1.0)
        ...     @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        ...     def __call__(self, x):
        ...         return self.w * x + self.b
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tf.saved_model.save(Line(), folder + "/line")
        ...     line = tf.saved_model.load(folder + "/line")
        >>> line(tf.constant([1.0, 2.0])).numpy()
        array([3., 5.], dtype=float32)
    """
    if _core.tracing():
        raise RuntimeError(
            "[saved_model.save] models are saved outside of functions: got a call while a function "
            "is traced; save after the step."
        )
    os.fspath(export_dir)
    arrays, model = _Model(obj, signatures).data()
    on_first_rank("a saved model", lambda: _folder.write(export_dir, arrays, model))


class _Model:
    """All that is written for one object."""

    def __init__(self, root: Any, signatures: Any) -> None:
        self._programs: dict[Any, Program] = {}
        self._arrays: dict[str, Array] = {}
        self._data: list[Json] = []
        self._places: dict[int, int] = {}  # of programs, by their id
        for function in Objects(root).functions():
            for one in saveables(function):
                self._program(one)
        given = _chosen(root, signatures)
        for _, one in given:
            self._program(one)
        if signatures is None:
            given = [(name, one) for name, one in given if _named_results(self._program(one))]
        self._objects = Objects(root)  # the first calls of functions may have made variables
        self._signatures = {name: self._signature(name, one) for name, one in given}

    def data(self) -> tuple[dict[str, Array], dict[str, Json]]:
        """Return the arrays by name, and all else."""
        variables = [e.value for e in self._objects.entries if e.kind == "variable"]
        ordered = in_order_of_creation(variables)
        self._created = {id(variable): rank for rank, variable in enumerate(ordered)}
        with _core.HeldState():  # a step of another thread is in it as a whole, or not at all
            for place, entry in enumerate(self._objects.entries):
                if entry.kind == "variable":
                    self._arrays[f"variables/{place}"] = np.asarray(entry.value.numpy())
        objects: list[Json] = [
            self._entry(place, entry) for place, entry in enumerate(self._objects.entries)
        ]
        model: dict[str, Json] = {
            "samegrad": VERSION, "numerics": {**numerics()}, "objects": objects,
            "programs": self._data, "signatures": self._signatures,
        }  # fmt: skip
        return self._arrays, model

    def _program(self, one: Saveable) -> Program:
        found = self._programs.get(one.key)
        if found is None:
            found = self._programs[one.key] = exported(one)
        return found

    def _entry(self, place: int, entry: Any) -> Json:
        found: dict[str, Json] = {"kind": entry.kind}
        if entry.kind == "variable":
            return found | self._variable(place, entry.value)
        if entry.kind == "function":
            options = saveables(entry.value)
            places: list[Json] = [self._place(self._program(one)) for one in options]
            return found | {
                "name": entry.value.__dict__.get("__name__") or _name_of(entry.value),
                "parameters": _parameters(options),
                "programs": places,
            }
        found["children"] = dict(entry.children)
        if entry.collections:
            found["collections"] = {name: list(v) for name, v in entry.collections.items()}
        name = getattr(entry.value, "name", None)
        if entry.kind == "object" and isinstance(name, str):
            found["name"] = name
        return found

    def _variable(self, place: int, variable: Variable) -> dict[str, Json]:
        return {
            "name": variable.name.removesuffix(":0"),
            "created": self._created[id(variable)],
            "trainable": bool(variable.trainable),
            "synchronization": variable.synchronization.name,
            "aggregation": variable.aggregation.name,
            "array": f"variables/{place}",
        }

    def _place(self, program: Program) -> int:
        """Return the place of a program in the document, to which it is added."""
        if id(program) not in self._places:
            self._places[id(program)] = len(self._data)
            number = len(self._data)
            self._data.append(None)
            self._data[number] = {
                "name": program.name,
                "graph": program.graph,
                "constants": [
                    self._constant(f"constants/{number}/{index}", np.asarray(array))
                    for index, array in enumerate(program.constants)
                ],
                "variables": [self._cell(program, cell) for cell in program.cells],
                "inputs": program.inputs,
                "outputs": program.outputs,
                "one_replica": program.one_replica,
            }
        return self._places[id(program)]

    def _constant(self, name: str, array: Array) -> Json:
        if array.nbytes > _INLINE:
            self._arrays[name] = array
            return {"array": name}
        plain = np.ascontiguousarray(array)
        return {
            "dtype": array.dtype.name,
            "shape": list(array.shape),
            "bytes": plain.tobytes().hex(),
        }

    def _cell(self, program: Program, cell: Any) -> Json:
        requirement = program.requirements.get(id(cell))
        if requirement is not None:
            return {"message": requirement[0], "error": requirement[1]}
        variable = variable_of(cell)
        place = None if variable is None else self._objects.place_of(variable)
        if place is None:
            raise ValueError(
                "[saved_model.save] Tried to export a function which references an 'untracked' "
                f"resource: got {program.name!r}, which uses the variable {cell.name!r}; assign it "
                "to an attribute of the object that is saved, or of one below it."
            )
        if cell.component_count > 1:
            raise ValueError(
                f"[saved_model.save] a function that is saved has one copy of a variable: got "
                f"{program.name!r} and {cell.name!r}, of which each of {cell.component_count} "
                "replicas has its own (ON_READ); leave it out of the function."
            )
        return {"object": place}

    def _signature(self, name: str, one: Saveable) -> Json:
        program = self._program(one)
        outputs = _named_results(program)
        if outputs is None:
            raise ValueError(
                "[saved_model.save] a signature returns a tensor, a list of tensors, or a dict of "
                f"tensors by name: got {program.outputs!r:.120} from {name!r}; change what it "
                "returns."
            )
        return {
            "program": self._place(program),
            "inputs": list(one.input_names()),
            "outputs": dict(outputs),
        }


def _named_results(program: Program) -> dict[str, int] | None:
    """Return the numbers of a signature's results by their names; None: it has no flat ones."""
    outputs = _values.decode(program.outputs)
    if isinstance(outputs, _values.Tensor):
        outputs = [outputs]
    if not isinstance(outputs, dict | list | tuple) or isinstance(outputs, ComplexTensor):
        return None
    named = outputs if isinstance(outputs, dict) else {
        f"output_{i}": part for i, part in enumerate(outputs)
    }  # fmt: skip
    plain = all(isinstance(part, _values.Tensor) for part in named.values())
    if not plain or not all(isinstance(key, str) for key in named):
        return None
    return {key: part.index for key, part in named.items()}


def _name_of(function: Any) -> str:
    return str(getattr(function, "__name__", None) or getattr(function, "name", "function"))


def _parameters(options: list[Saveable]) -> Json:
    return options[0].parameters if options else []


def _chosen(root: Any, signatures: Any) -> list[tuple[str, Saveable]]:
    """Return the signatures by name.

    Raises:
        ValueError: One of them is not a function of one kind of tensors.
    """
    if signatures is None:
        served = getattr(root, "_default_save_signature", None)  # of a model of Keras
        if served is not None:
            return [("serving_default", saveables(served)[0])]
        default = [
            found[0] for function in Objects(root).functions()
            if getattr(function, "input_signature", None) is not None
            and len(found := saveables(function)) == 1
        ]  # fmt: skip
        return [("serving_default", default[0])] if len(default) == 1 else []
    if not isinstance(signatures, Mapping):
        signatures = {"serving_default": signatures}
    return [(name, _one(name, function)) for name, function in signatures.items()]


def _one(name: Any, function: Any) -> Saveable:
    if not isinstance(name, str):
        raise ValueError(
            f"[saved_model.save] signatures have names: got {name!r:.60}; pass a dict by strings."
        )
    try:
        found = saveables(function)
    except TypeError:
        raise ValueError(
            "[saved_model.save] Expected a TensorFlow function for which to generate a signature: "
            f"got {shown(function)} for {name!r}; Python functions may be decorated with "
            "`@tf.function(input_signature=...)`."
        ) from None
    if len(found) != 1:
        raise ValueError(
            f"[saved_model.save] a signature is one function of tensors: got {shown(function)} for "
            f"{name!r}, which was traced for {len(found)} kinds of arguments; give it an "
            "input_signature, or pass function.get_concrete_function(...)."
        )
    return found[0]
