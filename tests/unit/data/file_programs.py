"""Programs with files, tables and sound; they run with TensorFlow and with samegrad alike.

Each gets the module and a folder with FILES; it returns a dataset, or values.
"""

import numpy as np
from pipeline_programs import plain

FILES = {
    "plain.csv": b"1,2.5,a\n2,3.5,b\n3,,c\n4,1,\n5,2,e\n",
    "header.csv": b'x,y,"s"\n1,2.5,a\n2,3.5,b\n3,,c\n4,1,\n5,2,e',
    "quotes.csv": b'1,"a\nb"\r\n3,"c ""d"", e"\r\n-4,"""\r\n"\r\n',
    "blank.csv": b"1\n\n3\n",
    "short.csv": b"1,2\n3\n5,6\n7,8,9\n10,x\n,12\n11,13\n",
    "empty.csv": b"",
    "only_header.csv": b"x,y\n",
    "stray.csv": b'1,a\n2,b"c\n3,d\n',
    "behind.csv": b'1,a\n2,"b"c\n3,d\n',
    "open.csv": b'1,a\n2,"b\n3,d\n',
    "kinds.csv": b"i,l,f,d,s,n,u\n1,1,1,1,1,,nan\n-2,3000000000,0.5,1e300,x,,1\n",
    "semicolon.csv": b"1;-;a,b\n2;3;c\n",
    "rows.bin": bytes(range(1, 24)),
}


def _csv(name, defaults, **more):
    return lambda tf, folder: tf.data.experimental.CsvDataset(
        f"{folder}/{name}", defaults(tf) if callable(defaults) else defaults, **more
    )


def _table(name, batch_size=2, **more):
    options = {"shuffle": False, "num_epochs": 1} | more
    return lambda tf, folder: tf.data.experimental.make_csv_dataset(
        [f"{folder}/{each}" for each in name.split()], batch_size, **options
    )


def _decoded(records, defaults, **more):
    return lambda tf, folder: tf.io.decode_csv(
        records, defaults(tf) if callable(defaults) else defaults, **more
    )


def _required(tf):
    return [tf.constant([], tf.int32), [""]]


SAMPLES = np.array([[0, 0.5], [-1, 1], [0.25, -0.3], [1.5, -2], [1e-5, 2e-5], [0.1, -0.1]], "f4")


def _wav(samples=SAMPLES, rate=8000, cut=None, **more):
    def program(tf, folder):
        contents = tf.audio.encode_wav(samples, rate)
        return tf.audio.decode_wav(contents.numpy()[:cut], **more)

    return program


def _lengths(tf, lengths=(2, 0, 3, 1)):
    rows = tf.data.Dataset.from_tensor_slices(np.array(lengths, np.int64))
    return rows.map(lambda n: tf.range(n))


def _may_fail(tf, count=7):
    words = tf.data.Dataset.from_tensor_slices(["1", "x", "2.5", "", "4", "5", "z"])
    return words.take(count).map(lambda word: tf.strings.to_number(word))


