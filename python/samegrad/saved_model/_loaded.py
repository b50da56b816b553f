"""Functions and objects of a loaded model."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._autodiff.variable import Variable
from samegrad._base.shown import shown
from samegrad._base.tracebacks import keep_user_frames
from samegrad._context import state as _context
from samegrad._control.requirements import Requirement
from samegrad._function.function import Function
from samegrad._function.trace import trace_and_run
from samegrad._tensor.complex_tensor import ComplexTensor, to_complex
from samegrad._tensor.given import convert_to_tensor
from samegrad._tensor.spec import TensorSpec
from samegrad.saved_model import _values
from samegrad.saved_model._functions import bound
from samegrad.train.module import Module

# Lists of variables by which layers and models are known.
COLLECTIONS = ("variables", "trainable_variables", "non_trainable_variables")


class LoadedProgram:
    """Function for one kind of arguments.

    Args:
        name: The name of the function that was saved.
        program: Its graph.
        cells: By its slots: a variable, or message and error of what each step must meet.
        inputs: The arguments and the named arguments, a `Tensor` at the place of each tensor.
        outputs: The results in the same way.
        one_replica: Name and line of what is right on one replica only; None: there is nothing.
    """

    def __init__(
        self, name: str, program: _core.SavedProgram, cells: list[Any], inputs: Any, outputs: Any,
        one_replica: str | None,
    ) -> None:  # fmt: skip
        self.name, self.inputs, self.outputs = name, inputs, outputs
        self._program, self._cells, self._one_replica = program, cells, one_replica
        tensors = _values.tensors_of(inputs)
        self.specs = [tensor.spec for tensor in sorted(tensors, key=lambda t: t.index)]
        self._requirements: dict[int, Requirement] = {}
        replay = _function_of(self._replay, name)
        self.function = Function(replay, autograph=False, input_signature=self.specs)

    @property
    def variables(self) -> list[Variable]:
        """The variables that the program reads or writes."""
        return [cell for cell in self._cells if isinstance(cell, Variable)]

    @property
    def trainable_variables(self) -> list[Variable]:
        """Those that are trained."""
        return [variable for variable in self.variables if variable.trainable]

    def _replay(self, *tensors: Any) -> list[Any]:
        """Return the tensors of the results, as nodes of what is being traced."""
        if self._one_replica is not None:
            self._check_one_replica(self._one_replica)
        _core.count_reads()  # GradientTape.watched_variables asks for them
        given = [convert_to_tensor(tensor) for tensor in tensors]
        cells = [self._cell(slot) for slot in range(len(self._cells))]
        return self._program.replay(given, cells)

    def _check_one_replica(self, what: str) -> None:
        """Check that the program, which is that of one replica, is traced for one."""
        replicas = _core.current_trace().replicas
        if replicas > 1:
            raise RuntimeError(
                f"[{self.name}] the program of a loaded function is that of one replica, as it was "
                f"saved with {what}: got {replicas} replicas; save a function of single examples, "
                "and reduce what it returns in the function that strategy.run calls."
            )
        _context.note_one_replica(what)

    def _cell(self, slot: int) -> Any:
        known = self._cells[slot]
        if isinstance(known, Variable):
            self._check_readable(known)
            return known._cell
        message, error = known
        requirements = _context.current().requirements
        key = (f"{self.name} {id(self)} {slot}", message)
        if key not in requirements:
            trace = _core.current_trace()
            requirements[key] = Requirement(message, error, trace.replicas)
        return requirements[key]._met

    def _check_readable(self, variable: Variable) -> None:
        """Check that the variable is one of the strategy that runs, and has one copy here."""
        context = _context.current().replica_context
        if context is not None:
            variable._check_strategy(context.strategy)
        elif variable._cell.component_count > 1:
            raise RuntimeError(
                f"[{self.name}] a loaded function reads a variable of each replica inside "
                f"strategy.run: got {variable.name!r} outside, which is ON_READ; call it in run."
            )

    def call(self, tensors: list[Any]) -> list[Any]:
        """Return the tensors of the results."""
        if _context.settings.functions_run_eagerly and not _core.tracing():
            given = self.function._signature.bind(tuple(tensors), {})  # type: ignore[union-attr]
            return list(trace_and_run(self._replay, given, {}, 1))  # Python has no body to run
        results: list[Any] = self.function(*tensors)
        return results

    def results(self, values: list[Any]) -> Any:
        """Return the results in their structure."""
        return _values.fill(self.outputs, values)


def _function_of(
    call: Callable[..., Any], name: str, signature: inspect.Signature | None = None
) -> Any:
    """Return a Python function that makes a call, with a name and parameters."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    if signature is not None:
        function.__signature__ = signature  # type: ignore[attr-defined]
    return function


