"""keras.src.backend.tensorflow: samegrad's backend, for layers that ask for TensorFlow's."""
# ruff: noqa: F401

from keras.src.backend import (
    IS_THREAD_SAFE,
    SUPPORTS_COMPLEX_DTYPES,
    SUPPORTS_RAGGED_TENSORS,
    SUPPORTS_SPARSE_TENSORS,
    Variable,
    cast,
    compute_output_spec,
    cond,
    convert_to_numpy,
    convert_to_tensor,
    core,
    device_scope,
    image,
    is_tensor,
    linalg,
    math,
    name_scope,
    nn,
    numpy,
    random,
    random_seed_dtype,
    scatter,
    shape,
    stop_gradient,
    vectorized_map,
)

# Keras has shorter ways for TensorFlow's tensors, which it knows by this name.
__name__ = "samegrad"