DECODED = {
    "decode one": _decoded("1,2.5,a", [[0], [0.0], [""]]),
    "decode": _decoded(["1,2.5,a", ",,"], [[0], [0.5], ["z"]]),
    "decode quotes": _decoded(['1,"2.5","a,""b"""', '"","",""'], [[7], [0.5], ["z"]]),
    "decode stray quote": _decoded(['1,a"b'], [[0], ["z"]]),
    "decode behind quote": _decoded(['1,"a"b'], [[0], ["z"]]),
    "decode open quote": _decoded(['1,"ab'], [[0], ["z"]]),
    "decode few": _decoded(["1,2", "1"], [[0], ["z"]]),
    "decode many": _decoded(["1,2,3"], [[0], ["z"]]),
    "decode empty record": _decoded([""], [[0]]),
    "decode required": _decoded([",1"], _required),
    "decode required there": _decoded(["5,"], _required),
    "decode word": _decoded(["x,1"], [[0], ["z"]]),
    "decode large": _decoded(["99999999999,1"], [[0], ["z"]]),
    "decode int64": _decoded(["99999999999,-9223372036854775808"], [np.int64([0])] * 2),
    "decode float as int": _decoded(["1.5,1"], [[0], ["z"]]),
    "decode spaces": _decoded([" 1 , 2.5 "], [[0], [0.0]]),
    "decode underscores": _decoded(["1_0"], [[0]]),
    "decode float underscores": _decoded(["1_0.5"], [[0.0]]),
    "decode signs": _decoded(["+1,-2e-3,.5,5."], [[0], [0.0], [0.0], [0.0]]),
    "decode not finite": _decoded(["nan,-inf,INF"], [[0.0], [0.0], [0.0]]),
    "decode hexadecimal": _decoded(["0x1f"], [[0]]),
    "decode double": _decoded(["0.1"], [np.float64([0])]),
    "decode na": _decoded(["NA,1"], [[7], [0]], na_value="NA"),
    "decode selected": _decoded(["1,2,3,4"], [[7], [0]], select_cols=[1, 3]),
    "decode selected short": _decoded(["1,2"], [[7], [0]], select_cols=[1, 3]),
    "decode selected unsorted": _decoded(["1,2,3,4"], [[7], [0]], select_cols=[3, 1]),
    "decode semicolon": _decoded(["1;2"], [[7], [0]], field_delim=";"),
    "decode without quotes": _decoded(['1,"2'], [[7], [""]], use_quote_delim=False),
    "decode matrix": _decoded([["1,2"], ["3,4"]], [[7], [0]]),
    "decode line in quotes": _decoded(['1,"2\n3"'], [[7], [""]]),
    "decode line": _decoded(["1\n2"], [[7]]),
    "decode bytes": _decoded([b"1,\xff\x00"], [[0], [""]]),
    "decode bools": _decoded(["true"], [[True]]),
    "decode long delimiter": _decoded(["1,2"], [[0], [0]], field_delim=",,"),
}
TABLES = {
    "csv": _csv("plain.csv", [[0], [0.0], [""]]),
    "csv header": _csv("header.csv", [[0], [-1.0], ["none"]], header=True),
    "csv quotes": _csv("quotes.csv", [[0], [""]]),
    "csv blank": _csv("blank.csv", [[0]]),
    "csv short": _csv("short.csv", [[0], [0]]),
    "csv required": _csv("plain.csv", lambda tf: [tf.int32, tf.float32, tf.string]),
    "csv left out": lambda tf, folder: _csv("short.csv", lambda tf: [tf.int32, tf.int64])(
        tf, folder
    ).ignore_errors(),
    "csv selected": _csv("plain.csv", [[0], [""]], select_cols=[0, 2]),
    "csv excluded": _csv("plain.csv", [[0], [""]], exclude_cols=[1]),
    "csv empty": _csv("empty.csv", [[0]]),
    "csv empty with header": _csv("empty.csv", [[0]], header=True),
    "csv only header": _csv("only_header.csv", [[0], [0]], header=True),
    "csv stray quote": _csv("stray.csv", [[0], [""]]),
    "csv behind quote": _csv("behind.csv", [[0], [""]]),
    "csv semicolon": _csv("semicolon.csv", [[0], [-7], [""]], field_delim=";", na_value="-"),
    "csv batches": lambda tf, folder: _csv("plain.csv", [[0], [0.0], [""]])(tf, folder).batch(2),
    "csv files": lambda tf, folder: tf.data.experimental.CsvDataset(
        [f"{folder}/plain.csv", f"{folder}/empty.csv", f"{folder}/plain.csv"], [[0], [0.0], [""]]
    ),
    "csv nowhere": _csv("nowhere.csv", [[0]]),
    "table": _table("header.csv"),
    "table label": _table("header.csv", label_name="y"),
    "table selected": _table("header.csv", select_columns=["s", "x"]),
    "table numbers": _table("header.csv", 3, select_columns=[2, 0], label_name="x"),
    "table names": _table("plain.csv", 3, column_names=["p", "q", "r"], header=False),
    "table names for others": _table("header.csv", 9, column_names=["p", "q", "r"]),
    "table defaults": _table("header.csv", 3, column_defaults=[np.int64([1]), [-1.0], "none"]),
    "table kinds": _table("kinds.csv"),
    "table kinds of one row": _table("kinds.csv", 1, num_rows_for_inference=1),
    "table epochs": _table("header.csv", 3, num_epochs=2),
    "table without end": lambda tf, folder: _table("header.csv", 3, num_epochs=None)(
        tf, folder
    ).take(4),
    "table files": _table("header.csv header.csv", 4),
    "table files in turn": _table("header.csv header.csv", 4, num_parallel_reads=2),
    "table other names": _table("header.csv only_header.csv"),
    "table of none": _table("only_header.csv"),
    "table of an empty file": _table("empty.csv"),
    "table nowhere": _table("nowhere*.csv"),
    "table unknown label": _table("header.csv", label_name="z"),
    "table unknown column": _table("header.csv", select_columns=["z"]),
    "table same name": _table("plain.csv", column_names=["p", "q", "p"], header=False),
    "table errors left out": _table(
        "short.csv", column_names=["p", "q"], header=False, column_defaults=[[0], [0]],
        ignore_errors=True,
    ),
}  # fmt: skip
SOUND = {
    "wav": _wav(),
    "wav one channel": _wav(desired_channels=1),
    "wav three channels": _wav(desired_channels=3),
    "wav of one channel": _wav(SAMPLES[:, :1], desired_channels=2),
    "wav few samples": _wav(desired_samples=2),
    "wav many samples": _wav(desired_samples=9),
    "wav none": _wav(SAMPLES[:0]),
    "wav too short": _wav(cut=-3),
    "wav without data": _wav(cut=20),
    "wav begins": _wav(cut=3),
    "wav bytes": lambda tf, folder: tf.audio.encode_wav(SAMPLES, 44100),
    "wav halves": lambda tf, folder: tf.audio.encode_wav(
        (np.arange(-9, 9, dtype="f4")[:, None] / 2) / 32768, 1
    ),
    "wav one axis": lambda tf, folder: tf.audio.encode_wav(SAMPLES[0], 8000),
    "wav without rate": lambda tf, folder: tf.audio.encode_wav(SAMPLES, 0),
}
CALLS = {
    "py_function": lambda tf, folder: tf.py_function(lambda x: x + 1, [3], tf.int32),
    "py_function list": lambda tf, folder: tf.py_function(lambda x: x + 1, [3], [tf.int32]),
    "py_function number": lambda tf, folder: tf.py_function(lambda x: 2, [3.0], tf.float64),
    "py_function wrong": lambda tf, folder: tf.py_function(lambda x: x + 1, [3.0], tf.float64),
    "py_function two": lambda tf, folder: tf.py_function(
        lambda x: (x, -x), [3.0], [tf.float32, tf.float32]
    ),
    "py_function nothing": lambda tf, folder: tf.py_function(lambda x: None, [3.0], []),
    "py_function text": lambda tf, folder: tf.py_function(lambda: "a", [], tf.string),
    "py_function map": lambda tf, folder: tf.data.Dataset.range(3).map(
        lambda x: tf.py_function(lambda v: v.numpy() * 2, [x], tf.int64)
    ),
    "py_function map list": lambda tf, folder: tf.data.Dataset.range(3).map(
        lambda x: tf.py_function(lambda v: (v, v > 1), [x], [tf.int64, tf.bool])
    ),
    "numpy_function": lambda tf, folder: tf.numpy_function(
        lambda x: x * 2, [np.ones(3, "f4")], tf.float32
    ),
    "numpy_function list": lambda tf, folder: tf.numpy_function(
        lambda x: [x, x + 1], [np.ones(3, "f4")], [tf.float32, tf.float32]
    ),
    "numpy_function text": lambda tf, folder: tf.data.Dataset.from_tensor_slices(["a", "b"]).map(
        lambda x: tf.numpy_function(lambda text: text + b"!", [x], tf.string)
    ),
    "numpy_function map": lambda tf, folder: tf.data.Dataset.range(3).map(
        lambda x: tf.numpy_function(np.square, [x], tf.int64)
    ),
}


