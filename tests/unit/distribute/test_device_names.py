"""Names of devices that a machine without GPUs lacks: replicas and ops run on its CPUs."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad._context.devices import placement

D = tf.distribute
NAMES = (
    "/gpu:0", "/GPU:1", "gpu:0", "gpu", "/gpu", "/gpu:*", "/device:GPU:3", "/TPU:0", "/cpu:5",
    "/job:localhost/replica:0/task:0/device:GPU:0", "", None,
    tf.DeviceSpec(device_type="GPU", device_index=0),
    tf.config.LogicalDevice("/device:GPU:0", "GPU"),
)  # fmt: skip
WRONG = ("/xpu:0", "foo", "0", "/physical_device:GPU:0", "/gpu:x", "/gpu:0/cpu:0", "/task:a", 3)
# Every public function with the name of a device, and a call of it with one.
TAKERS: dict[str, Callable[[Any], Any]] = {
    "distribute.MirroredStrategy(devices)": lambda name: D.MirroredStrategy([name]),
    "distribute.MultiWorkerMirroredStrategy(devices)": lambda name: D.MultiWorkerMirroredStrategy(
        devices=[name]
    ),
    "distribute.OneDeviceStrategy(device)": D.OneDeviceStrategy,
    "distribute.experimental.CentralStorageStrategy(compute_devices)": lambda name: (
        D.experimental.CentralStorageStrategy([name])
    ),
    "distribute.experimental.CentralStorageStrategy(parameter_device)": lambda name: (
        D.experimental.CentralStorageStrategy(None, name)
    ),
    "data.experimental.prefetch_to_device(device)": tf.data.experimental.prefetch_to_device,
}
TAKERS["device(device_name)"] = lambda name: _enter(tf.device(name))
TAKERS["keras.device(device_name)"] = lambda name: _enter(tf.keras.device(name))


def _enter(scope: Any) -> None:
    with scope:
        pass


@pytest.fixture(autouse=True)
def unwarned() -> Iterator[None]:
    placement._warned = False
    yield
    placement._warned = True
    placement.soft = True


def takers_by_signature() -> set[str]:
    """Return the public functions and classes that have a parameter for names of devices."""
    found: set[str] = set()
    modules = {
        "": tf, "distribute.": D, "distribute.experimental.": D.experimental,
        "data.experimental.": tf.data.experimental, "random.": tf.random, "test.": tf.test,
        "config.": tf.config, "config.experimental.": tf.config.experimental, "data.": tf.data,
        "debugging.": tf.debugging, "experimental.": tf.experimental, "train.": tf.train,
        "summary.": tf.summary, "tpu.experimental.": tf.tpu.experimental,
    }  # fmt: skip
    for prefix, module in modules.items():
        for name in module.__all__:
            thing = getattr(module, name)
            if not callable(thing) or name == "TestCase":
                continue
            try:
                parameters = inspect.signature(thing).parameters
            except ValueError:
                continue
            named = {"device", "devices", "device_name", "compute_devices", "parameter_device"}
            found |= {f"{prefix}{name}({parameter})" for parameter in named & set(parameters)}
    # These take the objects of `list_physical_devices`.
    return {taker for taker in found if not taker.startswith("config.")}


def test_every_function_that_takes_a_device_is_tried() -> None:
    assert takers_by_signature() | {"keras.device(device_name)"} == set(TAKERS)


@pytest.mark.parametrize("taker", TAKERS)
def test_a_device_that_the_machine_lacks_is_a_cpu_with_one_warning(taker: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for name in NAMES:
            TAKERS[taker](name)
    (warning,) = caught
    assert "run on the CPUs of this machine" in str(warning.message)
    assert warning.filename == __file__


@pytest.mark.parametrize("taker", TAKERS)
def test_a_name_of_no_device_is_rejected(taker: str) -> None:
    for name in WRONG:
        with pytest.raises(ValueError, match=r"^\[\w+\] a device is .*; "):
            TAKERS[taker](name)


@pytest.mark.parametrize("taker", TAKERS)
def test_names_of_other_devices_raise_without_soft_placement(taker: str) -> None:
    assert tf.config.get_soft_device_placement()
    tf.config.set_soft_device_placement(False)
    TAKERS[taker]("/cpu:0")
    for name in ("/gpu:0", "/cpu:5"):
        with pytest.raises(tf.errors.InvalidArgumentError, match="set_soft_device_placement"):
            TAKERS[taker](name)


def test_names_of_cpus_are_not_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
        tf.device("/cpu:0")


def trained(strategy: Any) -> Any:
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
        model.compile("sgd", "mse")
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    model.fit(x, x[:, :1], batch_size=4, verbose=0)
    return model.get_weights()[0].tolist()


@pytest.mark.filterwarnings("ignore:.*GPUs or TPUs")
def test_replicas_on_named_gpus_train_as_one_device() -> None:
    two = ["/gpu:0", "/gpu:1"]
    expected = trained(D.OneDeviceStrategy("/gpu:0"))
    strategies = [
        D.MirroredStrategy(devices=two), D.experimental.CentralStorageStrategy(two, "/gpu:0"),
        *(D.MirroredStrategy(two, cross_device_ops=ops) for ops in (
            D.NcclAllReduce(2), D.HierarchicalCopyAllReduce(num_packs=2),
            D.ReductionToOneDevice(reduce_to_device="/gpu:0"),
        )),
    ]  # fmt: skip
    for strategy in strategies:
        assert strategy.num_replicas_in_sync == 2
        assert trained(strategy) == expected


def test_collective_options_take_the_implementation_by_name() -> None:
    experimental = D.experimental
    nccl = experimental.CommunicationImplementation.NCCL
    for value in (nccl, "NCCL", "nccl"):
        assert experimental.CommunicationOptions(implementation=value).implementation is nccl
    assert experimental.CollectiveHints(3) == experimental.CollectiveHints(bytes_per_pack=3)
    for wrong in ({"implementation": "MPI"}, {"implementation": 3}, {"bytes_per_pack": -1}):
        with pytest.raises(ValueError, match=r"^\[Communication(Options|Implementation)\]"):
            experimental.CommunicationOptions(**wrong)
    options = experimental.CommunicationOptions(implementation=nccl)
    D.MultiWorkerMirroredStrategy(communication_options=options)
    experimental.MultiWorkerMirroredStrategy(experimental.CollectiveCommunication.NCCL)
    experimental.MultiWorkerMirroredStrategy(communication=nccl)


# Names and answers of TensorFlow 2.21's DeviceSpec.
SPECS = {
    "/gpu:0": "/device:GPU:0",
    "gpu": "/device:GPU:*",
    "/job:w/task:1/device:GPU:*": "/job:w/task:1/device:GPU:*",
    "": "",
    "/job:a/job:b": "/job:b",
    "/device:GPU:-1": "/device:GPU:-1",
    "//gpu:0": "/device:GPU:0",
    "/device:gpu:0": "/device:GPU:0",
}


@pytest.mark.parametrize("name", SPECS)
def test_a_device_spec_has_the_parts_of_a_name(name: str) -> None:
    assert tf.DeviceSpec.from_string(name).to_string() == SPECS[name]


def test_device_specs_merge_and_compare() -> None:
    spec = tf.DeviceSpec(job="w", device_type="gpu")
    same = tf.DeviceSpec(job="w", device_type="GPU")
    assert spec == same and hash(spec) == hash(same) and spec != "/job:w"
    merged = spec.make_merged_spec(tf.DeviceSpec(job="v", task=2))
    assert merged.to_string() == "/job:v/task:2/device:GPU:*"
    assert "job=w, replica=None, task=None, device_type=GPU" in repr(spec)
