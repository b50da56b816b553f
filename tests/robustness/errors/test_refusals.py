"""What public names say of wrong calls: the public name, the rule, the value, the remedy."""

import inspect
import pickle
import subprocess
import sys
import time
import warnings

import judge
import numpy as np
import pytest

import samegrad as tf
from samegrad._base.shown import shown
from samegrad._surface.argument_rules import broken_rule
from samegrad._surface.boundary import inside


class OwnError(Exception):
    pass


class Raises:
    """Raises what is the program's own when it is asked for a number."""

    def __index__(self, *args):
        raise OwnError("mine")

    __iter__ = __len__ = __array__ = __float__ = __call__ = __index__


def looped():
    loop = [1.0]
    loop.append(loop)
    return loop


REFUSED = {
    "an argument too few": (
        lambda: tf.reshape(1.0), TypeError,
        r"\[reshape\] missing .*'shape'.*reshape\(tensor, shape",
    ),
    "an argument too many, under the public name": (
        lambda: tf.range(1, 2, 3, "int32", None, 6), TypeError,
        r"\[range\] too many .*range\(start",
    ),
    "an unknown option": (
        lambda: tf.keras.layers.Dense(3, unit=2), ValueError,
        r"passed to Dense: \{'unit': 2\}",
    ),
    "a list where numbers belong, named by the function called": (
        lambda: tf.reshape({}, (1,)), TypeError, r"\[reshape\] a number, an array or a tensor",
    ),
    "a list that contains itself": (
        lambda: tf.constant(looped()), ValueError, r"\[constant\]",
    ),
    "a size that is not an integer": (
        lambda: tf.zeros((1.5,)), TypeError, r"\[zeros\] a size is an integer: got float 1\.5",
    ),
    "a size that is not an integer, in an array": (
        lambda: tf.zeros(np.array([2.5])), TypeError, r"\[zeros\] a size is an integer: got float",
    ),
    "sizes in a tensor that is not of integers": (
        lambda: tf.zeros(tf.constant([2.5])), TypeError, r"\[zeros\] shape must be integers",
    ),
    "a size of more than 64 bits": (
        lambda: tf.zeros((2**70,)), ValueError, r"\[zeros\] a size is an integer of 64 bits",
    ),
    "an axis of the wrong type": (
        lambda: tf.reduce_sum([1.0], axis="rows"), TypeError,
        r"\[reduce_sum\] an axis is an integer: got str 'rows'",
    ),
    "an axis outside": (
        lambda: tf.split([1.0, 2.0], 2, axis=3), ValueError,
        r"\[split\] axis must lie in \[-1, 1\)",
    ),
    "an axis that is a string": (
        lambda: tf.expand_dims(1.0, "x"), TypeError,
        r"\[expand_dims\] an axis is an integer: got str 'x'; pass an int",
    ),
    "an index of a tensor": (
        lambda: tf.ones((2,))["x"], TypeError, r"an index is an integer, a slice.*got str 'x'",
    ),
    "a step of 0": (lambda: tf.ones((2,))[::0], ValueError, "step of a slice is not 0"),
    "a place of a shape": (
        lambda: tf.ones((2,)).shape[4], IndexError, r"\[TensorShape\].*\[-1, 1\).*got 4",
    ),
    "a member of an enum": (
        lambda: tf.distribute.ReduceOp("MAX"), ValueError, r"\[ReduceOp\] one of SUM, MEAN.*'MAX'",
    ),
    "a dict whose keys have no order": (
        lambda: tf.nest.flatten({1: 2, "a": 3}), TypeError, "keys of a dict must have an order",
    ),
    "parts of a value that are not tensors": (
        lambda: tf.distribute.MirroredStrategy(replicas=2).reduce("MEAN", "text", axis=0),
        TypeError, r"\[MirroredStrategy\.reduce\].*got str 'text'",
    ),
    "pairs of an optimizer": (
        lambda: tf.keras.optimizers.SGD(0.1).apply_gradients([1.0]), TypeError,
        r"pairs of a gradient and a variable.*got 1\.0",
    ),
    "the threads of more bits than an int": (
        lambda: tf.config.threading.set_intra_op_parallelism_threads(2**40), ValueError, "threads",
    ),
    "a seed": (lambda: tf.keras.utils.set_random_seed(-1), ValueError, r"0 and 2\*\*32 - 1"),
    "NumPy's memory": (lambda: tf.range(2**45), MemoryError, r"\[range\] there is no memory.*got"),
    "a path that no system has": (
        lambda: tf.train.Checkpoint(v=tf.Variable(1.0)).save("a\ud800"), ValueError, "got",
    ),
    "a matrix of fewer rows than none": (
        lambda: tf.eye(-1), ValueError, r"\[eye\] num_rows .* got -1 and -1; pass",
    ),
    "a generator of devices, which have a number": (
        lambda: tf.distribute.MirroredStrategy(devices=(name for name in ["CPU:0"])), TypeError,
        r"\[MirroredStrategy\] devices must be a list.*got <generator",
    ),
    "a tensor for a dtype": (
        lambda: tf.argmin([1.0], output_type=tf.constant(1)), TypeError, r"\[argmin\] dtype",
    ),
    "memory that NumPy cannot view": (
        lambda: tf.experimental.dlpack.from_dlpack(np.arange(6, dtype=">i8")), BufferError,
        r"\[from_dlpack\] the memory must be .* got an array of shape \(6,\)",
    ),
    "fewer replicas than one": (
        lambda: tf.testing.unequal_sizes(2, 0), ValueError, r"\[unequal_sizes\].*got 2 and 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_wrong_call_is_refused_by_name_rule_and_value(mistake):
    call, kind, words = REFUSED[mistake]
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: tf.zeros((Raises(),)),
        lambda: tf.expand_dims(1.0, Raises()),
        lambda: tf.constant(Raises()),
        lambda: tf.nest.map_structure(Raises(), [1]),
        lambda: tf.cond(True, Raises(), Raises()),
        lambda: tf.ones((2,))[Raises()],
    ],
)
def test_what_the_programs_objects_raise_comes_out_as_it_is(call):
    with pytest.raises(OwnError, match="^mine$") as caught:
        call()
    assert caught.value.__cause__ is None


