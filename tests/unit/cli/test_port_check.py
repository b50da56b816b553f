"""What a program uses that samegrad lacks, found without running it."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import samegrad as tf
from samegrad import cli
from samegrad._context.devices import placement
from samegrad._surface import missing_names as _unknown

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def check(tmp_path, capsys, monkeypatch):
    """Checks a program; gives the exit status and the lines without the sum."""
    monkeypatch.chdir(tmp_path)

    def run(source, name="a.py"):
        Path(name).write_text(source if isinstance(source, str) else json.dumps(source))
        status = cli.main(["port-check", name])
        return status, capsys.readouterr().out.splitlines()[:-1]

    return run


def missing(check, source):
    """`line name` of all that is missing."""
    status, lines = check(source)
    assert status == bool(lines)
    return [" ".join(line.split(": ")[0:2]).removeprefix("a.py:") for line in lines]


def notebook(*cells):
    return {"cells": [{"cell_type": "code", "source": source} for source in cells]}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import tensorflow as tf\ntf.nn.nope", ["2 tf.nn.nope"]),
        ("import tensorflow\ntensorflow.nope", ["2 tf.nope"]),
        ("import samegrad as tf\ntf.nope", ["2 tf.nope"]),
        ("import tensorflow.keras as k\nk.nope", ["2 tf.keras.nope"]),
        ("import tensorflow.keras.layers\ntensorflow.nope", ["2 tf.nope"]),
        ("import keras\nkeras.layers.Nope()", ["2 tf.keras.layers.Nope"]),
        ("from tensorflow import keras\nkeras.nope", ["2 tf.keras.nope"]),
        ("from tensorflow.keras import layers as l\nl.Nope", ["2 tf.keras.layers.Nope"]),
        ("from keras.layers import (\n  Dense,\n  Nope)\nNope(1)", ["3 tf.keras.layers.Nope"]),
        ("import tensorflow.nope as n\nn.x", ["1 tf.nope", "2 tf.nope.x"]),
        ("import tensorflow.compat.v1 as tf\ntf.Session().run(1)", ["2 tf.compat.v1.Session.run"]),
        ("import tensorflow.compat.v1 as tf\ntf.reduce_sum(1)\ntf.nope", ["3 tf.compat.v1.nope"]),
        ("import tensorflow as tf\ntf.app.flags.FLAGS.rate.x", ["2 tf.app.flags.FLAGS"]),
        ("import tensorflow as tf\ntf.data.Dataset.from_csv(1)", ["2 tf.data.Dataset.from_csv"]),
        ("import tensorflow as tf\nx = (tf\n .nn\n .nope)", ["4 tf.nn.nope"]),
        ("import tensorflow as tf\n@tf.nope\nclass A(tf.Gone): x: tf.Lost = 1",
         ["2 tf.nope", "3 tf.Gone", "3 tf.Lost"]),
    ],
)  # fmt: skip
def test_names_are_found_under_every_import(check, source, expected):
    assert missing(check, source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("l = tf.keras.layers\nl.Nope", ["3 tf.keras.layers.Nope"]),
        ("l = m = tf.keras.layers\nk = m\nk.Nope", ["4 tf.keras.layers.Nope"]),
        ("a, (b, c) = tf.nn, (tf.math, 1)\na.nope; b.nope; c.nope",
         ["3 tf.nn.nope", "3 tf.math.nope"]),
        ("def f():\n  return late.nope\nlate = tf.nn", ["3 tf.nn.nope"]),
        ("def f(tf):\n  return tf.nope", []),
        ("def f():\n  tf = g()\n  return tf.nope", []),
        ("def f(x=tf.nope): pass", ["2 tf.nope"]),
        ("def f():\n  n = tf.nn\n  def g(): return n.nope\n  return g", ["4 tf.nn.nope"]),
        ("n = tf.nn\nn = 3\nn.nope", []),
        ("if a:\n  n = tf.nn\nelse:\n  n = None\nn.nope", ["6 tf.nn.nope"]),
        ("try:\n  n = tf.nn\nexcept Exception as n:\n  n.nope\nn.nope", ["6 tf.nn.nope"]),
        ("for tf in x: tf.nope", []),
        ("with tf.nope as tf: tf.other", ["2 tf.nope"]),
        ("[tf.nope for tf in tf.gone]\ntf.lost", ["2 tf.gone", "3 tf.lost"]),
        ("(lambda tf: tf.nope)(1); (lambda: tf.gone)()", ["2 tf.gone"]),
        ("class A:\n  tf = 1\n  tf.nope\n  def f(self): return tf.gone", ["5 tf.gone"]),
        ("match x:\n  case tf: tf.nope\ntf.gone", ["4 tf.gone"]),
        ("if (n := tf.nn): n.nope", ["2 tf.nn.nope"]),
        ("del tf\ntf.nope", []),
        ("global_ = 0\ndef f():\n  global n\n  n = 1\n  return tf.nope", ["6 tf.nope"]),
        ("tf.random.mine = 3", []),
        ("from .nn import nope\nfrom other import tf\ntf.nope", []),
    ],
)  # fmt: skip
def test_names_are_followed_as_python_binds_them(check, source, expected):
    assert missing(check, "import tensorflow as tf\n" + source) == expected


def test_sizes_and_places_that_follow_from_values_are_not_reported(check):
    source = """import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.RandomWidth(0.2), tf.keras.layers.RandomHeight(0.2)])