def _example(tf, **features):
    """The bytes of a record with lists of integers, floats or words."""
    kinds = {int: "int64", float: "float", str: "bytes"}
    made = {}
    for name, values in features.items():
        kind = kinds[type(values[0])]
        parts = [value.encode() if kind == "bytes" else value for value in values]
        listed = getattr(tf.train, f"{kind.title()}List")(value=parts)
        made[name] = tf.train.Feature(**{f"{kind}_list": listed})
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


def _records(tf):
    return [
        _example(tf, a=[1, 2, 3], w=["x"], p=[4, 0], v=[0.5, 1.5]),
        _example(tf, w=["y", "z"]),
        _example(tf, a=[5], p=[2], v=[3.0]),
    ]


def _parsed(feature, count=3, dense=None):
    """One feature of records, parsed side by side."""

    def program(tf, folder):
        found = tf.io.parse_example(
            tf.constant(_records(tf)[:count], tf.string), {"a": feature(tf)}
        )["a"]
        return tf.sparse.to_dense(found) if dense is None else dense(tf, found)

    return program


def _parsed_one(feature, number=0):
    def program(tf, folder):
        found = tf.io.parse_single_example(_records(tf)[number], {"a": feature(tf)})["a"]
        return tf.sparse.to_dense(found) if hasattr(found, "indices") else found

    return program