class LoadedFunction:
    """Function of a loaded model: a call finds the program that was saved for its arguments.

    Args:
        name: The name of the function that was saved.
        signature: The parameters of that function.
        programs: One for each kind of arguments.
    """

    def __init__(
        self, name: str, signature: inspect.Signature, programs: list[LoadedProgram]
    ) -> None:
        self.__name__, self.__signature__, self._programs = name, signature, programs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if not self._programs:
                self._fail(inspect.Signature().bind())
            call = bound(self.__signature__, args, kwargs)
            for program in self._programs:
                found: list[Any] = []
                if _fits(program.inputs, [call.args, call.kwargs], found):
                    return program.results(program.call([v for _, v in sorted(found, key=_index)]))
            self._fail(call)
        except Exception as error:
            keep_user_frames(error)
            raise

    def _fail(self, call: inspect.BoundArguments) -> None:
        options = [_values.fill(p.inputs, p.specs) for p in self._programs]
        listed = "\n".join(f"  {shown_call(args, kwargs)}" for args, kwargs in options)
        raise ValueError(
            "[saved_model] Could not find matching concrete function to call loaded from the "
            f"SavedModel: got {self.__name__}{shown_call(call.args, call.kwargs)}; "
            + (
                f"expected one of the following {len(options)} option(s):\n{listed}"
                if options
                else "it was saved without having been called; call it before it is saved, or "
                "give it an input_signature."
            )
        )

    @property
    def input_signature(self) -> Any:
        """The specs of the arguments, where it takes tensors of one kind only; else None."""
        return self._programs[0].specs if len(self._programs) == 1 else None

    @property
    def concrete_functions(self) -> list[LoadedProgram]:
        """The programs, one for each kind of arguments."""
        return list(self._programs)

    @functools.cached_property
    def _whole(self) -> Function:
        return Function(_function_of(self, self.__name__, self.__signature__), autograph=False)

    def _saved_calls(self) -> list[tuple[Function, Any, Any]]:
        """Return the function with the arguments of each program, to be saved again."""
        calls = (_values.fill(program.inputs, program.specs) for program in self._programs)
        return [(self._whole, args, kwargs) for args, kwargs in calls]

    def __repr__(self) -> str:
        return f"<samegrad.saved_model function {self.__name__}>"


def shown_call(args: Any, kwargs: Any) -> str:
    """Return the arguments of a call as a message shows them."""
    parts = [shown(value) for value in args] + [f"{k}={shown(v)}" for k, v in kwargs.items()]
    return f"({', '.join(parts)})"


def _index(pair: tuple[int, Any]) -> int:
    return pair[0]


def _fits(wanted: Any, given: Any, found: list[Any]) -> bool:
    """Tell whether arguments are of the kind of a program; their tensors go to `found`."""
    if isinstance(wanted, _values.Tensor):
        found.append((wanted.index, given))
        return _is_tensor_of(wanted.spec, given)
    if isinstance(wanted, ComplexTensor):
        try:
            parts = to_complex(given, "saved_model").parts
        except (TypeError, ValueError):
            return False
        pairs = zip(wanted.parts, parts, strict=True)
        return all(_fits(part, own, found) for part, own in pairs)
    if isinstance(wanted, Mapping):
        return (
            isinstance(given, Mapping)
            and set(wanted) == set(given)
            and all(_fits(part, given[key], found) for key, part in wanted.items())
        )
    if isinstance(wanted, list | tuple):
        return (
            isinstance(given, list | tuple)
            and len(wanted) == len(given)
            and all(_fits(part, own, found) for part, own in zip(wanted, given, strict=True))
        )
    return type(wanted) is type(given) and bool(wanted == given)


def _is_tensor_of(spec: TensorSpec, value: Any) -> bool:
    if value is None or isinstance(value, str | bytes | Mapping):
        return False
    if not hasattr(value, "dtype") and not hasattr(value, "_as_tensor"):  # Python's numbers
        try:
            value = convert_to_tensor(value, spec.dtype)
        except (TypeError, ValueError):
            return False
    if getattr(value, "_is_per_replica", False):
        return True
    if isinstance(value, np.ndarray | np.generic):
        shape, dtype = np.shape(value), value.dtype.name
    else:
        tensor = value if isinstance(value, _core.Tensor) else value._as_tensor()
        shape, dtype = tuple(tensor.shape), tensor._dtype
    if dtype != spec.dtype.name or len(shape) != spec.shape.rank:
        return False
    return all(
        want is None or not isinstance(size, int) or want == size
        for want, size in zip(spec.shape, shape, strict=True)
    )


