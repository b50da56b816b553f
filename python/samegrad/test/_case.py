"""`tf.test.TestCase`: assertions that take tensors, arrays and nests of them."""

from __future__ import annotations

import contextlib
import importlib.util
import random
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from samegrad._base import tree
from samegrad._base.shown import shown
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.sparse import SparseTensor
from samegrad._tensor.version_1_values import RaggedTensorValue, SparseTensorValue
from samegrad.errors import InvalidArgumentError, OpError
from samegrad.random import set_seed

# TensorFlow's cases are those of absl, which a program that uses more of it has installed.
if not TYPE_CHECKING and importlib.util.find_spec("absl") is not None:
    from absl.testing.absltest import TestCase as _Base
    from absl.testing.absltest import main as _main
else:
    from unittest import TestCase as _Base
    from unittest import main as _main

_SEED = 87654321


def main(argv: list[str] | None = None) -> None:
    """Run the tests of the program, and end it.

    Args:
        argv: The arguments of the command; None: those of the program.

    Example:
        >>> import samegrad as tf
        >>> tf.test.main()  # doctest: +SKIP
    """
    _main(argv=argv) if argv else _main()


class _Session:
    """The session of older tests: `run` evaluates eager tensors."""

    def __init__(self, run: Callable[[Any], Any]) -> None:
        self.run = run


