"""Programs that pad, group and bucket; they run with TensorFlow and with samegrad alike."""

import numpy as np

LENGTHS = [3, 0, 7, 1, 5, 4, 2, 9, 6, 3, 3, 8, 2, 5, 1, 4]


def sequences(tf, lengths=LENGTHS, dtype="int64"):
    """Row n counts up from 10 n."""

    def rows():
        for number, length in enumerate(lengths):
            yield np.arange(10 * number, 10 * number + length, dtype=dtype)

    spec = tf.TensorSpec((None,), dtype)
    return tf.data.Dataset.from_generator(rows, output_signature=spec)


def pairs(tf, lengths=LENGTHS):
    """Two sequences and a number, nested."""

    def rows():
        for number, length in enumerate(lengths):
            source = np.arange(length, dtype="int32") + 1
            target = np.full((length // 2, 2), number, "float32")
            yield source, {"rows": target, "number": np.int64(number)}

    spec = (
        tf.TensorSpec((None,), "int32"),
        {"rows": tf.TensorSpec((None, 2), "float32"), "number": tf.TensorSpec((), "int64")},
    )
    return tf.data.Dataset.from_generator(rows, output_signature=spec)


def size(row, *_):
    return row.shape[0]


def _length(tf):
    return lambda row, *_: tf.shape(row)[0]


def _bucket(**more):
    boundaries, sizes = more.pop("boundaries", [3, 6]), more.pop("sizes", [3, 2, 2])
    lengths = more.pop("lengths", LENGTHS)
    return lambda tf: sequences(tf, lengths).bucket_by_sequence_length(
        _length(tf), boundaries, sizes, **more
    )


def _int64(value):
    return np.int64(value)


def _pairs_bucket(**more):
    return lambda tf: pairs(tf).bucket_by_sequence_length(_length(tf), [3, 6], [3, 2, 2], **more)


def _padded(size, **more):
    return lambda tf: sequences(tf, [3, 1, 2, 0, 5]).padded_batch(size, **more)


def _pairs_padded(**more):
    return lambda tf: pairs(tf, [3, 1, 2, 0, 5]).padded_batch(2, **more)


def _older(tf):
    experimental = tf.data.experimental
    buckets = experimental.bucket_by_sequence_length(_length(tf), [3, 6], [3, 2, 2])
    return sequences(tf).apply(buckets)


def _older_windows(tf):
    def reduced(key, window):
        return window.batch(2)

    windows = tf.data.experimental.group_by_window(lambda x: x % 3, reduced, window_size=2)
    return tf.data.Dataset.range(10).apply(windows)


def _windows(**more):
    def reduced(key, window):
        return window.batch(2).map(lambda row: row + 100 * key)

    return lambda tf: tf.data.Dataset.range(17).group_by_window(lambda x: x % 4, reduced, **more)


def _many_of_each(tf):
    """Windows that become several elements, and none."""

    def reduced(key, window):
        return window.repeat(key % 2 * 2)

    return tf.data.Dataset.range(9).group_by_window(lambda x: x % 3, reduced, window_size=2)


def _negative_keys(tf):
    def reduced(key, window):
        return window.batch(9)

    return tf.data.Dataset.range(6).group_by_window(lambda x: 2 - x, reduced, window_size=2)


TOKENS, BOUNDARIES = 12, [3, 6, 10]
TOKEN_SIZES = [max(1, TOKENS // (bound - 1)) for bound in BOUNDARIES]


def windows_of_tokens(tf):
    """Padded batches of at most 12 tokens, grouped by the lengths of their sequences."""
    sizes = tf.constant(TOKEN_SIZES, tf.int64)

    def bucket(row):
        return tf.reduce_sum(tf.cast(tf.shape(row)[0] >= tf.constant(BOUNDARIES), tf.int64))

    def size_of(key):
        return tf.gather(sizes, key)

    def padded(key, window):
        return window.padded_batch(size_of(key))

    return sequences(tf).group_by_window(bucket, padded, window_size_func=size_of)


def _images(tf):
    """A size that is known, and one that is not."""
    spec = tf.TensorSpec((None, 3), "float32")
    rows = [np.full((n, 3), n, "float32") for n in (1, 4, 2, 2)]
    return tf.data.Dataset.from_generator(lambda: iter(rows), output_signature=spec)


def _equal(tf):
    return tf.data.Dataset.from_tensor_slices(np.arange(12, dtype="int64").reshape(6, 2))


CASES = {
    "bucket": _bucket(),
    "bucket, drop_remainder": _bucket(drop_remainder=True),
    "bucket, padding_values": _bucket(padding_values=_int64(-1)),
    "bucket, padded_shapes": lambda tf: _bucket(padded_shapes=tf.TensorShape([9]))(tf),
    "bucket, padded_shapes too small": lambda tf: _bucket(padded_shapes=tf.TensorShape([7]))(tf),
    "bucket, to boundary": _bucket(pad_to_bucket_boundary=True, boundaries=[3, 6, 10],
                                   sizes=[3, 2, 2, 1]),
    "bucket, to boundary and too long": _bucket(pad_to_bucket_boundary=True),
    "bucket, to boundary and as long": _bucket(pad_to_bucket_boundary=True, lengths=[1, 6]),
    "bucket, no padding": _bucket(no_padding=True, lengths=[2, 4, 2, 4, 2, 2, 7]),
    "bucket, no padding and to boundary": _bucket(
        no_padding=True, pad_to_bucket_boundary=True, lengths=[2, 2, 9]
    ),
    "bucket, no padding of other lengths": _bucket(no_padding=True),
    "bucket, no boundary": _bucket(boundaries=[], sizes=[4]),
    "bucket, many boundaries": _bucket(boundaries=[1, 2, 3, 4, 5, 6], sizes=[1, 2, 1, 2, 1, 2, 3]),
    "bucket, nothing": _bucket(lengths=[]),
    "bucket, one": _bucket(lengths=[4]),
    "bucket, only empty sequences": _bucket(lengths=[0, 0, 0, 0]),
    "bucket, too few sizes": _bucket(sizes=[3, 2]),
    "bucket, a size of 0": _bucket(sizes=[3, 0, 2]),
    "bucket of pairs": _pairs_bucket(),
    "bucket of pairs, values": _pairs_bucket(
        padding_values=(np.int32(-1), {"rows": np.float32(0.5), "number": np.int64(7)})
    ),
    "bucket of pairs, shapes": lambda tf: _pairs_bucket(
        padded_shapes=(
            tf.TensorShape([12]),
            {"rows": tf.TensorShape([None, 3]), "number": tf.TensorShape([])},
        )
    )(tf),
    "bucket of pairs, drop_remainder": _pairs_bucket(drop_remainder=True),
    "bucket, a known size and to boundary": lambda tf: _images(tf).bucket_by_sequence_length(
        _length(tf), [3, 6], [2, 2, 2], pad_to_bucket_boundary=True
    ),
    "bucket of known sizes": lambda tf: _equal(tf).bucket_by_sequence_length(
        _length(tf), [3], [4, 4]
    ),
    "bucket, the older name": _older,
    "windows": _windows(window_size=3),
    "windows of their own size": _windows(window_size_func=lambda key: key + 1),
    "windows of no size": _windows(window_size_func=lambda key: key),
    "windows, the older name": _older_windows,
    "windows of many and of none": _many_of_each,
    "windows of negative keys": _negative_keys,
    "windows without a size": _windows(),
    "windows of two sizes": _windows(window_size=3, window_size_func=lambda key: 3),
    "windows of at most 12 tokens": windows_of_tokens,
    "padded": _padded(2),
    "padded, drop_remainder": _padded(2, drop_remainder=True),
    "padded, shapes": _padded(2, padded_shapes=[6]),
    "padded, shape -1": _padded(2, padded_shapes=[-1]),
    "padded, shape None": _padded(2, padded_shapes=[None]),
    "padded, too long": _padded(2, padded_shapes=[4]),
    "padded, other rank": _padded(2, padded_shapes=[4, 4]),
    "padded, value": _padded(2, padding_values=_int64(9)),
    "padded pairs": _pairs_padded(),
    "padded pairs, one None among the shapes": _pairs_padded(
        padded_shapes=([8], {"rows": [None, 4], "number": []})
    ),
    "padded pairs, values": _pairs_padded(
        padding_values=(np.int32(5), {"rows": None, "number": None})
    ),
    "padded pairs, other structure": _pairs_padded(padded_shapes=([8], [None, 4], [])),
    "padded, less than a known size": lambda tf: _images(tf).padded_batch(
        2, padded_shapes=[None, 2]
    ),
    "padded, a known size": lambda tf: _images(tf).padded_batch(2),
    "padded scalars": lambda tf: tf.data.Dataset.range(5).padded_batch(2, padded_shapes=[]),
    "padded, all equal": lambda tf: _equal(tf).padded_batch(4, drop_remainder=True),
    "padded, wrong value": _padded(2, padding_values=np.float32(0.5)),
    "padded, a vector of values": _padded(2, padding_values=np.array([1, 2])),
}  # fmt: skip


def record(tf):
    """What each program gives, as JSON holds it."""
    return {name: _outcome(make, tf) for name, make in CASES.items()}


def _outcome(make, tf):
    try:
        dataset = make(tf)
    except Exception:
        return "an error at once"
    elements = []
    iterator = dataset.as_numpy_iterator()
    while True:
        try:
            element = next(iterator)
        except StopIteration:
            break
        except Exception:
            return {"elements": [*elements, "an error"]}
        elements.append(_shown(element, lambda a: [list(a.shape), a.tolist()]))
    spec = _shown(dataset.element_spec, lambda s: [list(s.shape), np.dtype(_dtype(s)).name])
    return {"elements": elements, "spec": spec, "cardinality": int(dataset.cardinality())}


def _dtype(spec):
    return spec.dtype.as_numpy_dtype


def _shown(element, leaf):
    if isinstance(element, dict):
        return {key: _shown(element[key], leaf) for key in sorted(element)}
    if isinstance(element, tuple):
        return [_shown(part, leaf) for part in element]
    return leaf(element)
