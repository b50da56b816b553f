"""Wrong calls, whose message names the right one: keywords, dtypes, numbers of replicas."""

import numpy as np
import pytest
import surface

import samegrad as tf

STRATEGIES = ("MirroredStrategy", "MultiWorkerMirroredStrategy", "OneDeviceStrategy")


def is_made(target):
    """Whether there is an object for the method: some classes want arguments of their own."""
    try:
        return target.get() is not None
    except (AttributeError, TypeError):
        return False
    except ValueError as error:
        if "without a TPU" in str(error):  # no machine of the tests has one
            return False
        raise


TARGETS = {target.path: target for target in surface.targets() if is_made(target)}
WITH_KEYWORDS = [
    path
    for path, target in TARGETS.items()
    if target.signature
    and path != "constant_initializer"  # Keras's
    and not path.startswith("errors.")  # Python makes exceptions
    and any(
        one.kind is one.KEYWORD_ONLY or one.default is not one.empty for one in target.signature
    )
    and not any(one.kind is one.VAR_KEYWORD for one in target.signature)
]
CONSTRUCTORS = [path for path, thing in surface.things() if isinstance(thing, type)]
# The arguments before a dtype, or what they may be.
OPTIONS = {
    "TensorArray": {"size": 1},
    "TensorSpec": {"shape": (2,)},
    "Variable": {"initial_value": 1.0},
    "experimental.DynamicRaggedShape": {"row_partitions": [], "inner_shape": [2]},
    "experimental.DynamicRaggedShape.from_row_partitions": {
        "row_partitions": [tf.experimental.RowPartition.from_row_lengths([1, 2])]
    },
    "experimental.RowPartition.from_uniform_row_length": {"uniform_row_length": 1, "nrows": 2},
    "map_fn": {"fn": abs, "elems": np.ones((2, 2))},
    "random.categorical": {"logits": [[1.0]], "num_samples": 1},
    "random.stateless_categorical": {"logits": [[1.0]], "num_samples": 1, "seed": [1, 2]},
}
# These take no dtype, or look at a picture first.
# Descriptions of features check their dtype where records are parsed, as TensorFlow's do.
NO_DTYPE = {"RaggedTensor.__array__", "image.decode_image"} | {
    f"io.{kind}Feature" for kind in ("FixedLen", "FixedLenSequence", "Ragged", "Sparse", "VarLen")
}
GUESSES = ([[1.0, 2.0], [3.0, 4.0]], (2, 2), 2, 3.0, "a", np.int64(1), ["1"], [2, 3])


def error_of(call, *args, **options):
    try:
        call(*args, **options)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_number_in_place_of_devices_suggests_replicas(name):
    error = error_of(getattr(tf.distribute, name), 4)
    assert f"[{name}]" in str(error) and "replicas=4" in str(error)


@pytest.mark.parametrize("devices", [["XPU:0"], ["CPU:0", "CPU:0"], "CPU:0"], ids=str)
@pytest.mark.parametrize("name", STRATEGIES[:2])
def test_devices_that_are_rejected_suggest_the_same_strategy(name, devices):
    error = error_of(getattr(tf.distribute, name), devices=devices)
    assert str(error).startswith(f"[{name}] ") and f" {name}(replicas=" in str(error)


@pytest.mark.parametrize("name", STRATEGIES[:2])
@pytest.mark.parametrize("count", [3.5, "4", [2], True, None, np.float32(2)])
def test_a_number_of_replicas_is_an_integer(name, count):
    make = getattr(tf.distribute, name)
    if count is None:
        assert make(replicas=np.int64(2)).num_replicas_in_sync == 2
        return
    error = error_of(make, replicas=count)
    assert type(error) is TypeError
    assert str(error).startswith(f"[{name}] replicas must be an integer: got ")


@pytest.mark.parametrize("name", ["num_replicas", "n_replicas", "replica", "Replicas"])
def test_a_keyword_like_replicas_is_named(name):
    error = error_of(tf.distribute.MirroredStrategy, **{name: 4})
    assert str(error).count("did you mean 'replicas'?") == 1


@pytest.mark.parametrize("path", WITH_KEYWORDS)
def test_a_misspelt_keyword_names_the_right_one(path):
    target = TARGETS[path]
    names = [one.name for one in target.signature if one.kind is not one.VAR_POSITIONAL]
    name = next((one for one in reversed(names) if len(one) > 3), None)
    if name is None:
        pytest.skip("names are too short")
    wrong = name[:-2] + name[-1]
    if wrong in names:
        pytest.skip("the parameter has such a neighbour")
    error = error_of(TARGETS[path].get(), **{wrong: None})
    assert isinstance(error, TypeError) and "did you mean '" in str(error), error


@pytest.mark.parametrize("path", CONSTRUCTORS)
def test_a_constructor_takes_its_arguments_by_their_names(path):
    cls = TARGETS[path].get()
    names = [
        one.name
        for one in TARGETS[path].signature or ()
        if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    ]
    error = error_of(cls, **dict.fromkeys(names))
    assert "unexpected keyword" not in str(error) and "missing" not in str(error)


def takes_a_dtype(path):
    names = {one.name for one in TARGETS[path].signature or ()}
    return names & {"dtype", "out_type"} and path not in NO_DTYPE


def dtype_error(path):
    """The error of a misspelt dtype, with the first guess of other arguments that reaches it."""
    target, given = TARGETS[path], OPTIONS.get(path, {})
    wanted = [
        one
        for one in target.signature
        if one.default is one.empty and one.kind < one.VAR_POSITIONAL
    ]
    name = next(one.name for one in target.signature if one.name in ("dtype", "out_type"))
    count = 0 if given else sum(one.name != name for one in wanted)
    errors = [
        str(error_of(target.get(), *[guess] * count, **given, **{name: "flot32"}))
        for guess in GUESSES
    ]
    return next((error for error in errors if "got 'flot32'" in error), errors[0])


@pytest.mark.parametrize("path", [path for path in TARGETS if takes_a_dtype(path)])
def test_a_misspelt_dtype_names_the_right_one(path):
    assert "did you mean 'float32'?" in dtype_error(path)


@pytest.mark.parametrize(
    ("given", "meant"),
    [("Float32", "float32"), ("floa64", "float64"), ("int23", "int32"), ("bol", "bool"),
     ("bfloat", "bfloat16"), ("unit8", "uint8")],
)  # fmt: skip
def test_names_like_a_dtype_are_known(given, meant):
    assert f"did you mean {meant!r}?" in str(error_of(tf.cast, [1.0], given))


def test_messages_have_the_public_name():
    error = error_of(tf.as_dtype, "flot32")
    assert str(error).startswith("[as_dtype] ")


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (lambda: tf.zeros((None, 2)), "read a size that is open from shape(x)"),
        (lambda: tf.constant([1, None]), "replace None by a number"),
    ],
    ids=["size", "value"],
)
def test_none_among_numbers_names_its_remedy(call, remedy):
    message = str(error_of(call))
    assert remedy in message and "bounding_shape()" in message


def test_arrays_of_objects_are_rejected_without_a_remedy_for_none():
    objects = [np.array([[object(), object()]]), np.array([[None, None]])]
    message = str(error_of(tf.constant, objects))
    assert "a number, an array or a tensor is needed" in message and "bounding" not in message
