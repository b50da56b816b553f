"""Names, order and defaults of parameters are TensorFlow's, for all public callables in common."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from keyword_programs import PROGRAMS
from manner_programs import answer
from signatures import differences, signatures
from value_calls import MIXED, calls, value_of

import samegrad as tf

RECORDED = json.loads(Path(__file__).with_name("tensorflow_signatures.json").read_text("utf-8"))
OURS = signatures(tf, "samegrad")
COMMON = sorted(RECORDED["signatures"].keys() & OURS.keys())
MADE_INSIDE = "users never call the constructor"
NO_ENUM = "the option is ignored, and samegrad lacks the enum of its default"
NO_DTENSOR = "there is no DTensor, whose layout it is"
# What differs by decision, and why.
DECIDED = {
    "DType": "made of its name; TensorFlow's number is for its own code",
    "RaggedTensor": "TensorFlow's constructor refuses users",
    "RaggedTensorSpec": "ragged values have one type: flat_values_spec is refused",
    "Tensor": MADE_INSIDE,
    "autograph.experimental.set_loop_options": "left out is None, where TensorFlow has an object",
    "constant_initializer": "there are no partitioned variables",
    "data.Dataset": MADE_INSIDE,
    "data.Iterator": MADE_INSIDE,
    "data.experimental.Optional": MADE_INSIDE,
    "distribute.DistributedDataset": MADE_INSIDE,
    "distribute.DistributedValues": MADE_INSIDE,
    "distribute.InputOptions": NO_ENUM,
    "distribute.ReplicaContext": MADE_INSIDE,
    "distribute.StrategyExtended": MADE_INSIDE,
    "dtypes.DType": "made of its name; TensorFlow's number is for its own code",
    **{f"errors.{name}": "a message alone is taken as well" for name in (
        "AbortedError", "AlreadyExistsError", "CancelledError", "DataLossError",
        "FailedPreconditionError", "InternalError", "InvalidArgumentError", "NotFoundError",
        "OpError", "OutOfRangeError", "UnauthenticatedError", "UnavailableError", "UnknownError")},
    "fill": NO_DTENSOR,
    "fingerprint": "of all arrays of an object; TensorFlow hashes each row of a tensor",
    "io.TFRecordOptions": "zlib's finer settings are left out",
    "ones": NO_DTENSOR,
    "ones_like": NO_DTENSOR,
    "summary.SummaryWriter": MADE_INSIDE,
    "summary.create_file_writer": NO_DTENSOR,
    "zeros": NO_DTENSOR,
    "zeros_like": NO_DTENSOR,
}  # fmt: skip
# Calls that are decided differences, with the error that they raise.
REFUSED = {
    "fill": (lambda: tf.fill([2], 1.0, layout=1), r"^\[fill\] got an unexpected keyword"),
    "hash": (lambda: tf.fingerprint([[1]], method="farmhash64"), r"^\[fingerprint\] got an unexp"),
    "zeros": (lambda: tf.zeros([2], layout=1), r"^\[zeros\] got an unexpected keyword"),
    "spec": (
        lambda: tf.RaggedTensorSpec([None], flat_values_spec=1),
        r"^\[RaggedTensorSpec\] got an unexpected keyword",
    ),
    "initializer": (lambda: tf.constant_initializer(0, support_partition=True), "unexpected"),
    "policy": (lambda: tf.gather_nd([1.0], [[9]], 0, None, "IGNORE"), r"must be 'ERROR'"),
    "ragged rank": (lambda: tf.RaggedTensor.from_tensor([[[1]]], ragged_rank=2), "must be 1"),
    "variable": (lambda: tf.Variable(1.0, variable_def=1), r"^\[Variable\] variable_def must be"),
}
OF_INTEGERS = "integers and bools become the type that NumPy gives them"
# Calls with other values by decision, and why.
OTHER_VALUES = {
    **{f"fingerprint {kind}": DECIDED["fingerprint"] for kind in (
        "bools", "floats", "ints", "a number behind", "ints behind", "lists behind", *MIXED)},
    **{f"TensorSpec.from_tensor {kind}": "a spec without a name prints none" for kind in (
        "wide before arrays", "wide before lists")},
    "get_static_value wide in a list": "a list is converted as for every other function",
    **{f"signal.{name} wide in a list": "computes in float64, which is there" for name in (
        "rfft", "rfft2d", "rfft3d")},
    "clip_by_value lists behind": "the lower bound is above the upper one, which wins here",
    **{f"signal.{name} {kind}": OF_INTEGERS for name in ("fft", "ifft", "irfft")
       for kind in ("ints", "bools")},
    **{f"nn.{name} ints": "losses are floats" for name in (
        "compute_average_loss", "scale_regularization_loss")},
}  # fmt: skip


def test_most_public_callables_are_compared():
    assert len(COMMON) > 1000


@pytest.mark.parametrize("name", sorted(set(COMMON) - DECIDED.keys()))
def test_a_signature_is_that_of_tensorflow(name):
    assert not differences(RECORDED["signatures"][name], OURS[name])


@pytest.mark.parametrize("name", sorted(DECIDED))
def test_a_decided_difference_is_one(name):
    assert differences(RECORDED["signatures"][name], OURS[name])


@pytest.mark.parametrize(("call", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_an_argument_that_is_not_there_is_refused(call, words):
    with pytest.raises((TypeError, ValueError, NotImplementedError), match=words):
        call()


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_argument_means_what_it_means_in_tensorflow(name):
    found = json.loads(json.dumps(answer(tf, PROGRAMS[name])))
    expected = RECORDED["answers"][name]
    if isinstance(expected, dict):
        assert expected["error"][0] in found["error"]
    else:
        assert found == expected


def test_calls_by_position_have_the_values_of_tensorflow():
    """Functions that take these operands; refusals have another test."""
    compared, other = 0, {}
    for name, kind, needed in calls(RECORDED["signatures"]):
        expected = RECORDED["values"].get(f"{name} {kind}")
        found = None if expected is None else value_of(tf, name, kind, needed)
        compared += found is not None
        if found is not None and json.loads(json.dumps(found)) != expected:
            other[f"{name} {kind}"] = found, expected
    assert compared > 1150
    assert {call: values for call, values in other.items() if call not in OTHER_VALUES} == {}
    assert other.keys() == OTHER_VALUES.keys()


def test_arrays_and_lists_take_the_dtype_of_the_tensor_beside_them():
    refused, compared = {}, 0
    for name, kind, needed in calls(RECORDED["signatures"]):
        if kind not in MIXED or f"{name} {kind}" not in RECORDED["values"]:
            continue
        try:
            value_of(tf, name, kind, needed, hidden=())
            compared += 1
        except Exception as error:
            if "one dtype" in str(error):
                refused[f"{name} {kind}"] = str(error)
    assert compared > 600
    assert refused == {}