class SignatureFunction:
    """Signature of a loaded model: tensors by name in, a dict of tensors out.

    Args:
        program: What it runs.
        inputs: The names of the tensors.
        outputs: The number of each result by its name.
    """

    def __init__(self, program: LoadedProgram, inputs: list[str], outputs: dict[str, int]) -> None:
        self._program, self._inputs, self._outputs = program, inputs, outputs

    @property
    def name(self) -> str:
        """The name of the function that was saved."""
        return self._program.name

    @property
    def inputs(self) -> list[TensorSpec]:
        """The specs of the tensors."""
        return list(self._program.specs)

    @property
    def structured_input_signature(self) -> tuple[tuple[()], dict[str, TensorSpec]]:
        """No positional arguments, and the specs by name."""
        pairs = zip(self._inputs, self._program.specs, strict=True)
        return (), {name: TensorSpec(spec.shape, spec.dtype, name) for name, spec in pairs}

    @property
    def structured_outputs(self) -> dict[str, TensorSpec]:
        """The specs of the results by name."""
        tensors = {t.index: t.spec for t in _values.tensors_of(self._program.outputs)}
        return {
            name: TensorSpec(tensors[i].shape, tensors[i].dtype, name)
            for name, i in self._outputs.items()
        }

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the results by name.

        Raises:
            TypeError: A tensor is missing, unknown, or has another dtype or shape.
        """
        try:
            given = dict(zip(self._inputs, args, strict=False)) | kwargs
            if len(args) > 1 or set(given) != set(self._inputs) or len(args) > len(self._inputs):
                raise TypeError(
                    f"[{self.name}] signature function takes its tensors by name, "
                    f"{', '.join(self._inputs) or 'none'}: got {shown_call(args, kwargs)}; pass "
                    "each of them as a keyword argument."
                )
            results = self._program.call([given[name] for name in self._inputs])
            return {name: results[index] for name, index in self._outputs.items()}
        except Exception as error:
            keep_user_frames(error)
            raise

    @property
    def variables(self) -> list[Variable]:
        """The variables that it reads or writes."""
        return self._program.variables

    @property
    def trainable_variables(self) -> list[Variable]:
        """Those that are trained."""
        return self._program.trainable_variables

    @functools.cached_property
    def _whole(self) -> Function:
        return Function(_function_of(self, self.name), autograph=False)

    def _saved_calls(self) -> list[tuple[Function, Any, Any]]:
        """Return the function with its arguments, to be saved again."""
        return [(self._whole, *self.structured_input_signature)]

    def __repr__(self) -> str:
        return f"<samegrad.saved_model signature {self.name}({', '.join(self._inputs)})>"


class Signatures(Mapping[str, SignatureFunction]):
    """Signatures of a loaded model by name."""

    def __init__(self, functions: dict[str, SignatureFunction]) -> None:
        self._functions = functions

    def __getitem__(self, name: str) -> SignatureFunction:
        return self._functions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __repr__(self) -> str:
        return f"Signatures({self._functions!r})"


class LoadedObject(Module):
    """Object of a loaded model: its attributes are variables, functions and further objects."""

    def _collection(self, name: str) -> Any:
        found = self.__dict__.get("_collections", {}).get(name)
        return list(found) if isinstance(found, tuple) else found

    @property
    def variables(self) -> Any:
        """All variables; of a layer in its order."""
        found = self._collection("variables")
        return super().variables if found is None else found

    @property
    def trainable_variables(self) -> Any:
        """The variables that are trained."""
        found = self._collection("trainable_variables")
        return super().trainable_variables if found is None else found

    @property
    def non_trainable_variables(self) -> Any:
        """The other variables."""
        found = self._collection("non_trainable_variables")
        return super().non_trainable_variables if found is None else found


def is_attribute(name: str) -> bool:
    """Tell if an object of a loaded model can have an attribute of this name.

    Example:
        >>> is_attribute("weights"), is_attribute("name_scope"), is_attribute("a b")
        (True, False, False)
    """
    if name in ("__call__", *COLLECTIONS):
        return True
    hidden = name.startswith("__") or name in ("_name", "_collections", "signatures")
    return name.isidentifier() and not hidden and not hasattr(LoadedObject, name)


class LoadedCallable(LoadedObject):
    """Loaded object that was called like a function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__["__call__"](*args, **kwargs)