@tf.function
def step(x, n):
    kept, places, numbers = tf.boolean_mask(x, x > 0), tf.where(x > 1), tf.range(n)
    found = tf.image.non_max_suppression_padded(x, x, 4, pad_to_max_output_size=True)
    window = tf.image.extract_glimpse(x, [3, 3], x)
    return tf.image.crop_to_bounding_box(x, n, n, 2, 2), tf.slice(x, [n], [3]), tf.unique(x).y
"""
    assert missing(check, source) == []


def test_a_long_sum_is_read(check):
    assert missing(check, "import tensorflow as tf\n" + "tf.nope + " * 2000 + "tf.gone") == [
        "2 tf.nope",
        "2 tf.gone",
    ]


def test_star_imports(check):
    source = "from tensorflow.keras.layers import *\nDense(3, color=1)\nLSTN(4)\nown = 3\nown, len"
    assert missing(check, source) == ["2 tf.keras.layers.Dense(color=)", "3 tf.keras.layers.LSTN"]
    # With another star it may be that one's.
    assert missing(check, "from mine import *\n" + source) == ["3 tf.keras.layers.Dense(color=)"]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("tf.keras.layers.Dense(3, activatio='relu')", "did you mean 'activation'?"),
        ("tf.reduce_sum(x, AXIS=0)", "did you mean 'axis'?"),
        ("tf.keras.layers.Dense(3, input_shape=(2,), name='a', **more)", None),
        ("tf.keras.layers.Dense(3, color='red')", "no such argument: it takes units, activation"),
        ("tf.reduce_sum(x, reduction_indices=1)", "it takes input_tensor, axis, keepdims, name."),
        ("tf.data.Dataset.range(3, outputtype=1)", "tf.data.Dataset.range(outputtype=)"),
        ("tf.function(f, jit_compile=True)", None),
        ("tf.keras.optimizers.Adam(wight_decay=0.1)", "tf.keras.optimizers.Adam(wight_decay=)"),
        ("tf.keras.layers.Nope(size=1)", "tf.keras.layers.Nope:"),
        ("tf.Tensor(x=1)", "no such argument: it takes array"),
    ],
)
def test_arguments_that_are_not_taken(check, call, expected):
    status, lines = check(f"import tensorflow as tf\n{call}\n")
    assert (status, len(lines)) == ((0, 0) if expected is None else (1, 1))
    assert expected is None or expected in lines[0]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("distribute.ParameterServerStrategy", "MirroredStrategy(replicas=8)"),
        ("compat.v1.placeholder", "no graphs to feed"),
        ("compat.v1.losses", "it is samegrad.losses"),
        ("python.keras.layers.Dense", "it is samegrad.keras.layers.Dense"),
        ("compat.v1.train.AdamOptimizer", "it is samegrad.keras.optimizers.Adam"),
        ("compat.v1.get_collection", "ask the model: trainable_variables"),
        ("compat.v1.variable_scope", "call a layer again"),
        ("compat.v1.trainable_variables", "ask the model"),
        ("feature_column.numeric_column", "tensors hold numbers"),
        ("MeanSquaredError", "it is samegrad.keras.losses.MeanSquaredError"),
        ("keras.layers.Dens", "did you mean 'Dense'"),
        ("keras.zzz.Qqq", "see dir(samegrad.keras)"),
    ],
)
def test_the_reason_or_the_nearest_name(check, name, words):
    status, (line,) = check(f"import tensorflow as tf\ntf.{name}")
    assert status == 1
    assert line.startswith(f"a.py:2: tf.{name}: ")
    assert words in line


def test_functions_of_programs_with_towers_are_named(check):
    source = """import tensorflow as tf