def _few(tf, indices=((0, 1), (2, 0)), values=(5.0, 6.0), shape=(3, 2)):
    return tf.SparseTensor(np.reshape(indices, (-1, 2)).astype("i8"), values, shape)


FEATURES = {
    "VarLenFeature": _parsed(lambda tf: tf.io.VarLenFeature(tf.int64)),
    "VarLenFeature of none": _parsed(lambda tf: tf.io.VarLenFeature(tf.int64), 0),
    "VarLenFeature places": _parsed(
        lambda tf: tf.io.VarLenFeature(tf.int64),
        dense=lambda tf, found: [found.indices, found.values, found.dense_shape],
    ),
    "VarLenFeature default": _parsed(
        lambda tf: tf.io.VarLenFeature(tf.int64),
        dense=lambda tf, found: tf.sparse.to_dense(found, default_value=-1),
    ),
    "VarLenFeature wrong": _parsed(lambda tf: tf.io.VarLenFeature(tf.float32)),
    "VarLenFeature one": _parsed_one(lambda tf: tf.io.VarLenFeature(tf.int64)),
    "VarLenFeature missing": _parsed_one(lambda tf: tf.io.VarLenFeature(tf.int64), 1),
    "RaggedFeature": _parsed(
        lambda tf: tf.io.RaggedFeature(tf.int64), dense=lambda tf, found: found.to_tensor()
    ),
    "RaggedFeature key": _parsed(
        lambda tf: tf.io.RaggedFeature(tf.string, value_key="w"),
        dense=lambda tf, found: found.to_tensor(),
    ),
    "RaggedFeature one": _parsed_one(lambda tf: tf.io.RaggedFeature(tf.int64)),
    "RaggedFeature missing": _parsed_one(lambda tf: tf.io.RaggedFeature(tf.int64), 1),
    "SparseFeature": _parsed(lambda tf: tf.io.SparseFeature("p", "v", tf.float32, 6)),
    "SparseFeature one": _parsed_one(lambda tf: tf.io.SparseFeature("p", "v", tf.float32, 6)),
    "SparseFeature outside": _parsed(lambda tf: tf.io.SparseFeature("p", "v", tf.float32, 3)),
    "sparse batch": lambda tf, folder: tf.data.Dataset.from_tensor_slices(_records(tf))
    .map(lambda x: tf.io.parse_single_example(x, {"a": tf.io.VarLenFeature(tf.int64)})["a"])
    .batch(2),
    "sparse elements": lambda tf, folder: tf.data.Dataset.from_tensor_slices(_records(tf))
    .batch(2)
    .map(lambda x: tf.sparse.to_dense(
        tf.io.parse_example(x, {"w": tf.io.VarLenFeature(tf.string)})["w"])),
    "sparse to_dense": lambda tf, folder: tf.sparse.to_dense(_few(tf)),
    "sparse to_dense default": lambda tf, folder: tf.sparse.to_dense(_few(tf), -1.0),
    "sparse text": lambda tf, folder: tf.sparse.to_dense(_few(tf, values=["a", "b"]), "?"),
    "sparse none": lambda tf, folder: tf.sparse.to_dense(_few(tf, (), np.zeros(0, "f4"))),
    "sparse out of order": lambda tf, folder: tf.sparse.to_dense(_few(tf, ((2, 0), (0, 1)))),
    "sparse twice": lambda tf, folder: tf.sparse.to_dense(_few(tf, ((0, 1), (0, 1)))),
    "sparse outside": lambda tf, folder: tf.sparse.to_dense(_few(tf, ((0, 1), (0, 2)))),
    "sparse reorder": lambda tf, folder: tf.sparse.to_dense(
        tf.sparse.reorder(_few(tf, ((2, 0), (0, 1))))
    ),
    "sparse from_dense": lambda tf, folder: [
        getattr(tf.sparse.from_dense([[0, 7, 0], [8, 0, 9]]), name)
        for name in ("indices", "values", "dense_shape")
    ],
    "sparse shapes": lambda tf, folder: _few(tf, shape=(3, 2, 1)),
}  # fmt: skip


def _kept(name, dataset, **more):
    """A dataset that was saved and loaded."""

    def program(tf, folder):
        path = f"{folder}/kept {name}"
        dataset(tf).save(path, **more)
        return tf.data.Dataset.load(path, compression=more.get("compression"))

    return program


