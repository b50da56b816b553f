"""`tf.experimental.numpy`: every name, its methods of tensors, and functions and gradients."""

import numpy as np
import pytest

import samegrad as tf
from samegrad.experimental import numpy as tnp


def test_names_are_all_loaded():
    assert len(tnp.__all__) > 180
    assert all(hasattr(tnp, name) for name in tnp.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'meen'; did you mean 'mean'"):
        tnp.meen  # noqa: B018


def test_functions_are_traced():
    found = tf.function(lambda x: tnp.sum(tnp.square(x), axis=0))(tf.ones([3, 2]))
    np.testing.assert_array_equal(found.numpy(), [3.0, 3.0])


def test_tensors_have_methods_of_numpy_when_asked(monkeypatch):
    for name in tnp._METHODS:
        monkeypatch.setattr(tf.Tensor, name, None, raising=False)
    tnp.experimental_enable_numpy_behavior()
    x = tf.constant([[1.0, 2.0, 3.0]])
    assert x.T.shape == x.transpose().shape == x.reshape(3, 1).shape == (3, 1)
    assert x.astype(tnp.int32).dtype == tf.int32
    assert x.ravel().tolist() == [1.0, 2.0, 3.0]
    assert (int(x.size), float(x.max()), float(x.mean())) == (3, 3.0, 2.0)
    with pytest.raises(ValueError, match="dtypes are NumPy's: got prefer_float32=True"):
        tnp.experimental_enable_numpy_behavior(prefer_float32=True)
