"""Memory that other libraries show, and tensors that show theirs."""

import gc

import numpy as np
import pytest

import samegrad as tf
from samegrad.experimental import dlpack

DTYPES = ["float32", "float64", "int32", "int64", "uint8", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3), (1, 4, 1)])
def test_numbers_come_through_both_ways(dtype, shape):
    array = np.asarray(np.arange(np.prod(shape)).reshape(shape) % 2, dtype=dtype)
    tensor = dlpack.from_dlpack(array)
    assert tensor.numpy().dtype == array.dtype
    np.testing.assert_array_equal(tensor.numpy(), array)
    np.testing.assert_array_equal(np.from_dlpack(tensor), array)
    np.testing.assert_array_equal(dlpack.from_dlpack(dlpack.to_dlpack(tensor)).numpy(), array)


def test_memory_is_shared_with_who_knows_that_it_is_read_only():
    tensor = tf.constant(np.arange(6.0))
    view = np.from_dlpack(tensor)
    if view.flags.writeable:
        pytest.skip("this NumPy cannot be told that memory is read-only")
    assert np.shares_memory(view, tensor._view())


def test_a_tensor_shows_the_arrays_memory():
    array = np.arange(6.0)
    assert np.shares_memory(dlpack.from_dlpack(array)._view(), array)


def test_who_may_write_gets_a_copy():
    tensor = tf.constant([1.0, 2.0])
    array = dlpack.from_dlpack(dlpack.to_dlpack(tensor))._view()
    assert not np.shares_memory(array, tensor._view())


def test_strides_are_made_contiguous():
    array = np.arange(12.0).reshape(3, 4)[::2, ::-1]
    np.testing.assert_array_equal(dlpack.from_dlpack(np.ascontiguousarray(array)).numpy(), array)
    np.testing.assert_array_equal(dlpack.from_dlpack(np.arange(12.0).reshape(3, 4).T).numpy(),
                                  np.arange(12.0).reshape(3, 4).T)  # fmt: skip


def test_each_side_may_be_dropped_first():
    tensor = dlpack.from_dlpack(np.arange(1000.0))
    gc.collect()
    assert float(tf.reduce_sum(tensor)) == 499500
    view = np.from_dlpack(tf.constant(np.arange(1000.0)))
    gc.collect()
    assert view.sum() == 499500


def test_a_traced_tensor_has_no_memory():
    with pytest.raises(TypeError, match="no value yet"):
        tf.function(lambda x: np.from_dlpack(x))(np.float32([1]))


class OnAnotherDevice:
    def __dlpack__(self, **options):
        raise AssertionError("not asked")

    def __dlpack_device__(self):
        return 2, 0


def test_another_device_is_refused():
    with pytest.raises(BufferError, match=r"CPU's: got device \(2, 0\).*move"):
        dlpack.from_dlpack(OnAnotherDevice())
    with pytest.raises(BufferError, match="on the CPU"):
        tf.constant(1.0).__dlpack__(dl_device=(2, 0))


def test_something_else_is_refused():
    with pytest.raises(TypeError, match="needed: got list"):
        dlpack.from_dlpack([1.0])
    with pytest.raises(TypeError, match="complex64"):
        dlpack.from_dlpack(np.zeros(2, "complex64"))


def test_pytorch_reads_and_gives():
    torch = pytest.importorskip("torch")
    assert torch.from_dlpack(tf.constant([1.0, 2.0])).tolist() == [1, 2]
    np.testing.assert_array_equal(dlpack.from_dlpack(torch.ones(2, 3)).numpy(), np.ones((2, 3)))
