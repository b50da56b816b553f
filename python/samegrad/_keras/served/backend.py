# ruff: noqa: F401, N801
# mypy: ignore-errors
"""keras.src.backend: what all backends share, and samegrad's own."""

import inspect

from keras.src.api_export import keras_export
from keras.src.backend.common.dtypes import result_type
from keras.src.backend.common.keras_tensor import KerasTensor, any_symbolic_tensors, is_keras_tensor
from keras.src.backend.common.masking import get_keras_mask, set_keras_mask
from keras.src.backend.common.name_scope import name_scope as backend_name_scope
from keras.src.backend.common.stateless_scope import (
    StatelessScope,
    get_stateless_scope,
    in_stateless_scope,
)
from keras.src.backend.common.symbolic_scope import SymbolicScope, in_symbolic_scope
from keras.src.backend.common.variables import (
    AutocastScope,
    get_autocast_scope,
    is_float_dtype,
    is_int_dtype,
    standardize_dtype,
    standardize_shape,
)
from keras.src.backend.config import (
    backend,
    epsilon,
    floatx,
    image_data_format,
    set_epsilon,
    set_floatx,
    set_image_data_format,
    standardize_data_format,
)

from samegrad._keras import core, image, linalg, math, nn, numpy, random
from samegrad._keras.core import (
    IS_THREAD_SAFE,
    SUPPORTS_COMPLEX_DTYPES,
    SUPPORTS_RAGGED_TENSORS,
    SUPPORTS_SPARSE_TENSORS,
    cast,
    compute_output_spec,
    cond,
    convert_to_numpy,
    convert_to_tensor,
    device_scope,
    is_tensor,
    random_seed_dtype,
    scatter,
    shape,
    stop_gradient,
    vectorized_map,
)
from samegrad._keras.rnn import (
    bidirectional_gru,
    bidirectional_lstm,
    cudnn_ok,
    gru,
    lstm,
    rnn,
)
from samegrad._keras.variable import Variable as BackendVariable

distribution_lib = None


def _without_annotations(module):
    """Keras compares the signatures of its own functions, which have none, with a backend's."""
    for function in vars(module).values():
        if inspect.isfunction(function) and function.__module__.startswith("samegrad._keras"):
            signature = inspect.signature(function)
            parameters = [
                p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()
            ]
            function.__signature__ = signature.replace(
                parameters=parameters, return_annotation=inspect.Signature.empty
            )


for _module in (core, image, linalg, math, nn, numpy):
    _without_annotations(_module)


@keras_export("keras.Variable")
class Variable(BackendVariable):
    """A variable of Keras: holds a `samegrad.Variable`."""


@keras_export("keras.name_scope")
class name_scope(backend_name_scope):
    """Names the variables that are made inside."""


@keras_export("keras.device")
def device(device_name):
    """A context that places nothing: samegrad computes on the CPU."""
    return device_scope(device_name)