def test_an_error_inside_a_function_that_was_given_is_the_programs():
    with pytest.raises(KeyError, match="^'x'$"):
        tf.cond(True, lambda: {}["x"], lambda: 1.0)


def test_a_mistake_inside_a_given_function_names_what_it_called():
    with pytest.raises(TypeError, match=r"^\[expand_dims\]"):
        tf.nest.map_structure(lambda x: tf.expand_dims(x, "axis"), [1.0])


def test_a_slice_may_end_beyond_64_bits():
    assert tf.constant([1.0, 2.0])[0 : 2**70].numpy().tolist() == [1.0, 2.0]


def test_a_size_finds_in_a_dict_what_its_number_finds():
    data = tf.data.Dataset.from_tensor_slices(np.ones((13, 3), "float32")).batch(13)
    found = tf.function(lambda v: {13: v * 2.0}[v.shape[0]])(next(iter(data)))
    assert found.numpy().sum() == 78
    inside_set = tf.function(lambda v: tf.constant(v.shape[0] in {13, 5}))(next(iter(data)))
    assert bool(inside_set)


def test_public_functions_have_one_form_and_can_be_pickled():
    assert tf.add is tf.math.add
    for function in (tf.range, tf.reshape, tf.nest.flatten, tf.nn.relu):
        assert pickle.loads(pickle.dumps(function)) is function
        assert inside(function) is not function
        assert inspect.signature(function) == inspect.signature(inside(function))


def test_warnings_name_the_users_line():
    used, unused = tf.Variable(1.0), tf.Variable(2.0)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        tf.keras.optimizers.SGD(0.1).apply_gradients([(tf.constant(1.0), used), (None, unused)])
    assert [warning.filename for warning in seen] == [__file__]


def test_values_in_messages_are_short_and_cannot_fail():
    assert shown(np.zeros((1000, 1000))) == "an array of shape (1000, 1000) and dtype float64"
    assert len(shown(list(range(10**5)))) <= 80
    assert shown(10**5000) == f"a number of {(10**5000).bit_length()} bits"

    class Silent:
        def __repr__(self):
            raise OwnError("no")

    assert shown(Silent()) == "<Silent>"
    assert shown("a\ud800b") == r"'a\ud800b'"


def test_rules_are_those_of_the_annotations():
    def function(axis: int, names: "list[str] | None" = None, rate: float = 0.5) -> None: ...

    assert broken_rule(function, {"axis": 1, "names": ["a"], "rate": 2}) is None
    assert broken_rule(function, {"axis": True})[0] == "axis must be an integer of 64 bits"
    assert broken_rule(function, {"axis": 1, "names": [3]})[1] == [3]
    assert broken_rule(function, {"axis": 1, "rate": "x"})[1] == "x"