class TestCase(_Base):
    """A test whose assertions take tensors, variables, arrays and nests of them.

    `setUp` seeds Python, NumPy and samegrad; a subclass that has its own calls `super().setUp()`.

    Example:
        >>> import samegrad as tf
        >>> class SquareTest(tf.test.TestCase):
        ...     def test_square(self):
        ...         self.assertAllClose(tf.square([1.0, 2.0]), [1.0, 4.0])
        >>> SquareTest("test_square").run().wasSuccessful()
        True
    """

    __test__ = False  # pytest collects subclasses alone

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        cls.__test__ = True

    def setUp(self) -> None:
        """Seed Python, NumPy and samegrad."""
        super().setUp()
        random.seed(_SEED)
        np.random.seed(_SEED)
        set_seed(_SEED)

    def evaluate(self, tensors: Any) -> Any:
        """Return the NumPy values of tensors.

        Args:
            tensors: A tensor, or a nest of tensors.

        Returns:
            Arrays in the same structure; of sparse and ragged tensors `SparseTensorValue` and
            `RaggedTensorValue` of `compat.v1`.
        """
        if callable(tensors):
            tensors = tensors()
        return tree.values.map_structure(_value, tensors)

    @contextlib.contextmanager
    def session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = True, force_gpu: bool = False
    ) -> Iterator[Any]:
        """Return a context with a session, whose `run` evaluates tensors as `evaluate` does.

        Args:
            graph: Ignored.
            config: Ignored.
            use_gpu: Ignored.
            force_gpu: Ignored.

        Returns:
            A context manager that gives the session.
        """
        yield _Session(self.evaluate)

    cached_session = session
    test_session = session

    def get_temp_dir(self) -> str:
        """Return a folder of this test, empty at first."""
        if not hasattr(self, "_folder"):
            made = tempfile.TemporaryDirectory()
            self.addCleanup(made.cleanup)
            self._folder = made.name
        return self._folder

    def assertAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        """Check that two tensors have equal shapes and elements; NaNs are equal.

        Args:
            a: A tensor, or what NumPy makes an array of.
            b: Another.
            msg: Words for the failure.
        """
        if _is_ragged(a) or _is_ragged(b):
            self.assertEqual(_as_list(a), _as_list(b), msg)
            return
        one, other = _comparable(a), _comparable(b)
        self.assertEqual(one.shape, other.shape, _shapes(one, other, msg))
        np.testing.assert_array_equal(one, other, err_msg=str(msg or ""))

    def assertNotAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        """Check that two tensors differ in shape or in an element.

        Args:
            a: A tensor, or what NumPy makes an array of.
            b: Another.
            msg: Words for the failure.
        """
        with self.assertRaises(AssertionError, msg=msg or "The two values are equal."):
            self.assertAllEqual(a, b)

    def assertAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: Any = None
    ) -> None:
        """Check that two nests have equal shapes and elements within tolerances.

        Args:
            a: A tensor, or a nest of dicts, lists, tuples and tensors.
            b: Another.
            rtol: The tolerance relative to `b`.
            atol: The absolute tolerance.
            msg: Words for the failure.
        """
        a, b = (x._asdict() if hasattr(x, "_asdict") else x for x in (a, b))
        if isinstance(a, Mapping) or isinstance(b, Mapping):
            self.assertCountEqual(a, b, msg)
            pairs = [(a[key], b[key]) for key in a]
        elif isinstance(a, list | tuple) and not hasattr(a, "numpy") and _is_nest(a):
            self.assertEqual(len(a), len(b), msg)
            pairs = list(zip(a, b, strict=True))
        elif _is_ragged(a) or _is_ragged(b):
            pairs = list(zip(_flat(a), _flat(b), strict=True))
        else:
            one, other = _comparable(a), _comparable(b)
            self.assertEqual(one.shape, other.shape, _shapes(one, other, msg))
            np.testing.assert_allclose(one, other, rtol=rtol, atol=atol, err_msg=str(msg or ""))
            return
        for one, other in pairs:
            self.assertAllClose(one, other, rtol, atol, msg)

    def assertNotAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: Any = None
    ) -> None:
        """Check that an element differs by more than the tolerances.

        Args:
            a: A tensor, or a nest.
            b: Another.
            rtol: The tolerance relative to `b`.
            atol: The absolute tolerance.
            msg: Words for the failure.
        """
        with self.assertRaises(AssertionError, msg=msg or "All elements are close."):
            self.assertAllClose(a, b, rtol, atol)

    def assertAllCloseAccordingToType(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, float_rtol: float = 1e-6,
        float_atol: float = 1e-6, half_rtol: float = 1e-3, half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2, bfloat16_atol: float = 1e-2, msg: Any = None,
    ) -> None:  # fmt: skip
        """Check as `assertAllClose`, with wider tolerances for narrower dtypes.

        Args:
            a: A tensor.
            b: Another.
            rtol: The least relative tolerance.
            atol: The least absolute tolerance.
            float_rtol: The relative tolerance of float32.
            float_atol: The absolute tolerance of float32.
            half_rtol: The relative tolerance of float16.
            half_atol: The absolute tolerance of float16.
            bfloat16_rtol: The relative tolerance of bfloat16.
            bfloat16_atol: The absolute tolerance of bfloat16.
            msg: Words for the failure.
        """
        names = {str(_array(x).dtype) for x in (a, b)}
        for kinds, relative, absolute in (
            ({"float32", "complex64"}, float_rtol, float_atol),
            ({"float16"}, half_rtol, half_atol),
            ({"bfloat16"}, bfloat16_rtol, bfloat16_atol),
        ):
            if names & kinds:
                rtol, atol = max(rtol, relative), max(atol, absolute)
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """Check that all elements are greater than a number.

        Args:
            a: A tensor.
            comparison_target: The number.
        """
        self.assertGreater(_array(a).min(), comparison_target)

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """Check that all elements are less than a number.

        Args:
            a: A tensor.
            comparison_target: The number.
        """
        self.assertLess(_array(a).max(), comparison_target)

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """Check that all elements are a number or greater.

        Args:
            a: A tensor.
            comparison_target: The number.
        """
        self.assertGreaterEqual(_array(a).min(), comparison_target)

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """Check that all elements are a number or less.

        Args:
            a: A tensor.
            comparison_target: The number.
        """
        self.assertLessEqual(_array(a).max(), comparison_target)

    def assertAllInRange(
        self, target: Any, lower_bound: Any, upper_bound: Any, open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:  # fmt: skip
        """Check that all elements are between two numbers.

        Args:
            target: A tensor.
            lower_bound: The least number.
            upper_bound: The greatest number.
            open_lower_bound: Exclude the least number.
            open_upper_bound: Exclude the greatest number.
        """
        above, below = self.assertAllGreaterEqual, self.assertAllLessEqual
        (self.assertAllGreater if open_lower_bound else above)(target, lower_bound)
        (self.assertAllLess if open_upper_bound else below)(target, upper_bound)

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        """Check that all elements are members of a set.

        Args:
            target: A tensor.
            expected_set: The set.
        """
        self.assertLessEqual(set(_array(target).reshape(-1).tolist()), set(expected_set))

    def assertNear(self, f1: Any, f2: Any, err: float, msg: Any = None) -> None:
        """Check that two numbers differ by `err` or less.

        Args:
            f1: A number.
            f2: Another.
            err: The largest difference.
            msg: Words for the failure.
        """
        self.assertLessEqual(abs(float(f1) - float(f2)), err, msg)

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: Any = None) -> None:
        """Check that the numbers of two vectors differ by `err` or less.

        Args:
            farray1: Numbers.
            farray2: As many.
            err: The largest difference.
            msg: Words for the failure.
        """
        self.assertEqual(len(farray1), len(farray2), msg)
        for one, other in zip(farray1, farray2, strict=True):
            self.assertNear(one, other, err, msg)

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: Any = None) -> None:
        """Check that the norm of the difference of two arrays is below `err`.

        Args:
            ndarray1: An array.
            ndarray2: Another.
            err: The number that the norm is below.
            msg: Words for the failure.
        """
        self.assertLess(np.linalg.norm(_array(ndarray1) - _array(ndarray2)), err, msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """Check the dtype of a tensor.

        Args:
            target: A tensor.
            expected_dtype: A dtype of samegrad or NumPy, or its name.
        """
        wanted = getattr(expected_dtype, "as_numpy_dtype", expected_dtype)
        self.assertEqual(_array(target).dtype, np.dtype(wanted))

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: Any = None) -> None:
        """Check that two tensors have one shape.

        Args:
            input_a: A tensor or array.
            input_b: Another.
            msg: Words for the failure.
        """
        self.assertEqual(tuple(input_a.shape), tuple(input_b.shape), msg)

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(
        self, exception_type: Any, expected_err_re_or_predicate: Any
    ) -> Iterator[None]:
        """Check that the code of the context raises an error that a function or pattern accepts.

        Args:
            exception_type: The class of the error.
            expected_err_re_or_predicate: A function of the error, or a pattern for its message.

        Returns:
            A context manager.
        """
        with self.assertRaises(exception_type) as caught:
            yield
        error, wanted = caught.exception, expected_err_re_or_predicate
        if not (wanted(error) if callable(wanted) else re.search(wanted, str(error))):
            raise self.failureException(f"{shown(wanted)} does not accept {error!r}") from error

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:
        """Check that the code of the context raises an `errors.OpError`.

        Args:
            expected_err_re_or_predicate: A function of the error, or a pattern for its message.

        Returns:
            The context.
        """
        return self.assertRaisesWithPredicateMatch(OpError, expected_err_re_or_predicate)

    def assertRaisesIncompatibleShapesError(self, exception_type: Any = None) -> Any:
        """Check that the code of the context raises an error about shapes.

        Args:
            exception_type: The class of the error; None: `errors.InvalidArgumentError`.

        Returns:
            The context.
        """
        return self.assertRaisesRegex(exception_type or InvalidArgumentError, "broadcast|shapes")


