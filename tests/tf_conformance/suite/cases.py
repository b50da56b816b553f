"""The parts of TensorFlow's test_util, context, session and ops that its own tests use, eagerly.

The class of tests is `tf.test.TestCase` of the module under test.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any
from unittest import mock

from stand_ins import InternalError

# Decorators of test_util that are called with a reason or a setting first.
_FACTORIES = re.compile(
    r"^(disable_(xla|mlir_bridge|asan|msan|tsan|ubsan|tfrt|control_flow_v2|eager_op_as_function)|"
    r"no_xla_auto_jit|xla_allow_fallback|run_all_without_tensor_float_32|set_xla_env_flag|"
    r"run_without_tensor_float_32|enable_tf_xla_constant_folding|with_forward_compatibility_horizons)$"
)
_PLAIN = re.compile(
    r"^(run_all_in_graph_and_eager_modes|run_deprecated_v1|run_class_in_v1_v2|with_c_shapes|"
    r"with_control_flow_v2|with_eager_op_as_function|enable_\w+|assert_no_\w+|"
    r"disable_cudnn_autotune|add_graph_building_optimization_tests|also_run_as_tf_function|"
    r"run_in_async_and_sync_mode|py_func_if_in_function|build_as_function_and_v1_graph)$"
)


def _internal(what: str) -> Callable[..., Any]:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise InternalError(what)

    return fail


def _only(what: str) -> Callable[..., Any]:
    """Return a decorator, with or without arguments, of tests that are not asked here."""

    def decorate(*arguments: Any, func: Any = None, **settings: Any) -> Any:
        function = func or (arguments[0] if arguments and callable(arguments[0]) else None)
        if isinstance(function, type):
            function.setUp = _internal(what)  # type: ignore[attr-defined]
            return function
        return _internal(what) if function is not None else lambda _: _internal(what)

    return decorate


class _TestUtil(ModuleType):
    """The module test_util: decorators do nothing, or refuse what is not eager."""

    def __getattr__(self, name: str) -> Any:
        """Return a decorator by the kind of its name."""
        if name.startswith("__"):
            raise AttributeError(name)
        if _FACTORIES.match(name):
            return lambda *args, **kwargs: lambda x: x
        if _PLAIN.match(name):
            return lambda x=None, **kwargs: x if x is not None else lambda y: y
        if name in ("is_gpu_available", "IsMklEnabled", "is_xla_enabled", "IsBuiltWithROCm",
                    "IsGoogleCudaEnabled", "GpuSupportsHalfMatMulAndConv", "is_mlir_bridge_enabled",
                    "is_asan_enabled", "is_msan_enabled", "is_tsan_enabled"):  # fmt: skip
            return lambda *args, **kwargs: False
        raise InternalError(f"test_util.{name}")


@contextlib.contextmanager
def _nothing(*args: Any, **kwargs: Any) -> Iterator[None]:
    yield


def _both_modes(func: Any = None, **settings: Any) -> Any:
    return func if func is not None else lambda x: x


def _skip_if(condition: Any) -> Any:
    met = condition() if callable(condition) else condition
    return _only("skip_if") if met else lambda x: x


def _test_util(tf: Any, case: type) -> ModuleType:
    made = _TestUtil("test_util")
    vars(made).update(
        TensorFlowTestCase=case, run_in_graph_and_eager_modes=_both_modes, skip_if=_skip_if,
        run_v1_only=_only("v1 only"), run_v2_only=_both_modes, run_in_v1_v2=_both_modes_in_v1_v2,
        deprecated_graph_mode_only=_only("graph mode only"),
        run_all_in_deprecated_graph_mode_only=_only("graph mode only"),
        run_gpu_only=_only("GPU only"), run_cuda_only=_only("GPU only"),
        run_gpu_or_tpu=_only("GPU only"), device=_nothing, use_gpu=_nothing, force_gpu=_nothing,
        force_cpu=_nothing, deterministic_ops=_nothing,
        matmul_without_tf32=lambda a, b, **k: tf.matmul(a, b, **k),
        gpu_device_name=lambda: "", main=lambda *args: None, NHWCToNCHW=_to_channels_first,
    )  # fmt: skip
    return made


def _both_modes_in_v1_v2(*arguments: Any, **settings: Any) -> Any:
    return lambda x: x


def _to_channels_first(x: Any) -> Any:
    raise InternalError("NCHW")


def _platform_test(tf: Any, case: type) -> ModuleType:
    made = ModuleType("test")
    vars(made).update(
        TestCase=case, Benchmark=object, main=lambda *args, **kwargs: None, mock=mock,
        is_gpu_available=lambda *a, **k: False, is_built_with_rocm=lambda: False,
        is_built_with_cuda=lambda: False, is_built_with_gpu_support=lambda: False,
        is_built_with_xla=lambda: False, gpu_device_name=lambda: "",
        get_temp_dir=tempfile.mkdtemp, GetTempDir=tempfile.mkdtemp, StubOutForTesting=mock,
        disable_with_predicate=lambda **k: lambda x: x,
        test_src_dir_path=_internal("files of the tests"),
    )  # fmt: skip
    return made


def _context(tf: Any) -> ModuleType:
    made = ModuleType("context")
    made.__getattr__ = lambda name: _absent("context", name)  # type: ignore[method-assign]
    vars(made).update(
        executing_eagerly=tf.executing_eagerly, eager_mode=_nothing, num_gpus=lambda: 0,
        graph_mode=_internal("graph mode"), ensure_initialized=lambda: None,
        async_wait=lambda: None, device=tf.device, LogicalDeviceConfiguration=getattr(
            tf.config, "LogicalDeviceConfiguration", None),
        context=lambda: made, _reset_context=_internal("context"),
    )  # fmt: skip
    return made


def _absent(module: str, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise InternalError(f"{module}.{name}")


def _next_of_iterators(tf: Any) -> Callable[[ModuleType], None]:
    """Return a patch of test_base, whose `getNext` uses a private method of iterators."""

    def get_next(self: Any, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        iterator = iter(dataset)

        def following() -> Any:
            try:
                element = next(iterator)
            except StopIteration:
                raise tf.errors.OutOfRangeError(None, None, "End of sequence") from None
            return element.stack() if isinstance(element, tf.TensorArray) else element

        return following

    def patch(module: ModuleType) -> None:
        module.DatasetTestBase.getNext = get_next

    return patch


def special(tf: Any) -> dict[str, Any]:
    """Return what the tool defines itself, by its name below tensorflow.python.

    Args:
        tf: The module under test.
    """
    case = tf.test.TestCase
    test_util, test, context = _test_util(tf, case), _platform_test(tf, case), _context(tf)

    def convert(value: Any, dtype: Any = None, name: Any = None, preferred_dtype: Any = None,
                dtype_hint: Any = None, **_: Any) -> Any:  # fmt: skip
        return tf.convert_to_tensor(
            value, dtype=dtype, name=name, dtype_hint=dtype_hint or preferred_dtype
        )

    return {
        "framework.test_util": test_util,
        "patch data.kernel_tests.test_base": _next_of_iterators(tf),
        "platform.test": test,
        "platform.googletest": test,
        "eager.test": test,
        "eager.context": context,
        "framework.ops.Graph": _internal("Graph"),
        "framework.ops.get_default_graph": _internal("get_default_graph"),
        "framework.ops.reset_default_graph": _internal("reset_default_graph"),
        "framework.ops.convert_to_tensor": convert,
        "framework.ops.executing_eagerly_outside_functions": lambda: True,
        "framework.ops.enable_eager_execution": lambda *a, **k: None,
        "framework.ops.disable_eager_execution": _internal("graph mode"),
        "framework.ops.EagerTensor": type(tf.constant(1.0)),
        "framework.ops.name_scope": tf.name_scope,
        "framework.ops.device": tf.device,
        "framework.ops.colocate_with": _nothing,
        "framework.random_seed.set_random_seed": tf.random.set_seed,
        "framework.dtypes._NP_TO_TF": _internal("dtypes._NP_TO_TF"),
        "client.session": _session_module(),
        "data.ops.test_mode.toggle_test_mode": lambda x: None,
        "ops.variables.global_variables_initializer": list,
        "ops.variables.local_variables_initializer": list,
        "ops.variables.variables_initializer": lambda *_: [],
        "ops.lookup_ops.tables_initializer": list,
    }


def _session_module() -> ModuleType:
    """Return a module whose Session is internal."""
    made = ModuleType("session")
    vars(made).update(Session=_internal("Session"), InteractiveSession=_internal("Session"))
    return made
