"""Export of models and layers: endpoints in a saved model of samegrad."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from keras.src import layers, tree
from keras.src.export.export_utils import get_input_signature, make_input_spec
from keras.src.models import Model
from keras.src.utils import io_utils

import samegrad as tf
from samegrad._autodiff.variable import unwrapped
from samegrad._function.function import BoundFunction, Function
from samegrad.train._trackable import is_trackable

_COLLECTIONS = ("variables", "trainable_variables", "non_trainable_variables")
_EXAMPLE = (
    "export_archive.add_endpoint(\n    name='call',\n    fn=model.call,\n    input_signature=["
    "keras.InputSpec(shape=(None, 224, 224, 3), dtype='float32')],\n)"
)


class _Endpoints:
    """Object that is saved: endpoints and lists of variables by name."""

    def __init__(self) -> None:
        self.parts: dict[str, Any] = {}
        self.variables: list[Any] = []
        self.trainable_variables: list[Any] = []
        self.non_trainable_variables: list[Any] = []

    def _checkpoint_state(self) -> dict[str, Any]:
        return self.parts

    def _restore_state(self, values: Any) -> None:
        raise AssertionError("endpoints have no values beside their variables")


class ExportArchive:
    """Endpoints of models and layers, to be written as one saved model.

    Example:
        >>> import samegrad as tf, tempfile
        >>> model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
        >>> archive = tf.keras.export.ExportArchive()
        >>> archive.track(model)
        >>> serve = archive.add_endpoint(
        ...     "serve", model.call, [tf.keras.InputSpec(shape=(None, 3), dtype="float32")]
        ... )
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     archive.write_out(folder + "/served", verbose=False)
        ...     tf.saved_model.load(folder + "/served").serve(tf.ones((4, 3))).shape
        (4, 2)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._saved = _Endpoints()
        self._endpoints: dict[str, Any] = {}

    @property
    def variables(self) -> list[Any]:
        """The variables of all that is tracked."""
        return self._saved.variables

    @property
    def trainable_variables(self) -> list[Any]:
        """Those that are trained."""
        return self._saved.trainable_variables

    @property
    def non_trainable_variables(self) -> list[Any]:
        """The others."""
        return self._saved.non_trainable_variables

    def track(self, resource: Any) -> None:
        """Save the variables of a layer, a model or another object with state.

        Args:
            resource: A built layer or model, or a trackable object.

        Raises:
            ValueError: It has no state, or is a layer that is not built.
        """
        if isinstance(resource, layers.Layer):
            if not resource.built:
                raise ValueError(
                    "[ExportArchive.track] The layer provided has not yet been built. It must be "
                    f"built before export: got {resource!r:.80}; call it on data."
                )
            for name in _COLLECTIONS:
                found = getattr(self._saved, name)
                known = {id(variable) for variable in found}
                found += [v for v in getattr(resource, name) if id(v) not in known]
        elif not is_trackable(resource):
            raise ValueError(
                "[ExportArchive.track] Invalid resource type. Expected a Keras `Layer` or `Model` "
                f"or a TensorFlow `Trackable` object: got {resource!r:.80}; pass one of them."
            )
        self._saved.parts[f"_tracked_{len(self._saved.parts)}"] = resource

    def add_endpoint(
        self, name: str, fn: Callable[..., Any], input_signature: Any = None, **kwargs: Any
    ) -> Any:
        """Add a function under a name.

        Args:
            name: The name of the endpoint.
            fn: A function of tensors, such as `model.call`.
            input_signature: A spec for each argument: `keras.InputSpec`, `tf.TensorSpec`, a Keras
                tensor, or structures of them. None: `fn` is a `tf.function` that was called.
            **kwargs: Options of other backends, which are refused.

        Returns:
            The `tf.function` that is saved.

        Raises:
            ValueError: The name is taken, or there is neither a signature nor a traced function.
        """
        if name in self._endpoints:
            raise ValueError(
                f"[ExportArchive.add_endpoint] Endpoint name '{name}' is already taken: got it "
                "again; choose another one."
            )
        if kwargs:
            raise ValueError(
                "[ExportArchive.add_endpoint] 'jax2tf_kwargs' and 'is_static' are only supported "
                f"with the jax backend: got {', '.join(kwargs)}; leave them out."
            )
        if input_signature is None:
            endpoint = _traced(fn)
        else:
            specs = tree.map_structure(_tensor_spec, input_signature)
            endpoint = tf.function(fn, input_signature=list(specs))
        self._endpoints[name] = self._saved.parts[name] = endpoint
        return endpoint

    def track_and_add_endpoint(
        self, name: str, resource: Any, input_signature: Any, **kwargs: Any
    ) -> Any:
        """Track a layer or model, and add its call as an endpoint; see `add_endpoint`."""
        self.track(resource)
        return self.add_endpoint(name, resource.__call__, input_signature, **kwargs)

    def add_variable_collection(self, name: str, variables: Any) -> None:
        """Save variables as a list under a name.

        Args:
            name: The name of the attribute of the loaded object.
            variables: A list, tuple or set of variables.

        Raises:
            ValueError: There are other objects among them.
        """
        if not isinstance(variables, list | tuple | set):
            raise ValueError(
                "[ExportArchive.add_variable_collection] Expected `variables` to be a "
                f"list/tuple/set: got {type(variables).__name__}; pass a list."
            )
        found = [unwrapped(variable) for variable in variables]
        if not all(isinstance(variable, tf.Variable) for variable in found):
            kinds = sorted({type(variable).__name__ for variable in found})
            raise ValueError(
                "[ExportArchive.add_variable_collection] Expected all elements in `variables` to "
                f"be `tf.Variable` instances: got {', '.join(kinds)}; pass variables."
            )
        self._saved.parts[name] = found

    def write_out(
        self, filepath: str | os.PathLike[str], options: Any = None, verbose: bool = True
    ) -> None:
        """Write the saved model; the first endpoint is also its "serving_default".

        Args:
            filepath: The folder.
            options: A `tf.saved_model.SaveOptions`.
            verbose: Print the endpoints.

        Raises:
            ValueError: There are no endpoints.
            OSError: The folder cannot be written.
        """
        if not self._endpoints:
            raise ValueError(
                "[ExportArchive.write_out] No endpoints have been set yet: got none; call "
                "add_endpoint()."
            )
        signatures = dict(self._endpoints)
        signatures.setdefault("serving_default", next(iter(self._endpoints.values())))
        tf.saved_model.save(self._saved, filepath, signatures=signatures, options=options)
        if verbose:
            names = "\n".join(f"* Endpoint '{name}'" for name in self._endpoints)
            io_utils.print_msg(
                f"Saved artifact at '{filepath}'. The following endpoints are available:\n\n{names}"
            )