def _value(tensor: Any) -> Any:
    """Return the NumPy value of a tensor of any kind."""
    if isinstance(tensor, RaggedTensor):
        return RaggedTensorValue(tensor.flat_values.numpy(), tensor.row_splits.numpy())
    if isinstance(tensor, SparseTensor):
        return SparseTensorValue(
            tensor.indices.numpy(), tensor.values.numpy(), tensor.dense_shape.numpy()
        )
    return tensor.numpy() if hasattr(tensor, "numpy") else tensor


def _array(value: Any) -> np.ndarray[Any, Any]:
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def _comparable(value: Any) -> np.ndarray[Any, Any]:
    """Return an array: strings as bytes, bfloat16 as float32."""
    array = _array(value)
    if array.dtype.kind in "US" and not isinstance(value, np.ndarray):
        array = np.array(value, object)  # NumPy's strings lose NUL at their ends
    if array.dtype.kind in "USO":
        made = np.array([x.encode() if isinstance(x, str) else x for x in array.flat], object)
        return made.reshape(array.shape)
    return array.astype(np.float32) if array.dtype.kind == "V" else array


def _is_ragged(value: Any) -> bool:
    return hasattr(value, "row_splits")


def _as_list(value: Any) -> Any:
    if _is_ragged(value):
        return value.to_list()
    if isinstance(value, list | tuple):
        return [_as_list(part) for part in value]
    return _comparable(value).tolist()


def _flat(value: Any) -> list[Any]:
    """Return the rows of a ragged tensor, or of a list of lists."""
    return _as_list(value) if _is_ragged(value) else list(value)


def _is_nest(values: Any) -> bool:
    """Tell whether a list or tuple has parts of several shapes."""
    if any(isinstance(x, Mapping | list | tuple) or _is_ragged(x) for x in values):
        return True
    return len({np.shape(_array(x)) for x in values}) > 1


def _shapes(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any], msg: Any) -> str:
    return f"Shapes differ: {one.shape} and {other.shape}. {msg or ''}"


__all__ = ["TestCase", "main"]