def average_gradients(tower_grads): return tower_grads
def train(optimizer, loss, net):
    grads = [optimizer.compute_gradients(loss, net.trainable_variables)]
    optimizer.apply_gradients(average_gradients(grads))
"""
    status, lines = check(source)
    assert status == 1
    assert lines == [
        "a.py:4: compute_gradients: use a GradientTape, or optimizer.minimize(loss, var_list), "
        "inside strategy.run.",
        "a.py:5: average_gradients: strategy.run sums the gradients of all replicas in "
        "apply_gradients: leave it out.",
    ]
    assert missing(check, source.replace("average_gradients", "mean")) == []


def test_search_for_a_tpu_is_named_unless_its_error_is_caught(check):
    find = "tpu = tf.distribute.cluster_resolver.TPUClusterResolver({})"
    use = "tf.tpu.experimental.initialize_tpu_system(tpu)\ns = tf.distribute.TPUStrategy(tpu)\n"
    program = f"import tensorflow as tf\n{find}\n{use}"
    for call in (program.format("'x'"), program.replace("({})", ".connect()")):
        status, lines = check(call)
        assert status == 1
        assert lines == [
            "a.py:2: tf.distribute.cluster_resolver.TPUClusterResolver: it raises ValueError, as "
            "there is no TPU: use distribute.MirroredStrategy(replicas=8), or catch the error."
        ]
    for caught in ("", " ValueError", " (ValueError, KeyError) as e", " Exception"):
        source = f"import tensorflow as tf\ntry:\n  {find.format('')}\nexcept{caught}:\n  tpu = 0\n"
        assert check(f"{source}{use}") == (0, [])
    assert check(source.replace("except Exception", "except KeyError"))[0] == 1


def test_older_methods_of_strategies_are_named(check):
    source = "import tensorflow as tf\ns = tf.distribute.MirroredStrategy()\n"
    status, (line,) = check(f"{source}s.experimental_run_v2(f)\ns.run(f)\n")
    assert status == 1
    assert line == "a.py:3: tf.distribute.MirroredStrategy.experimental_run_v2: it is Strategy.run."


def test_the_attribute_error_says_the_same():
    names = (("samegrad.distribute", "CentralStorageStrategy"), ("samegrad.keras.layers", "Dens"))
    for module, name in names:
        with pytest.raises(AttributeError) as raised:
            getattr(importlib.import_module(module), name)
        path = f"{module}.{name}".removeprefix("samegrad.")
        assert _unknown.explain(path) in str(raised.value)


def test_no_reason_is_given_for_a_name_that_is_there():
    assert not [name for name in _unknown.REASONS if not _unknown.look_up(name)[1]]


def test_every_public_name_is_found():
    for namespace in _unknown.NAMESPACES:
        module = importlib.import_module(".".join(filter(None, ["samegrad", namespace])))
        for name in getattr(module, "__all__", ()):
            assert _unknown.look_up(".".join(filter(None, [namespace, name])))[1] == ()


def test_a_notebook_names_cell_and_line(check):
    cells = notebook(
        ["!pip install tensorflow \\\n", "  --quiet\n", "%matplotlib inline\n",
         "import tensorflow as tf\n", "for i in x:\n", "  !ls\n", "files = !ls\n",
         "x = (7\n", " % tf.one)\n", "tf?"],
        "%%bash\nthis is not Python",
        "%%time\n\ntf.two(\"\"\"\n%x\n\"\"\")\n",
        "def f(): return tf.three\n?tf\nfiles[0]??\n",
    )  # fmt: skip
    cells["cells"].insert(1, {"cell_type": "markdown", "source": "import ("})
    status, lines = check(cells, "n.ipynb")
    assert status == 1
    assert [line.rpartition(": ")[0] for line in lines] == [
        "n.ipynb:cell 1:9: tf.one",
        "n.ipynb:cell 3:3: tf.two",
        "n.ipynb:cell 4:1: tf.three",
    ]


def test_each_name_is_listed_once_per_line_and_counted(tmp_path, capsys):
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("import tensorflow as tf\ntf.nope + tf.nope\ntf.nope, tf.nn.relu\n")
    two.write_text("import tensorflow as tf\ntf.nope, tf.gone\n")
    assert cli.main(["port-check", str(one), str(two)]) == 1
    *lines, last = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in lines] == [f"{one}:2", f"{one}:3"] + [f"{two}:2"] * 2
    assert last == "2 names missing of 3."


def test_nothing_is_missing_and_nothing_is_used(tmp_path, capsys):
    program = tmp_path / "a.py"
    for text, said in (
        ("import tensorflow as tf\ntf.Variable(1.0)", "Nothing is missing of 1 name;"),
        ("print(1)", "No name of TensorFlow is used."),
        ("", "No name of TensorFlow is used."),
    ):
        program.write_text(text)
        assert cli.main(["port-check", str(program)]) == 0
        assert capsys.readouterr().out.startswith(said)


DEVICES_AND_STRINGS = """
import tensorflow as tf