def _words(tf):
    texts = tf.data.Dataset.from_tensor_slices(["a", "", "b\x00c"]).enumerate()
    return texts.map(lambda n, text: {"n": n, "text": (text, tf.strings.length(text))})


STAGES = {
    "cache": lambda tf, folder: _words(tf).cache(f"{folder}/kept words").repeat(2),
    "cache batches": lambda tf, folder: (
        tf.data.Dataset.range(5).batch(2).cache(f"{folder}/kept batches")
    ),
    "cache lengths": lambda tf, folder: _lengths(tf).cache(f"{folder}/kept lengths"),
    "cache of none": lambda tf, folder: tf.data.Dataset.range(0).cache(f"{folder}/kept none"),
    "save": _kept("words", _words),
    "save lengths": _kept("lengths", _lengths),
    "save none": _kept("none", lambda tf: tf.data.Dataset.range(0)),
    "save compressed": _kept("packed", _words, compression="GZIP"),
    "save one file": _kept("one", _lengths, shard_func=lambda row: np.int64(0)),
    "load nowhere": lambda tf, folder: tf.data.Dataset.load(f"{folder}/nowhere"),
    "ragged_batch": lambda tf, folder: _lengths(tf).ragged_batch(3).map(lambda x: x.to_tensor()),
    "ragged_batch full": lambda tf, folder: (
        _lengths(tf).ragged_batch(3, drop_remainder=True).map(lambda x: x.to_tensor())
    ),
    "ragged_batch of none": lambda tf, folder: _lengths(tf, ()).ragged_batch(3),
    "ragged_batch numbers": lambda tf, folder: tf.data.Dataset.range(5).ragged_batch(2),
    "ragged_batch pairs": lambda tf, folder: (
        _lengths(tf)
        .map(lambda row: (row, tf.size(row)))
        .ragged_batch(4)
        .map(lambda rows, size: (rows.to_tensor(), size))
    ),
    "ragged_batch arrays": lambda tf, folder: _lengths(tf).ragged_batch(2),
    "ignore_errors": lambda tf, folder: _may_fail(tf).ignore_errors(),
    "ignore_errors batch": lambda tf, folder: _may_fail(tf).ignore_errors().batch(3),
    "ignore_errors behind batch": lambda tf, folder: _may_fail(tf).batch(2).ignore_errors(),
    "ignore_errors of none": lambda tf, folder: _may_fail(tf, 0).ignore_errors(),
    "ignore_errors parallel": lambda tf, folder: (
        _may_fail(tf).map(lambda x: x * 2, num_parallel_calls=2).prefetch(2).ignore_errors()
    ),
    "ignore_errors apply": lambda tf, folder: _may_fail(tf).apply(
        tf.data.experimental.ignore_errors()
    ),
    "errors": lambda tf, folder: _may_fail(tf),
    "counter": lambda tf, folder: tf.data.Dataset.counter(3, -2).take(4),
    "counter int32": lambda tf, folder: tf.data.Dataset.counter(dtype=tf.int32).skip(2).take(2),
    "assert_cardinality": lambda tf, folder: (
        tf.data.Dataset.range(9)
        .filter(lambda x: x % 2 == 1)
        .apply(tf.data.experimental.assert_cardinality(4))
    ),
    "assert_cardinality fewer": lambda tf, folder: tf.data.Dataset.range(3).apply(
        tf.data.experimental.assert_cardinality(5)
    ),
    "assert_cardinality more": lambda tf, folder: tf.data.Dataset.range(3).apply(
        tf.data.experimental.assert_cardinality(2)
    ),
    "rejection_resample all": lambda tf, folder: tf.data.Dataset.range(3).rejection_resample(
        lambda x: tf.constant(0), [1.0], [1.0]
    ),
}


def programs():
    return DECODED | TABLES | SOUND | CALLS | FEATURES | STAGES


def run(tf, program, folder):
    """What a program gives; of a dataset the elements before an error."""
    found = []
    try:
        made = program(tf, folder)
        if hasattr(made, "as_numpy_iterator"):
            found.extend(plain(element) for element in made.as_numpy_iterator())
        else:
            parts = made if isinstance(made, list | tuple) else [made]
            found = [plain(np.asarray(part.numpy())) for part in parts]
            found.append([str(np.asarray(part.numpy()).dtype) for part in parts])
    except Exception:
        return {"values": found, "error": True}
    return {"values": found}


def write_files(folder):
    for name, content in FILES.items():
        with open(f"{folder}/{name}", "wb") as file:
            file.write(content)