def serving_function(model: Any) -> Any:
    """Return the function by which a model is served that `saved_model.save` writes; None: a layer.

    Raises:
        ValueError: The model does not know its inputs yet.
    """
    if not isinstance(model, Model):
        return None

    def serving_default(*inputs: Any) -> Any:
        return model(*inputs)

    specs = tree.map_structure(_tensor_spec, get_input_signature(model))
    plain = tree.map_structure(lambda spec: tf.TensorSpec(spec.shape, spec.dtype), specs)
    if len(plain) == 1:
        return tf.function(lambda inputs: serving_default(inputs), input_signature=list(plain))
    return tf.function(serving_default, input_signature=list(plain))


def export_onnx(
    model: Any, filepath: str | os.PathLike[str], input_signature: Any, opset_version: int | None
) -> None:
    """Write the inference of a model as an ONNX file.

    Args:
        model: A built model or layer.
        filepath: The file.
        input_signature: A list with a spec, or a structure of specs, for each positional argument.
        opset_version: The version of ONNX's operator set; None: the default one.
    """
    specs = [
        tf.TensorSpec(spec.shape, spec.dtype, spec.name or f"input_{at}")
        if isinstance(spec, tf.TensorSpec) else spec
        for at, spec in enumerate(tree.map_structure(_tensor_spec, list(input_signature)))
    ]  # fmt: skip

    def serve(*inputs: Any) -> Any:
        return model(*inputs)

    tf.export.to_onnx(serve, specs, filepath, opset=opset_version)


def _traced(fn: Any) -> Any:
    if not isinstance(fn, Function | BoundFunction):
        raise ValueError(
            "[ExportArchive.add_endpoint] If the `fn` argument provided is not a `tf.function`, "
            "you must provide an `input_signature` argument to specify the shape and dtype of the "
            f"function arguments: got {fn!r:.80}. Example:\n\n{_EXAMPLE}"
        )
    if fn.experimental_get_tracing_count() == 0:
        raise ValueError(
            f"[ExportArchive.add_endpoint] The provided tf.function '{fn!r:.80}' has never been "
            "called: got no shapes and dtypes of its arguments; call it once, or pass an "
            "`input_signature` argument in `add_endpoint()`."
        )
    return fn


def _tensor_spec(given: Any) -> Any:
    spec = given if isinstance(given, tf.TensorSpec) else make_input_spec(given)
    if spec.dtype == "string":
        raise ValueError(
            f"[Model.export] a saved step takes numbers: got strings for input {spec.name!r}; "
            "export a model of the layers behind those that read strings, or save all layers with "
            "model.save('a.keras')."
        )
    if isinstance(given, tf.TensorSpec):
        return given
    return tf.TensorSpec(spec.shape, spec.dtype, spec.name)