tf.config.set_soft_device_placement(True)
for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)
tf.config.set_visible_devices([], "GPU")
print(tf.test.is_gpu_available(), tf.test.gpu_device_name(), tf.test.is_built_with_xla())
communication = tf.distribute.experimental.CommunicationImplementation.NCCL
options = tf.distribute.experimental.CommunicationOptions(implementation=communication)
central = tf.distribute.experimental.CentralStorageStrategy(["/gpu:0"], parameter_device="/cpu:0")
strategy = tf.distribute.MirroredStrategy(
    devices=["/gpu:0", "/gpu:1"], cross_device_ops=tf.distribute.NcclAllReduce(num_packs=2)
)
spec = tf.DeviceSpec(device_type="GPU", device_index=0)
with tf.device(spec), strategy.scope():
    words = tf.keras.layers.TextVectorization(max_tokens=20)
    words.adapt(["a b"])
    model = tf.keras.Sequential(
        [tf.keras.Input((1,), dtype="string"), words, tf.keras.layers.Embedding(20, 4),
         tf.keras.layers.GlobalAveragePooling1D(), tf.keras.layers.Dense(1)]
    )
model.compile("sgd", "mse")
model.fit(tf.constant(["a", "b c"]), tf.constant([[1.0], [2.0]]), verbose=0)
"""


def test_programs_that_name_gpus_or_train_on_strings_lack_nothing(tmp_path, capsys, monkeypatch):
    program = tmp_path / "a.py"
    program.write_text(DEVICES_AND_STRINGS)
    assert cli.main(["port-check", str(program)]) == 0, capsys.readouterr().out
    monkeypatch.setattr(placement, "_warned", True)
    exec(compile(DEVICES_AND_STRINGS.replace("tensorflow", "samegrad"), str(program), "exec"), {})
    program.write_text("import tensorflow as tf\ntf.distribute.ParameterServerStrategy(None)\n")
    assert cli.main(["port-check", str(program)]) == 1
    assert "MultiWorkerMirroredStrategy under mpirun" in capsys.readouterr().out


def test_the_notebooks_of_the_house_lack_nothing(capsys):
    paths = [str(path) for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
    assert cli.main(["port-check", *paths]) == 0, capsys.readouterr().out


def test_the_program_is_not_run(check, tmp_path):
    status, _ = check("import tensorflow as tf\nopen('made', 'w')\nraise SystemExit(9)")
    assert status == 0
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.py", None, "cannot read a.py: No such file"),
        ("a.py", b"x = 1\ndef f(:\n", "a.py:2: invalid syntax"),
        ("a.py", b"print 'two'\n", "a.py:1: "),
        ("a.py", b"x = '\xff'\n", "a.py: .*Save it as UTF-8"),
        ("a.py", b"# coding: nope\n", "a.py: unknown encoding"),
        ("a.py", b"x = 1\0", "a.py.*null byte"),
        ("a.py", b"x = " + b"(" * 300 + b")" * 300, "a.py.*nested"),
        ("a.py", b"x" + b".a()" * 900, "a.py.*Split"),
        ("n.ipynb", None, "cannot read n.ipynb: No such file"),
        ("n.ipynb", b"import tensorflow", "n.ipynb: Expecting value.*Jupyter"),
        ("n.ipynb", b"\xff", "n.ipynb: .*decode"),
        ("n.ipynb", b"[]", "it has no list of cells"),
        ("n.ipynb", b'{"cells": [{"cell_type": "code"}]}', "no 'source'"),
        ("n.ipynb", b'{"cells": [{"cell_type": "code", "source": 3}]}', "source is not text"),
        ("n.ipynb", b'{"cells": [3]}', "n.ipynb: "),
        ("n.ipynb", json.dumps(notebook("x", "y\nz = )")).encode(), "n.ipynb:cell 2:2: unmatched"),
    ],
)
def test_bad_input_is_said_in_one_line(tmp_path, monkeypatch, capsys, name, data, words):
    monkeypatch.chdir(tmp_path)
    if data is not None:
        Path(name).write_bytes(data)
    assert cli.main(["port-check", name]) == 2
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert re.search(words, line)
    assert not printed.out


def test_the_command_without_files_is_bad_input_and_a_folder_too(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["port-check"])
    assert ended.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert cli.main(["port-check", str(tmp_path)]) == 2


def test_the_status_reaches_the_shell(tmp_path):
    program = tmp_path / "a.py"
    program.write_text("import tensorflow as tf\ntf.nope")
    done = subprocess.run(
        [sys.executable, "-m", "samegrad", "port-check", str(program)],
        capture_output=True,
        text=True,
        env=dict(os.environ),
    )
    assert done.returncode == 1
    assert done.stdout.startswith(f"{program}:2: tf.nope: ")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("d = tf.data.Dataset.range(3)\nd.batch(2).nope()", ["3 tf.data.Dataset.nope"]),
        ("tf.data.Dataset.range(3).map(f).batch(2).nope(1)", ["2 tf.data.Dataset.nope"]),
        ("tf.data.Dataset.range(3).batch(2, drop=True)", ["2 tf.data.Dataset.batch(drop=)"]),
        ("m = tf.keras.Sequential()\nm.fit_nope(d)", ["3 tf.keras.Sequential.fit_nope"]),
        ("m = tf.keras.Sequential([])\nm.fit(x, y, nb_epoch=3)",
         ["3 tf.keras.Sequential.fit(nb_epoch=)"]),
        ("m = tf.keras.Sequential([])\nm(x, training=True).nope", []),
        ("m = tf.keras.Model(inputs=a, outputs=b, name='c')\nm.predict_nope(g)",
         ["3 tf.keras.Model.predict_nope"]),
        ("m = tf.keras.Model(a, b)\nm.extra = 1\nm.extra.more()", []),
        ("v = tf.Variable(1.0)\nv.nope(1)\nv.assign_add(1.0).nope()",
         ["3 tf.Variable.nope", "4 tf.Variable.nope"]),
        ("with tf.GradientTape() as t:\n  pass\nt.nope", ["4 tf.GradientTape.nope"]),
        ("o = tf.keras.optimizers.Adam()\no.learning_rate.assign(1.0); o.iterations; o.lr_", [
            "3 tf.keras.optimizers.Adam.lr_"]),
        ("x = tf.keras.layers.Dense(3)(x)\nx.nope", []),
        ("l = tf.keras.layers.Dense(3)\nl.kernel, l.units, l.nope_",
         ["3 tf.keras.layers.Dense.nope_"]),
        ("class M(tf.keras.Model):\n  def f(self): return self.nope\nM().nope", []),
        ("if a:\n  d = tf.Variable(1.0)\nelse:\n  d = tf.data.Dataset.range(3)\nd.nope", []),
        ("d = tf.data.Dataset.range(3)\nd = f(d)\nd.nope", []),
        ("for d in x:\n  d.nope", []),
        ("tf.constant(1.0).nope.x", ["2 tf.Tensor.nope.x"]),
        ("tf.constant([1.0]).shape.nope", []),
        ("tf.keras.layers.LeakyReLU(alpha=0.2)", []),
        ("tf.data.TextLineDataset(filenames=f)\ntf.data.TextLineDataset(files=f)",
         ["3 tf.data.TextLineDataset(files=)"]),
        ("tf.keras.layers.Embedding(2, 3, input_length=4)", []),
        ("f = tf.function(g)\nc = f.get_concrete_function(x)\nc.graph.as_graph_def(), c.name",
         ["4 tf.ConcreteFunction.graph.as_graph_def"]),
        ("@tf.function\ndef f(x): return x\nf.get_concrete_function(1).structured_nope",
         ["4 tf.ConcreteFunction.structured_nope"]),
        ("s = tf.sparse.SparseTensor([[0]], [1], [3])\n"
         "tf.data.Dataset.from_tensor_slices((s, [1]))\n"
         "tf.Variable(s)\ntf.Variable(tf.sparse.to_dense(s))",
         ["4 tf.Variable.SparseTensor"]),
        ("r = tf.ragged.constant([[1], [2, 3]])\n"
         "tf.concat([r, r], 1).to_list(), tf.reduce_sum(r, 1).numpy()\n"
         "tf.strings.split(r), tf.shape(r)\ntf.stack([r, x])\nr.nope\n"
         "tf.cast(x, tf.int32).to_tensor()", [
             "4 tf.strings.split.RaggedTensor",
             "5 tf.stack.RaggedTensor", "6 tf.RaggedTensor.nope"]),
        ("s = tf.RaggedTensorSpec([None, None], tf.int32)\ntf.map_fn(f, x, fn_output_signature=s)\n"
         "@tf.function(input_signature=[s])\ndef g(x): return x",
         ["4 tf.function.RaggedTensorSpec"]),
        ("tf.Variable('a', name='b')\ntf.Variable(1.0, name='b')", ["2 tf.Variable.string"]),
        ("tf.Variable([5 + 4j, 1])\nabs(3j)\ntf.constant(1j)", ["2 tf.Variable.complex128"]),
        ("tf.keras.optimizers.SGD(lr=0.1, decay=1e-3)\ntf.optimizers.Adam(lrr=0.1)",
         ["3 tf.optimizers.Adam(lrr=)"]),
        ("t = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(k, v), -1)\n"
         "t.lookup(x), t.nope\ntf.sets.union(a, b).values, tf.sets.nope",
         ["3 tf.lookup.StaticHashTable.nope", "4 tf.sets.nope"]),
        ("tf.optimizers.Adam(0.1).nope_()", ["2 tf.optimizers.Adam.nope_"]),
    ],
)  # fmt: skip
def test_objects_are_followed_from_where_they_are_made(check, source, expected):
    assert missing(check, "import tensorflow as tf\n" + source) == expected


@pytest.mark.parametrize("path", _unknown.NOT_RAGGED)
def test_what_is_said_to_refuse_ragged_tensors_does_so(path):
    rows = tf.ragged.constant([["a", "b"], ["c"]] if path.startswith("strings.") else [[1, 2], [3]])
    function = tf
    for part in path.removeprefix("dtypes.").split("."):
        function = getattr(function, part)
    more = {
        "complex": [rows], "resize": [[2, 2]], "format": [rows], "unicode_decode": ["UTF-8"],
        "unicode_split": ["UTF-8"],
    }.get(path.rpartition(".")[2], [[0, 1], 2] if "segment" in path else [])  # fmt: skip
    first = ["{}"] if path == "strings.format" else [[rows, rows] if "stack" in path else rows]
    with pytest.raises((TypeError, ValueError, NotImplementedError), match=r"^\[.*Ragged|row|axis"):
        function(*first, *more)


@pytest.mark.parametrize(
    ("source", "there"),
    [
        ("print(tf.__version__)", True),
        ("assert tf.__version__.startswith('2')", False),
        ("assert tf.__version__ >= '2.0'", False),
        ("print('version:', tf.__version__, tf.keras.__version__)", True),
    ],
)
def test_a_version_may_be_shown_and_not_compared(check, source, there):
    found = missing(check, f"import samegrad as tf\n{source}")
    assert found == ([] if there else ["2 tf.__version__"])
    # `samegrad run` answers with TensorFlow's.
    assert missing(check, f"import tensorflow as tf\n{source}") == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import keras\nimport samegrad as tf", ["1 import keras"]),
        ("from keras import layers\nimport samegrad.nn", ["1 import keras"]),
        ("import samegrad, keras", []),
        ("import samegrad as tf\nfrom keras.layers import Dense", []),
        ("def f():\n  import keras\nimport samegrad as tf", []),
        ("from samegrad import keras", []),
        ("import keras\nimport tensorflow as tf", []),
        ("import os\nos.environ['KERAS_BACKEND'] = 'jax'\nimport keras", ["2 KERAS_BACKEND"]),
        ("os.environ.setdefault('KERAS_BACKEND', 'jax')", ["1 KERAS_BACKEND"]),
        ("os.environ['KERAS_BACKEND'] = 'samegrad'", []),
        ("os.environ['KERAS_BACKEND'] = 'tensorflow'\nimport tensorflow, keras", []),
        ("os.environ['KERAS_BACKEND'] = 'tensorflow'\nimport samegrad", ["1 KERAS_BACKEND"]),
        ("x['KERAS'] = 'jax'; x.setdefault('KERAS_BACKEND'); x[0] = 1", []),
    ],
)
def test_the_backend_of_keras_is_looked_at(check, source, expected):
    assert missing(check, source) == expected