BATCH = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
import samegrad as tf
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
numbers = tf.data.Dataset.range(2**62)
for data in (numbers.batch(2**61), numbers.shuffle(2**62)):
    try:
        next(iter(data))
    except MemoryError as error:
        assert "[Dataset] there is no memory" in str(error), error
    else:
        raise SystemExit("taken")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_batch_that_no_memory_holds_is_refused_before_it_takes_any():
    done = subprocess.run(
        [sys.executable, "-c", BATCH], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 64 << 10  # KiB


def test_an_array_of_more_rows_than_memory_is_refused_before_its_rows_are_taken():
    rows = np.broadcast_to(np.float32(1), (2**20, 2**24))
    for call in (lambda: tf.stack(rows), lambda: tf.concat(rows, 0)):
        with pytest.raises(MemoryError, match="got"):
            call()


ROWS = np.broadcast_to(np.float32(1), (2**20, 2**20))
NUMBERS = np.broadcast_to(np.int64(1), (2**40,))
# What walks over all of it, or writes it down row by row, takes hours.
ENDLESS = {
    "a number": lambda: tf.nn.dropout(2.0, rate=NUMBERS),
    "a shape": lambda: tf.constant(2.0, shape=NUMBERS),
    "axes": lambda: tf.distribute.MirroredStrategy(replicas=2).reduce("SUM", [1.0], axis=NUMBERS),
    "one axis": lambda: tf.distribute.MirroredStrategy(replicas=2).gather([1.0], axis=NUMBERS),
    "arguments": lambda: tf.distribute.MirroredStrategy(replicas=2).run(tf.abs, args=ROWS),
    "arguments to explain": lambda: tf.distribute.get_strategy().explain(tf.abs, args=ROWS),
    "terms": lambda: tf.add_n(NUMBERS),
    "an argument of a compiled function": lambda: tf.function(lambda x: x)(NUMBERS),
}


@pytest.mark.parametrize("place", ENDLESS)
def test_an_array_of_endless_rows_is_refused_at_once(place):
    began = time.monotonic()
    with pytest.raises((TypeError, ValueError, MemoryError), match=r"^\[.*got .*\d") as caught:
        ENDLESS[place]()
    assert time.monotonic() - began < 3
    assert judge.fault_of(caught.value) is None


def test_large_arrays_are_looked_at_before_a_call_and_right_ones_go_on():
    rows = np.ones((2**11, 2**11), np.float32)
    assert float(tf.reduce_sum(rows)) == 2.0**22
    assert float(tf.reduce_sum(tf.add_n(rows))) == 2.0**22
    with pytest.raises(TypeError, match=r"\[reduce_sum\] axis must be integers: got an array"):
        tf.reduce_sum(1.0, axis=rows)


def test_what_python_says_of_a_list_called_is_not_taken_for_ours():
    context = tf.distribute.get_replica_context()
    with pytest.raises(TypeError, match=r"^\[ReplicaContext.merge_call\] .*got \[nan\]"):
        context.merge_call([float("nan")], args=(2.0,), kwargs=2.0)


def test_what_goes_by_dtype_ord_or_shape_has_a_rule_of_its_own():
    with pytest.raises(TypeError, match=r"^\[norm\] ord is 'euclidean'.*got array"):
        tf.norm(2.0, ord=np.zeros((0, 2), np.float32))
    for shape in ((2, -1), -7):
        with pytest.raises(ValueError, match=r"^\[constant\] shape must be a tuple of sizes"):
            tf.constant(1, shape=shape)
    assert tf.Variable([1.0]).__array__(dtype=tf.float64).dtype == np.float64


def test_pairs_that_are_none_are_refused_by_name():
    extended = tf.distribute.get_strategy().extended
    with pytest.raises(TypeError, match=r"^\[StrategyExtended.batch_reduce_to\] pairs .*got 1;"):
        extended.batch_reduce_to("SUM", iter([1, 2]))


def test_a_kind_of_bytes_that_dlpack_has_not_is_refused_by_name():
    with pytest.raises(BufferError, match=r"^\[(experimental\.dlpack\.)?from_dlpack\] .*got"):
        tf.experimental.dlpack.from_dlpack(np.array([b"a", b"bc"]))


def test_arguments_of_a_compiled_function_are_refused_where_they_cannot_be_read():
    function = tf.function(lambda *a: 1.0)
    for value, kind, words in (
        (looped(), ValueError, r"\[function\] an argument is nested too deep"),
        ({1: 2.0, "a": 3.0}, TypeError, r"\[function\] the keys of a dict must have an order"),
    ):
        with pytest.raises(kind, match=words):
            function(value)
        with pytest.raises(kind, match=words):
            function.explain(value)
    assert float(function(1.0)) == 1.0


def test_a_recursion_of_the_program_stays_a_recursion_error():
    def deeper(x):
        return deeper(tf.identity(x))

    with pytest.raises(RecursionError):
        deeper(tf.constant(1.0))
