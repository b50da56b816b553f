"""The base of all layers."""

from __future__ import annotations

import functools
import inspect
import itertools
import threading
import types
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np
import numpy.typing as npt

from samegrad import _core
from samegrad._context import current, init_scope
from samegrad._dtypes import DTypeLike, as_dtype
from samegrad._examples import as_examples
from samegrad._nest import flatten, map_structure
from samegrad._tensor import Tensor, TensorLike, convert_to_tensor
from samegrad._user_code import converted
from samegrad._variable import Variable
from samegrad.keras import initializers, regularizers
from samegrad.keras._names import snake_case, unique_name
from samegrad.keras.backend import floatx
from samegrad.keras.layers._calls import entered, shape_of, traced_on
from samegrad.keras.layers._weights import HasWeights
from samegrad.train._trackable import restore_pending


class Layer(HasWeights):
    """A function with weights: subclass it, create weights in `build`, compute in `call`.

    Weights are created at the first call, when the shape of the input is known. Layers and
    variables assigned to attributes (also in lists and dicts) belong to the layer.

    Args:
        trainable: Whether the weights are among `trainable_weights`.
        name: None: made of the class name, e.g. "dense_1".
        dtype: Dtype of the weights, to which inputs of floats are cast. None: that of
            `keras.backend.floatx()`.
        **kwargs: `input_shape` (without the examples), `batch_input_shape` or `input_dim`, for the
            first layer of a `Sequential`.

    Raises:
        TypeError: There is no such argument.

    Example:
        >>> import samegrad as tf
        >>> class Scale(tf.keras.layers.Layer):
        ...     def build(self, input_shape):
        ...         self.factor = self.add_weight(name="factor", shape=(), initializer="ones")
        ...     def call(self, inputs):
        ...         return inputs * self.factor
        >>> Scale()([1.0, 2.0]).numpy()
        array([1., 2.], dtype=float32)
    """

    # What **kwargs may hold.
    _further_arguments = ("input_shape", "batch_input_shape", "input_dim")

    def __init__(
        self,
        trainable: bool = True,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: Any,
    ) -> None:
        before = set(vars(self))
        self._trainable = bool(trainable)
        self._name = name or unique_name(snake_case(type(self).__name__))
        self._dtype = as_dtype(dtype).name if dtype is not None else floatx()
        self._weights: list[Variable] = []
        self._regularized: list[tuple[Callable[[Tensor], Tensor], Variable]] = []
        self._added_losses: list[Any] = []
        self._output_shape: Any = None
        self._batch_input_shape = self._input_shape_from(kwargs)
        self.built = False
        # What is in the attributes beside these is the user's.
        self._internal = frozenset(set(vars(self)) - before) | {"_internal"}

    def _input_shape_from(self, kwargs: dict[str, Any]) -> tuple[int | None, ...] | None:
        """The shape that the layer's keyword arguments give for its input."""
        unknown = sorted(set(kwargs).difference(self._further_arguments))
        if unknown:
            raise TypeError(f"[{type(self).__name__}] no such argument: got {', '.join(unknown)}.")
        shape = kwargs.get("batch_input_shape")
        if "input_shape" in kwargs:
            shape = (None, *kwargs["input_shape"])
        if "input_dim" in kwargs:
            shape = (None, kwargs["input_dim"])
        return None if shape is None else tuple(shape)

    # For subclasses to define.

    def build(self, input_shape: Any) -> None:
        """Creates the weights. Called once, before the first `call`.

        Args:
            input_shape: Sizes of the input's axes, None for that of the examples; nested as the
                input is.
        """
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The layer's function; may take `training`, which outer layers hand on."""
        raise NotImplementedError(f"[{type(self).__name__}] define call(self, inputs).")

    def get_config(self) -> dict[str, Any]:
        """The arguments that make the same layer, without its weights."""
        config: dict[str, Any] = {"name": self.name, "trainable": self.trainable}
        config["dtype"] = self.dtype
        if self._batch_input_shape is not None:
            config["batch_input_shape"] = self._batch_input_shape
        return config

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Layer:
        """A layer made with these arguments."""
        return cls(**config)

    # For subclasses to use.

    def add_weight(
        self,
        name: str | None = None,
        shape: Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        initializer: Any = None,
        regularizer: Any = None,
        trainable: bool | None = None,
        **kwargs: Any,
    ) -> Variable:
        """Creates a variable of the layer, outside of whatever is being traced.

        Args:
            name: Of the variable; in messages and checkpoints.
            shape: Its sizes. None: a scalar.
            dtype: None: the layer's.
            initializer: None: Glorot's uniform distribution for floats, zeros otherwise.
            regularizer: A function of the variable whose result is among `losses`.
            trainable: None: True for floats, unless `synchronization` says ON_READ.
            **kwargs: `aggregation` and `synchronization`, as of `Variable`.

        Returns:
            The variable.

        Example:
            >>> import samegrad as tf
            >>> tf.keras.layers.Layer().add_weight("w", (2,), initializer="zeros").numpy()
            array([0., 0.], dtype=float32)
        """
        kind = as_dtype(dtype if dtype is not None else self.dtype)
        default = "glorot_uniform" if kind.is_floating else "zeros"
        make = initializers.get(initializer if initializer is not None else default)
        if trainable is not None or not kind.is_floating:
            kwargs["trainable"] = bool(trainable)
        label = name or f"weight_{len(self._weights)}"
        regularize = regularizers.get(regularizer)
        with init_scope():
            value = make(tuple(int(size) for size in shape or ()), dtype=kind)
            variable = Variable(value, name=f"{self.name}/{label}", **kwargs)
        self._weights = [*self._weights, variable]
        if regularize is not None:
            self._regularized = [*self._regularized, (regularize, variable)]
        return variable

    def add_loss(self, losses: Any, **kwargs: Any) -> None:
        """Adds scalars to `losses` until the layer is called again.

        Args:
            losses: A scalar tensor, a function without arguments that computes one whenever
                `losses` is read, or a list of these.
            **kwargs: Not used.
        """
        self._added_losses.extend(losses if isinstance(losses, list | tuple) else [losses])

    # What users read.

    @property
    def name(self) -> str:
        """The layer's name."""
        return self._name

    @property
    def dtype(self) -> str:
        """The name of the weights' dtype."""
        return self._dtype

    @property
    def compute_dtype(self) -> str:
        """The name of the dtype in which the layer computes: that of the weights."""
        return self._dtype

    @property
    def variable_dtype(self) -> str:
        """The name of the weights' dtype."""
        return self._dtype

    @property
    def losses(self) -> list[Tensor]:
        """Losses of the weights (regularizers) and those added while calling, inner layers' too.

        Read it inside the tape, and add the losses to that of the labels:
        `loss += nn.scale_regularization_loss(model.losses)`.
        """
        found: list[Tensor] = []
        for layer in self._flatten_layers():
            found += [part() if callable(part) else part for part in layer._added_losses]
            found += [r(convert_to_tensor(v)) for r, v in layer._regularized]
        return found

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape that the layer makes of an input's shape (None for the examples)."""
        return traced_on(self.name, input_shape, self.dtype, lambda x: shape_of(self(x)))

    def count_params(self) -> int:
        """How many numbers the weights hold.

        Raises:
            ValueError: The weights do not exist yet.
        """
        if not self.built:
            raise ValueError(
                f"[{self.name}] the weights do not exist yet: call the layer on data or "
                "build(input_shape) first."
            )
        return sum(int(np.prod(w.shape, dtype=np.int64)) for w in self.weights)

    def get_weights(self) -> list[npt.NDArray[Any]]:
        """Copies of all weights, in the order of `weights`."""
        return [np.asarray(w.numpy()) for w in self.weights]

    def set_weights(self, weights: Iterable[npt.ArrayLike]) -> None:
        """Overwrites all weights, given in the order of `weights`.

        Raises:
            ValueError: There are more or fewer, or a shape differs. No weight is changed then.
        """
        own = self.weights
        # One more than there are weights: what comes after it may be without end.
        arrays = [np.asarray(array) for array in itertools.islice(weights, len(own) + 1)]
        if len(arrays) != len(own):
            found = len(weights) if isinstance(weights, Sized) else len(arrays)
            raise ValueError(
                f"[{self.name}] one array per weight is needed: got {found} for {len(own)} "
                "weights; the layer must be built first."
            )
        for variable, array in zip(own, arrays, strict=True):
            if tuple(variable.shape) != array.shape:
                raise ValueError(
                    f"[{self.name}] the array of {variable.name} must have its shape "
                    f"{tuple(variable.shape)}: got {array.shape}."
                )
        with init_scope(), _core.all_or_nothing(variables=[v._cell for v in own]):
            for variable, array in zip(own, arrays, strict=True):
                variable.assign(array.astype(variable.dtype.as_numpy_dtype))

    # The call.

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Applies the layer, creating its weights first if need be.

        Args:
            *args: The inputs (tensors or arrays, nested if the layer takes several), then what
                `call` takes.
            **kwargs: What `call` takes. `training=None` means: as the calling layer, else False.

        Returns:
            What `call` returns.
        """
        if "_internal" not in vars(self):
            raise RuntimeError(
                f"[{type(self).__name__}] its __init__ must call super().__init__() first."
            )
        inputs, args = self._first_argument(args, kwargs)
        outermost = not current().in_layer
        if _is_array(inputs):
            inputs = self._prepare(inputs, outermost)
        else:
            inputs = map_structure(lambda value: self._prepare(value, outermost), inputs)
        if outermost:
            self._forget_added_losses()
        self._ensure_built(inputs)
        with entered(self._resolve_training(args, kwargs)):
            outputs = converted(self.call)(inputs, *args, **kwargs)
        self._note_output(outputs)
        return outputs

    def _first_argument(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, tuple[Any, ...]]:
        if args:
            return args[0], args[1:]
        if "inputs" in kwargs:
            return kwargs.pop("inputs"), ()
        raise TypeError(f"[{self.name}] call it on inputs: layer(inputs).")

    def _prepare(self, value: TensorLike, outermost: bool) -> Tensor:
        tensor = as_examples(value) if outermost else convert_to_tensor(value)
        if as_dtype(tensor._dtype).is_floating and tensor._dtype != self.compute_dtype:
            return _core.ops.cast(tensor, dtype=self.compute_dtype)
        return tensor

    def _ensure_built(self, inputs: Any) -> None:
        if self.built:
            return
        with _core.holding(_building):  # threads that call it at the same time build it once
            if not self.built:
                self._build_now(inputs)

    def _build_now(self, inputs: Any) -> None:
        with _core.all_or_nothing(self):
            with init_scope():
                self.build(shape_of(inputs))
            restore_pending(self)
            self.built = True

    def _resolve_training(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | None:
        """The value of `training` for this call; put into the arguments of `call`."""
        parameters = _parameters(self.call)
        names = [p.name for p in parameters]
        if "training" not in names:  # not for itself, but for the layers inside
            takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
            given = kwargs.get("training") if takes_all else kwargs.pop("training", None)
            return current().training if given is None else bool(given)
        place = names.index("training") - 1
        given = args[place] if place < len(args) else kwargs.get("training")
        if given is None:
            given = current().training
        if given is None:
            default = parameters[place + 1].default
            given = default if default not in (None, inspect.Parameter.empty) else False
        if place >= len(args):
            kwargs["training"] = given
        return bool(given)

    def _note_output(self, outputs: Any) -> None:
        tensors_only = all(isinstance(t, Tensor) for t in flatten(outputs))
        self._output_shape = shape_of(outputs) if tensors_only else None


_building = threading.RLock()


def _parameters(call: Any) -> Sequence[inspect.Parameter]:
    function = getattr(call, "__func__", None)
    if function is None:  # an attribute of the object, which may be anything
        return tuple(inspect.signature(call).parameters.values())
    return _parameters_of_method(function)


@functools.lru_cache(maxsize=1024)  # to ask takes longer than many layers
def _parameters_of_method(function: Any) -> Sequence[inspect.Parameter]:
    return tuple(inspect.signature(types.MethodType(function, object())).parameters.values())


def _is_array(value: Any) -> bool:
    """Whether the value is a nested list of numbers, which means one array."""
    return isinstance(value, list | tuple) and all(
        isinstance(leaf, int | float | np.number | np.bool_) for leaf in flatten(value)
    )
