"""Programs with tf.data; they run with TensorFlow and with samegrad alike."""

import numpy as np


def _lists(tf, lengths):
    """A dataset of numbers whose n-th is to be repeated lengths[n] times."""
    return tf.data.Dataset.from_tensor_slices(np.array(lengths, np.int64)).enumerate()


def _repeated(tf):
    return lambda n, length: tf.data.Dataset.from_tensors(n).repeat(length)


def _interleave(lengths, cycle, block):
    return lambda tf: _lists(tf, lengths).interleave(
        _repeated(tf), cycle_length=cycle, block_length=block
    )


def _interleave_by(calls, block):
    return lambda tf: _lists(tf, [3, 1, 4, 2]).interleave(
        _repeated(tf), block_length=block, num_parallel_calls=calls
    )


def _windows(size, count=9, **more):
    def program(tf):
        windows = tf.data.Dataset.range(count).window(size, **more)
        return windows.flat_map(lambda window: window.batch(size))

    return program


def _pairs(tf, count=7):
    return tf.data.Dataset.zip(
        (tf.data.Dataset.range(count), tf.data.Dataset.range(10, 10 + count))
    )


def _window_pairs(tf):
    windows = _pairs(tf).window(3, shift=2)
    return windows.flat_map(lambda a, b: tf.data.Dataset.zip((a.batch(3), b.batch(3))))


def _rebatch(rows, size, new, **more):
    return lambda tf: tf.data.Dataset.range(rows).batch(size).rebatch(new, **more)


def _choose(stop, choices=(0, 1, 2, 0, 1, 2, 1, 1, 1, 0)):
    def program(tf):
        inputs = [tf.data.Dataset.range(10 * n, 10 * n + 3 - n) for n in range(3)]
        numbers = tf.data.Dataset.from_tensor_slices(np.array(choices, np.int64))
        return tf.data.Dataset.choose_from_datasets(inputs, numbers, stop_on_empty_dataset=stop)

    return program


def _words(tf):
    return tf.data.Dataset.from_tensor_slices(["The cat", "sat", "", "on the mat"])


PROGRAMS = {
    **{
        f"interleave {lengths} {cycle} {block}": _interleave(lengths, cycle, block)
        for lengths in ([3, 3, 3, 3], [4, 0, 1, 5, 2], [0, 0], [1], [])
        for cycle, block in ((1, 1), (2, 1), (2, 3), (3, 2), (7, 1))
    },
    **{  # calls are as many as cores where it is recorded, which TensorFlow's default depends on
        f"interleave by {calls} calls {block}": _interleave_by(calls, block)
        for calls in (1, 2)
        for block in (1, 2)
    },
    "flat_map": lambda tf: _lists(tf, [2, 0, 3]).flat_map(_repeated(tf)),
    "flat_map twice": lambda tf: _lists(tf, [2, 0, 3]).flat_map(_repeated(tf)).repeat(2),
    "window": _windows(3),
    "window shift": _windows(3, shift=1),
    "window full": _windows(4, shift=2, drop_remainder=True),
    "window stride": _windows(3, shift=2, stride=2),
    "window stride full": _windows(3, shift=1, stride=3, drop_remainder=True),
    "window far": _windows(2, shift=5),
    "window far full": _windows(2, shift=8, drop_remainder=True),
    "window of none": _windows(2, count=0),
    "window larger": _windows(20),
    "window pairs": _window_pairs,
    "take_while": lambda tf: tf.data.Dataset.range(9).take_while(lambda x: x < 4),
    "take_while none": lambda tf: tf.data.Dataset.range(9).take_while(lambda x: x < 0),
    "scan": lambda tf: tf.data.Dataset.range(5).scan(
        tf.constant(1, tf.int64), lambda state, x: (state + x, state * x)
    ),
    "scan pairs": lambda tf: _pairs(tf).scan(
        tf.constant(0, tf.int64), lambda state, pair: (state + pair[0], (state, pair[1]))
    ),
    "unique": lambda tf: tf.data.Dataset.from_tensor_slices([3, 1, 3, 2, 1]).unique(),
    "unique words": lambda tf: tf.data.Dataset.from_tensor_slices(["b", "a", "b", ""]).unique(),
    "rebatch smaller": _rebatch(10, 4, 3),
    "rebatch larger": _rebatch(10, 2, 5),
    "rebatch uneven": _rebatch(11, 4, 3),
    "rebatch full": _rebatch(11, 4, 3, drop_remainder=True),
    "rebatch sizes": _rebatch(11, 4, [1, 3, 2]),
    "rebatch none": _rebatch(0, 4, 3),
    "choose": _choose(True),
    "choose on": _choose(False),
    "words": _words,
    "words batch": lambda tf: _words(tf).batch(3),
    "words shorter": lambda tf: _words(tf).map(tf.strings.lower).skip(1).take(2),
    "words length": lambda tf: _words(tf).map(lambda x: (x, tf.strings.length(x))).batch(2),
    "words filter": lambda tf: _words(tf).filter(lambda x: tf.strings.length(x) > 3),
    "words split": lambda tf: _words(tf).map(lambda x: tf.strings.split(x)).unbatch(),
    "words cache": lambda tf: _words(tf).cache().repeat(2).batch(8),
    "words padded": lambda tf: _words(tf).map(lambda x: tf.strings.split(x)).padded_batch(4),
    "words concatenate": lambda tf: _words(tf).concatenate(_words(tf).take(1)),
    "words zip": lambda tf: tf.data.Dataset.zip((_words(tf), tf.data.Dataset.range(9))).batch(3),
    "words dict": lambda tf: tf.data.Dataset.from_tensor_slices(
        {"text": [["a", "b"], ["c", "d"]], "label": [0, 1]}
    ),
    "words one": lambda tf: tf.data.Dataset.from_tensors(["a", "b"]),
    "words generator": lambda tf: tf.data.Dataset.from_generator(
        lambda: iter([("a", 1), ("bc", 2)]),
        output_signature=(tf.TensorSpec((), tf.string), tf.TensorSpec((), tf.int32)),
    ),
    "words generator types": lambda tf: tf.data.Dataset.from_generator(
        lambda: iter(["a", "bc"]), output_types=tf.string, output_shapes=()
    ),
    "none": lambda tf: tf.data.Dataset.range(3).map(lambda x: (x, None)).batch(2),
    "none of tensors": lambda tf: tf.data.Dataset.from_tensors((np.arange(2), None)).repeat(2),
    "none in the middle": lambda tf: tf.data.Dataset.range(3).map(lambda x: (x, None, -x)).skip(1),
}


def plain(value):
    """What JSON holds of an element."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    return value.decode("latin-1") if isinstance(value, bytes) else value


def elements(dataset):
    return [plain(element) for element in dataset.as_numpy_iterator()]


def record(tf):
    """The elements of each program."""
    return {name: elements(program(tf)) for name, program in PROGRAMS.items()}
